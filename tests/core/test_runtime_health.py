"""A run that learned nothing does not count as finished, and what a resumed run had made is not its speed now."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import omnirl.run
from omnirl.api.errors import NumericsError
from omnirl.runtime.health import Health
from omnirl.runtime.meter import Meter
from omnirl.runtime.vital_signs import CountedEnvironment


def pacing(collected: int, updates: int = 0) -> Any:
    return SimpleNamespace(collected=collected, rollout_steps=100, updates=updates)


SICK: Any = SimpleNamespace(sampler=0, nonfinite="env step 1, reward is nan")


@pytest.mark.parametrize(("refused", "collected", "ends"), [(0, 200, False), (1, 200, False), (2, 200, True)])
def test_a_run_whose_every_rollout_was_refused_ends_in_an_error(
    refused: int, collected: int, ends: bool
) -> None:
    health = Health(pacing(collected), "drop", lambda text: None)
    for _ in range(refused):
        health.sick(SICK)
    if not ends:
        health.finished()
        return
    with pytest.raises(NumericsError, match="each of the 2 rollouts held a NaN"):
        health.finished()


@pytest.mark.parametrize(
    ("refused", "rollouts", "ends"), [(9, 10, False), (10, 1000, False), (10, 999, True), (11, 1000, True)]
)
def test_a_run_ends_once_ten_rollouts_and_more_than_one_in_a_hundred_were_refused(
    refused: int, rollouts: int, ends: bool
) -> None:
    told: list[str] = []
    health = Health(pacing(100 * rollouts), "drop", told.append)
    for _ in range(refused - 1):
        health.sick(SICK)
    if not ends:
        health.sick(SICK)
        assert told == ["a rollout was refused: sampler 0, env step 1, reward is nan"] * refused
        return
    with pytest.raises(NumericsError, match=f"^{refused} of {rollouts} rollouts held a NaN"):
        health.sick(SICK)


def test_a_short_run_on_nan_alone_says_so(tmp_path: Path) -> None:
    config = {
        "runner": {"ckpt_dir": str(tmp_path / "run"), "max_steps": 200, "num_samplers": 1},
        "env": {"module": "omnirl.testing.environments", "id": "bad", "mode": "nan_obs", "at": 1},
        "agent": {"module": "omnirl.testing.algorithm"},
    }
    with pytest.raises(NumericsError, match="nothing was learned"):
        omnirl.run.train(config, local=True)


def test_steps_made_before_a_resume_are_not_counted_in_its_speed() -> None:
    meter = Meter()
    meter.begin(pacing(1_000_000, 50))
    assert meter.rates(pacing(1_000_000, 50)) == (0.0, 0.0)


class Leaving:
    num_envs, seedable = 1, True

    def reset(self, index: int, seed: int) -> Any:
        raise SystemExit(9)

    def step(self, action: Any) -> Any:
        raise SystemExit("bye")

    def close(self) -> None:
        pass


def test_an_environment_that_leaves_the_process_has_failed() -> None:
    counted = CountedEnvironment(Leaving())
    with pytest.raises(RuntimeError, match=r"called sys\.exit\(9\)"):
        counted.reset(0, 0)
    with pytest.raises(RuntimeError, match=r"called sys\.exit\('bye'\)"):
        counted.step(np.zeros(1))
