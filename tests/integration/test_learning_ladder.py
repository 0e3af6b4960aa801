"""The ladder of learning runs: its rows name what exists, and its judgements are right."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from omnirl.plugins import load

FOLDER = Path(__file__).parents[1] / "learning"


@pytest.fixture(scope="module")
def ladder(module_at: Callable[[Path], ModuleType]) -> ModuleType:
    return module_at(FOLDER / "ladder.py")


@pytest.fixture(scope="module")
def train_ladder(module_at: Callable[[Path], ModuleType]) -> ModuleType:
    return module_at(FOLDER / "train_ladder.py")


def test_every_row_trains_a_preset_that_is_there(ladder: ModuleType) -> None:
    presets = {provided.spec.name for provided in load().presets()}
    rows = ladder.read_ladder()
    assert {row.preset for row in rows} <= presets
    assert len({row.preset for row in rows}) == len(rows), "a preset has one row"
    assert all(row.floor <= row.target for row in rows)
    published = {row.preset: row.published for row in rows}
    assert (published["halfcheetah-td3"], published["acrobot-dqn"]) == (4894.0, -76.6)


def test_a_word_chooses_by_algorithm_environment_or_preset(ladder: ModuleType) -> None:
    rows = ladder.read_ladder()
    assert {row.words[2] for row in ladder.chosen(rows, ["ppo"], None)} == {"ppo"}
    assert {row.words[1] for row in ladder.chosen(rows, ["cartpole"], None)} == {"cartpole"}
    assert [row.preset for row in ladder.chosen(rows, ["cartpole-dqn"], None)] == ["cartpole-dqn"]
    assert {"cartpole-dqn", "minatar-breakout-dqn"} <= {
        row.preset for row in ladder.chosen(rows, ["dqn"], None)
    }
    assert [row.preset for row in ladder.chosen(rows, ["minatar-breakout"], 2)] == ["minatar-breakout-dqn"]
    assert ladder.chosen(rows, [], None) == rows
    assert all(row.tier == 2 for row in ladder.chosen(rows, [], 2))
    with pytest.raises(ValueError, match="no row is called walker; there are: "):
        ladder.chosen(rows, ["ppo", "walker"], None)


def test_a_row_is_judged_by_its_mean_and_by_its_worst_seed(ladder: ModuleType) -> None:
    row = ladder.Row("x-y", tier=1, seeds=3, target=10.0, floor=5.0, reference="")
    assert ladder.verdict(row, [15.0, 10.0, 5.0]) == "reached"
    assert ladder.verdict(row, [9.0, 9.0]) == "mean below 10"
    assert ladder.verdict(row, [30.0, 4.0]) == "a seed below 5"
    assert ladder.verdict(row, [4.0]) == "mean below 10, a seed below 5"
    assert ladder.verdict(row, []) == "not run"


def test_a_curve_keeps_its_last_point_and_few_others(ladder: ModuleType) -> None:
    log = [{"env_steps": n, "train_return": float(n), "eval_return_mean": None} for n in range(1, 101)]
    log[-1]["eval_return_mean"] = 7.0
    found = ladder.points_of_log(log, most=10)
    assert found["evaluation"] == [[100.0, 7.0]]
    assert found["training"] == [[float(n), float(n)] for n in range(10, 101, 10)]


def test_a_run_that_goes_on_keeps_the_curve_and_the_time_of_before(
    ladder: ModuleType, train_ladder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = {
        "event": "finished",
        "evaluation": {"return_mean": 30.0, "return_std": 1.0, "episodes": 5},
        "env_steps": 300,
        "updates": 3,
        "restarts": 0,
    }
    command = tmp_path / "omnirl"
    command.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "run_dir = sys.argv[sys.argv.index('--run-dir') + 1]\n"
        "open(f'{run_dir}/log.csv', 'a').write('1200.0,3,300,30.0,30.0\\n')\n"
        f"print({json.dumps(json.dumps(finished))})\n"
    )
    command.chmod(0o755)
    monkeypatch.setattr(train_ladder, "OMNIRL", command)
    row = ladder.Row("x-y", tier=1, seeds=1, target=10.0, floor=5.0, reference="")
    folder = tmp_path / "x-y-seed0"
    folder.mkdir()
    (folder / "log.csv").write_text(
        "wall_time,updates,env_steps,train_return,eval_return_mean\n500.0,1,100,10.0,\n1000.0,2,200,20.0,\n"
    )
    record = train_ladder.train(row, 0, (), tmp_path)
    assert record["curve"] == {
        "training": [[100.0, 10.0], [200.0, 20.0], [300.0, 30.0]],
        "evaluation": [[300.0, 30.0]],
    }
    assert 1000.0 <= record["seconds"] < 1060.0
    assert record["score"] == 30.0
