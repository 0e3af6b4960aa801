"""Environments of a few lines, registered for one test each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces


class Count(gymnasium.Env[Any, Any]):
    """obs = [k], k the step index, from one array that is used again and again; reward 1; ends at k = T."""

    def __init__(self, T: int = 3, terminates: bool = False, render_mode: str | None = None) -> None:
        self.observation_space = spaces.Box(0, 1000, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.render_mode = render_mode
        self._length, self._terminates = T, terminates
        self._buffer = np.zeros(1, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._buffer[0] = 0
        return self._buffer, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._buffer[0] += 1
        ended = bool(self._buffer[0] >= self._length)
        return self._buffer, 1.0, ended and self._terminates, ended and not self._terminates, {}


class Recorder(gymnasium.Env[Any, Any]):
    """Keeps every action it gets, without copying; returns the observation and the reward it is told to."""

    def __init__(
        self,
        action_space: spaces.Space[Any],
        observation_space: spaces.Space[Any],
        observation: Any,
        reward: Any,
    ) -> None:
        self.action_space, self.observation_space = action_space, observation_space
        self.observation, self.reward = observation, reward
        self.actions: list[Any] = []
        self.closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        return self.observation, {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.actions.append(action)
        return self.observation, self.reward, False, False, {}

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def count() -> type[Count]:
    return Count


@pytest.fixture
def recorder() -> Callable[..., Recorder]:
    def build(
        action_space: spaces.Space[Any] | None = None,
        observation_space: spaces.Space[Any] | None = None,
        observation: Any = (0.0,),
        reward: Any = 0.0,
    ) -> Recorder:
        return Recorder(
            action_space or spaces.Discrete(2),
            observation_space or spaces.Box(-np.inf, np.inf, (1,)),
            np.asarray(observation) if isinstance(observation, tuple) else observation,
            reward,
        )

    return build


@pytest.fixture
def register() -> Iterator[Callable[..., str]]:
    """``register(**what gymnasium.register takes) -> id``; gone after the test."""
    names: list[str] = []

    def add(**registration: Any) -> str:
        name = f"toys/Toy{len(names)}-v0"
        gymnasium.register(id=name, **registration)
        names.append(name)
        return name

    yield add
    for name in names:
        del gymnasium.registry[name]
