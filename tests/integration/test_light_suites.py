"""The light rows of the table of real environments: a short run of a preset, on Ray, beats random actions."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[1] / "environments"


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script that measures the table; it and the modules beside it are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    beside = [path.stem for path in FOLDER.glob("*.py")]
    yield importlib.import_module("measure")
    for name in beside:
        sys.modules.pop(name, None)


@pytest.mark.ray
@pytest.mark.parametrize(
    ("name", "package"), [("HalfCheetah, PPO", "mujoco"), ("MinAtar Breakout, PPO", "minatar")]
)
def test_a_short_run_beats_random_actions(
    name: str, package: str, measuring: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip(package, reason=f"the extra {package} is not installed")
    monkeypatch.setattr(measuring, "RANDOM_EPISODES", 10)
    (row,) = [row for row in measuring.SUITES if row.name == name]
    short = dataclasses.replace(row, overrides=(*row.overrides, "runner.num_episodes=10"))
    record = measuring.suite(short, tmp_path)
    assert record["code"] == 0, record["error"]
    assert record["env_steps"] > 18_000
    assert record["above"] >= 3.0
