"""Fakes that check what they are given, so that a test of one part finds the mistakes of its neighbours.

Every check raises AssertionError with what was expected. Letters: B sub-environments; ``*obs``, ``*act`` the
spec's shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from omnirl.api.algorithm import ActContext
from omnirl.api.data import ActionSample, Array, Obs, Step
from omnirl.api.environment import Environment
from omnirl.api.specs import (
    ACTION_MASK,
    ActionSpec,
    ArraySpec,
    ContinuousAction,
    DiscreteAction,
    EnvSpec,
    ObservationSpec,
)
from omnirl.loops.forms import array_misfit, observation_misfits


def check_observation(obs: Obs, spec: ObservationSpec, leading: tuple[int, ...]) -> None:
    """``obs`` is ``[*leading, *obs]`` of the spec's shapes and dtypes, a Mapping exactly when the spec is
    one."""
    for misfit in observation_misfits("observation", obs, spec, leading, exact=True):
        raise AssertionError(misfit)


def check_action(action: Array, spec: ActionSpec, num_envs: int) -> None:
    """``action`` is [B, *act] of the spec's dtype; a discrete one is in range."""
    _check_array("action", action, (num_envs, *spec.shape), spec.dtype)
    if isinstance(spec, ContinuousAction):
        assert np.isfinite(action).all(), "an action is not finite"
    else:
        upper = np.asarray(spec.n if isinstance(spec, DiscreteAction) else spec.nvec)
        assert ((action >= 0) & (action < upper)).all(), f"an action is outside 0 ... {upper - 1}: {action}"


def check_legal(action: Array, obs: Obs, spec: ActionSpec) -> None:
    """No row of ``action`` [B, *act] is one that the ``action_mask`` of ``obs`` forbids, if it has one."""
    if not isinstance(obs, Mapping) or ACTION_MASK not in obs:
        return
    assert not isinstance(spec, ContinuousAction), "continuous actions have no mask"
    begins = [0] if isinstance(spec, DiscreteAction) else np.cumsum((0, *spec.nvec[:-1]))
    mask, places = obs[ACTION_MASK], action.reshape(len(action), -1) + begins
    for row, taken in enumerate(places):
        assert mask[row, taken].all(), f"action {action[row]} is illegal: the mask is {mask[row].astype(int)}"


def _check_array(what: str, array: Array, shape: tuple[int, ...], dtype: str) -> None:
    misfit = array_misfit((what, array, shape, dtype), exact=True)
    assert not misfit, misfit


class FakeStreams:
    """Streams one can predict: the seed of episode k of sub-environment i is ``1000 * i + k``.

    ``target_steps`` is the run's stop target. ``episodes`` lists the ``(i, k)`` asked for.
    """

    def __init__(self, seed: int = 0, target_steps: int = 1000) -> None:
        self.episodes: list[tuple[int, int]] = []
        self._seed = seed
        self._target_steps = target_steps

    def policy(self, number: int) -> np.random.Generator:
        """A generator of ``(seed, number)``."""
        return np.random.default_rng([self._seed, number])

    def episode_seed(self, index: int, episode: int) -> int:
        """``1000 * index + episode``."""
        self.episodes.append((index, episode))
        return 1000 * index + episode

    def progress(self, env_steps: int) -> float:
        """The fraction of ``target_steps``, at most 1."""
        return min(1.0, env_steps / self._target_steps)


