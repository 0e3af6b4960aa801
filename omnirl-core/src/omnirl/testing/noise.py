"""An environment of random numbers for any EnvSpec: what an algorithm is fed where nothing is to be learned.

Letters: B sub-environments; ``*obs`` the spec's shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnirl.api.data import Array, Obs, Step
from omnirl.api.specs import (
    ACTION_MASK,
    ActionSpec,
    ArraySpec,
    DictSpec,
    DiscreteAction,
    EnvSpec,
    MultiDiscreteAction,
    ObservationSpec,
)


@dataclass(frozen=True)
class Noise:
    """What the numbers are like.

    terminates, truncates: the probability of either end at each step. reward: the same reward always, or None
    for standard normal ones. scale: of the observations, which are standard normal times this.
    """

    terminates: float = 0.1
    truncates: float = 0.1
    reward: float | None = None
    scale: float = 1.0


class NoiseEnvironment:
    """B sub-environments whose episodes depend on their seeds alone, whatever the actions.

    It keeps nothing of what it hands out, and hands out new arrays at every step.
    """

    seedable = True

    def __init__(self, spec: EnvSpec, num_envs: int, noise: Noise | None = None) -> None:
        self.num_envs = num_envs
        self._spec = spec.observation
        self._sizes = _choices(spec.action)
        self._noise = noise or Noise()
        self._generators = [np.random.default_rng(0) for _ in range(num_envs)]

    def reset(self, index: int, seed: int) -> Obs:
        """The first observation [*obs] that belongs to ``seed``."""
        self._generators[index] = np.random.default_rng(seed)
        return self._observe(self._generators[index])

    def step(self, action: Array) -> Step:
        """The next row of every sub-environment."""
        noise = self._noise
        chance = np.array([generator.random(2) for generator in self._generators])
        reward = np.array([generator.standard_normal() for generator in self._generators], np.float32)
        rows = [self._observe(generator) for generator in self._generators]
        terminated = chance[:, 0] < noise.terminates
        return Step(
            obs=_stacked(rows, self._spec),
            reward=reward if noise.reward is None else np.full_like(reward, noise.reward),
            terminated=terminated,
            truncated=(chance[:, 1] < noise.truncates) & ~terminated,
            final_obs=_stacked(rows, self._spec),
        )

    def close(self) -> None:
        """Nothing is held."""

    def _observe(self, generator: np.random.Generator) -> Obs:
        if isinstance(self._spec, DictSpec):
            return {
                name: self._mask(generator) if name == ACTION_MASK else self._entry(entry, generator)
                for name, entry in self._spec.entries
            }
        return self._entry(self._spec, generator)

    def _entry(self, spec: ArraySpec, generator: np.random.Generator) -> Array:
        dtype = np.dtype(spec.dtype)
        if dtype.kind == "f":
            numbers = generator.standard_normal(spec.shape) * self._noise.scale
            return np.asarray(numbers, dtype)
        if dtype.kind == "b":
            return generator.random(spec.shape) < 0.5
        return generator.integers(0, min(255, np.iinfo(dtype).max), spec.shape).astype(dtype)

    def _mask(self, generator: np.random.Generator) -> Array:
        """About half of the actions of each choice are legal, at least one."""
        parts = [generator.random(size) < 0.5 for size in self._sizes]
        for part in parts:
            part[generator.integers(len(part))] = True
        return np.concatenate(parts)


def _choices(action: ActionSpec) -> tuple[int, ...]:
    """How many actions each choice is between; none where they are continuous."""
    if isinstance(action, DiscreteAction):
        return (action.n,)
    return action.nvec if isinstance(action, MultiDiscreteAction) else ()


def _stacked(rows: list[Obs], spec: ObservationSpec) -> Obs:
    if isinstance(spec, DictSpec):
        return {name: np.stack([dict(row)[name] for row in rows]) for name, _ in spec.entries}
    return np.stack([np.asarray(row) for row in rows])
