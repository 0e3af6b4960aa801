"""What the benchmarks keep: a work measured anew takes its own place alone, and the page says what is kept."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Imports a module that lies beside the benchmark's script."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


def held(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_work_measured_anew_takes_its_own_place_alone(load, tmp_path, monkeypatch) -> None:
    results: ModuleType = load("results")
    path = tmp_path / "results.json"
    runs = {}
    for began, works in (("2026-01-01 10:00", ["sac", "td3"]), ("2026-01-02 10:00", ["td3"])):
        runs[began] = results.Results(path, works, 5, 1, sys.executable)
        monkeypatch.setattr(runs[began], "_run", began)
    first, second = runs.values()
    first.keep("sac", {"sides": {"sb3": 1}})
    first.keep("td3", {"sides": {"sb3": 2}})
    second.keep("td3", {"sides": {"sb3": 3}})
    assert held(path)["works"] == {
        "sac": {"run": "2026-01-01 10:00", "sides": {"sb3": 1}},
        "td3": {"run": "2026-01-02 10:00", "sides": {"sb3": 3}},
    }
    assert [held(path)["runs"][began]["works"] for began in runs] == [["sac", "td3"], ["td3"]]
    second.keep("sac", {"sides": {"sb3": 4}})
    assert list(held(path)["runs"]) == ["2026-01-02 10:00"], "a run of which nothing is left is forgotten"


def test_the_page_says_what_is_kept_and_of_which_run(load) -> None:
    report, kept = load("report"), held(FOLDER / "results.json")
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page == report.page(kept)
    for work in kept["works"].values():
        assert f"{work['run']} UTC" in page


def test_works_of_unequal_size_or_with_old_rollouts_are_refused(load) -> None:
    check = load("throughput").check
    side = {"gradient_steps": [100]}
    check("sac", {"sides": {"sb3": side, "local": side}})
    with pytest.raises(SystemExit, match="different numbers of gradient steps"):
        check("sac", {"sides": {"sb3": side, "local": {"gradient_steps": [99]}}})
    fresh, old = ({"gradient_steps": [500], "lag_max": lag} for lag in (2, 3))
    check("impala-1x8", {"sides": {"rllib": side, "local": fresh, "ray": fresh}})
    with pytest.raises(SystemExit, match="older than 2 updates"):
        check("impala-1x8", {"sides": {"rllib": side, "ray": old}})


def test_cartpole_is_solved_by_the_mean_of_the_last_twenty_episodes(load, tmp_path) -> None:
    module = load("learning_time")
    log = tmp_path / "log.csv"
    log.write_text(
        "wall_time,env_steps,episodes,train_return\n"
        "1.0,256,12,400.0\n"  # 12 episodes: too few
        "2.0,512,12,\n"
        "3.0,768,22,500.0\n"  # (12 * 400 + 10 * 500) / 22 = 445.5
        "4.0,1024,31,500.0\n"  # 19 of 500 are one too few: (12 * 400 + 19 * 500) / 31 = 461.3
        "5.0,1280,32,500.0\n"  # the last 20 are all of 500
        "6.0,1536,40,100.0\n"
    )
    rows = module.rows_of(log)
    assert rows[:2] == [(1.0, 256, 12, 4800.0), (2.0, 512, 0, 0.0)]
    assert module.solved(rows) == (5.0, 1280, 1, 500.0)
    assert module.solved(rows[:4]) is None
    assert module.median([3.0, None, 1.0]) == 3.0
    assert module.median([3.0, None, None]) is None
