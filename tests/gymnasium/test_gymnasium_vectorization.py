"""``vectorization: auto``: what it becomes, and that finding out is cheap."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from omnirl.api.environment import DecisionContext
from omnirl.envs.gymnasium import vectorization
from omnirl.envs.gymnasium.backend import BACKEND
from omnirl.envs.gymnasium.config import GymnasiumConfig


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectorization, "cores", lambda: 4)


class Slow(gymnasium.Env[Any, Any]):
    """Takes ``seconds`` per step."""

    built = stepped = 0

    def __init__(self, seconds: float, render_mode: str | None = None) -> None:
        type(self).built += 1
        self.observation_space, self.action_space = spaces.Box(0, 1, (1,)), spaces.Discrete(2)
        self._seconds = seconds

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self._seconds == -9:
            raise SystemExit(9)
        if self._seconds < 0:
            raise ArithmeticError("out of range")
        type(self).stepped += 1
        if self._seconds:
            time.sleep(self._seconds)
        return np.zeros(1, np.float32), 0.0, False, False, {}


@pytest.fixture
def decided(register: Callable[..., str]) -> Callable[..., Any]:
    name = register(entry_point=Slow)

    def decide(seconds: float, num_envs: int, num_samplers: int = 1, **keys: Any) -> Any:
        config = GymnasiumConfig.model_validate({"id": name, "kwargs": {"seconds": seconds}, **keys})
        Slow.built = Slow.stepped = 0
        assert BACKEND.decide is not None
        return list(BACKEND.decide(config, DecisionContext(num_envs, num_samplers)))

    return decide


@pytest.mark.parametrize(
    ("seconds", "num_envs", "num_samplers", "choice"),
    [
        (0.005, 8, 1, "process"),  # 40 ms or 10 ms
        (0.005, 8, 2, "process"),  # 2 cores for each sampler: 40 ms or 20 ms
        (0.005, 8, 3, "inline"),  # a core for each
        (0.005, 1, 1, "inline"),  # nothing to share
        (0.0, 8, 1, "inline"),  # nothing to gain
    ],
)
def test_processes_where_they_gain(
    decided: Callable[..., Any], seconds: float, num_envs: int, num_samplers: int, choice: str
) -> None:
    (decision,) = decided(seconds, num_envs, num_samplers)
    assert (decision.key, decision.value) == ("vectorization", choice)


def test_the_reason_tells_what_was_measured(decided: Callable[..., Any]) -> None:
    (decision,) = decided(0.01, 4)
    told = re.fullmatch(
        r"a step takes ([\d.]+) ms, so that 4 environments in 4 processes are ([\d.]+) times as fast",
        decision.reason,
    )
    assert told
    milliseconds = float(told[1])
    assert milliseconds >= 10  # what it sleeps; a busy machine adds to that
    assert float(told[2]) == pytest.approx(4 * milliseconds / (milliseconds + 0.2), abs=0.06)


def test_nothing_is_built_where_there_is_nothing_to_choose(decided: Callable[..., Any]) -> None:
    decided(0.0, 1)
    assert Slow.built == 0
    assert decided(0.0, 8, vectorization="process") == []
    assert Slow.built == 0


def test_measuring_a_slow_environment_takes_few_steps(decided: Callable[..., Any]) -> None:
    (decision,) = decided(0.2, 8)
    assert Slow.stepped == 4  # one to begin with and three measured
    assert decision.value == "process"


def test_an_environment_that_cannot_be_stepped_is_left_for_later(decided: Callable[..., Any]) -> None:
    (decision,) = decided(-1.0, 8)
    assert decision.value == "inline"
    assert decision.reason == "a step could not be measured: ArithmeticError: out of range"


def test_an_environment_that_leaves_the_process_is_stepped_inline(decided: Callable[..., Any]) -> None:
    (decision,) = decided(-9, 8)
    assert (decision.value, decision.reason) == ("inline", "a step could not be measured: SystemExit: 9")
