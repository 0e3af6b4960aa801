"""The ladder of learning runs: its rows name what exists, and its judgements are right."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from omnirl.plugins import load

FOLDER = Path(__file__).parents[1] / "learning"


@pytest.fixture(scope="module")
def ladder() -> Iterator[ModuleType]:
    """The module ``ladder``, which lies beside the script that uses it."""
    spec = importlib.util.spec_from_file_location("ladder", FOLDER / "ladder.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ladder"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["ladder"]


def test_every_row_trains_a_preset_that_is_there(ladder: ModuleType) -> None:
    presets = {provided.spec.name for provided in load().presets()}
    rows = ladder.read_ladder()
    assert {row.preset for row in rows} <= presets
    assert len({row.preset for row in rows}) == len(rows), "a preset has one row"
    assert all(row.floor <= row.target for row in rows)


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