class FakePolicy:
    """Acts at random from ``act.rng`` alone, greedily with zeros, and checks every observation and context.

    Its one weight is ``"version"``, a scalar array; every row of a sample carries it in the extra
    ``"version"``, so a test can tell which weights acted. ``calls`` counts the samples, and is what it holds
    between rollouts."""

    def __init__(self, spec: EnvSpec, num_envs: int) -> None:
        self.calls = 0
        self.contexts: list[ActContext] = []
        self._spec = spec
        self._num_envs = num_envs
        self._version = np.zeros((), np.int64)

    def choose_action(self, obs: Obs, act: ActContext) -> Array:
        """Zeros, brought inside the bounds; the first legal actions where there is a mask."""
        self._check(obs, act)
        action = self._spec.action
        if isinstance(obs, Mapping) and ACTION_MASK in obs:
            return self._legal(np.asarray(obs[ACTION_MASK], np.float32))
        zeros = np.zeros((self._num_envs, *action.shape), action.dtype)
        return np.clip(zeros, *action.bounds()) if isinstance(action, ContinuousAction) else zeros

    def sample_action(self, obs: Obs, act: ActContext) -> ActionSample:
        """Uniform within the bounds or among what is legal, standard normal without bounds; and the version."""
        self._check(obs, act)
        self.calls += 1
        self.contexts.append(act)
        spec, shape = self._spec.action, (self._num_envs, *self._spec.action.shape)
        if isinstance(obs, Mapping) and ACTION_MASK in obs:
            mask = obs[ACTION_MASK]
            action: Array = self._legal(mask * act.rng.uniform(0.5, 1.0, mask.shape))
        elif isinstance(spec, DiscreteAction):
            action = act.rng.integers(0, spec.n, shape)
        elif not isinstance(spec, ContinuousAction):
            action = act.rng.integers(0, np.asarray(spec.nvec), shape)
        elif spec.bounded:
            action = act.rng.uniform(*spec.bounds(), shape).astype(np.float32)
        else:
            action = act.rng.standard_normal(shape, np.float32)
        return ActionSample(action, {"version": np.full(self._num_envs, self._version)})

    def _legal(self, liking: Array) -> Array:
        """The most liked action of each position, [B, n] or the positions' one after the other -> [B, *act]."""
        spec = self._spec.action
        assert not isinstance(spec, ContinuousAction), "continuous actions have no mask"
        if isinstance(spec, DiscreteAction):
            return np.asarray(liking.argmax(axis=1))
        parts = np.split(liking, np.cumsum(spec.nvec)[:-1], axis=1)
        return np.stack([part.argmax(axis=1) for part in parts], axis=1)

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Take ``{"version": scalar}``; KeyError for any other names."""
        if set(weights) != {"version"}:
            raise KeyError(f"the weights are named {sorted(weights)}, not ['version']")
        self._version = np.asarray(weights["version"], np.int64)

    def state_dict(self) -> Mapping[str, Any]:
        """The number of calls."""
        return {"calls": self.calls}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on counting."""
        self.calls = int(state["calls"])

    def _check(self, obs: Obs, act: ActContext) -> None:
        check_observation(obs, self._spec.observation.stacked(), (self._num_envs,))
        _check_array("act.first", act.first, (self._num_envs,), "bool")
        assert act.env_steps >= 0, f"env_steps is {act.env_steps}"
        assert 0.0 <= act.progress <= 1.0, f"progress is {act.progress}"


class RecordingEnvironment:
    """Wraps an Environment, checks both sides of it against ``spec`` and records what was asked.

    ``resets`` lists ``(index, seed)``, ``actions`` a copy of every action batch, ``closed`` counts the
    calls. A step before a due reset is an AssertionError, as is one after ``close``."""

    def __init__(self, environment: Environment, spec: EnvSpec) -> None:
        self.num_envs = environment.num_envs
        self.seedable = environment.seedable
        self.resets: list[tuple[int, int]] = []
        self.actions: list[Array] = []
        self.closed = 0
        self._environment = environment
        self._spec = spec
        self._due = np.ones(self.num_envs, np.bool_)

    def reset(self, index: int, seed: int) -> Obs:
        """Reset the wrapped one."""
        assert 0 <= index < self.num_envs, f"there is no sub-environment {index}"
        assert isinstance(seed, int), f"a seed is an int, not {type(seed).__name__}"
        self.resets.append((index, seed))
        self._due[index] = False
        obs = self._environment.reset(index, seed)
        check_observation(obs, self._spec.observation, ())
        return obs

    def step(self, action: Array) -> Step:
        """Step the wrapped one."""
        assert not self.closed, "stepped after close"
        assert not self._due.any(), (
            f"no reset of sub-environments {np.flatnonzero(self._due).tolist()} since their end"
        )
        check_action(action, self._spec.action, self.num_envs)
        self.actions.append(action.copy())
        step = self._environment.step(action)
        check_observation(step.obs, self._spec.observation, (self.num_envs,))
        _check_array("reward", step.reward, (self.num_envs,), "float32")
        _check_array("terminated", step.terminated, (self.num_envs,), "bool")
        _check_array("truncated", step.truncated, (self.num_envs,), "bool")
        self._due = step.terminated | step.truncated
        if self._due.any():
            check_observation(step.final_obs, self._spec.observation, (self.num_envs,))
        return step

    def close(self) -> None:
        """Close the wrapped one."""
        self.closed += 1
        self._environment.close()


def vector_spec(size: int, action: ActionSpec) -> EnvSpec:
    """An EnvSpec of ``size`` float32 features and ``action``: what most tests need."""
    return EnvSpec(observation=ArraySpec((size,)), action=action)
