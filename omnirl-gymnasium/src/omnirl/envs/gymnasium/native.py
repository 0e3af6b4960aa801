"""Use a vector environment as it is: ``env.vectorization: native``.

Only one that never returns a row which is no transition: one that is reset by a mask, which takes each episode's seed,
or one that resets itself in the same step, whose episodes then begin from no seed of ours.

Letters: B sub-environments; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator

from omnirl.api.data import Array, Obs, Step
from omnirl.api.errors import ConfigError
from omnirl.envs.gymnasium.atari import is_atari
from omnirl.envs.gymnasium.composite import allocate, observation_codec, rows
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.images import Images
from omnirl.envs.gymnasium.making import explain, find
from omnirl.envs.gymnasium.spaces import action_codec

Vector = gymnasium.vector.VectorEnv[Any, Any, Any]
_KEY = "env.vectorization"
_EVALUATED = {"reward_clipping": False, "episodic_life": False}
"""Arguments of ALE's vector environment that evaluation never sees."""


class NativeEnvironment:
    """The B rows of a vector environment as one :class:`omnirl.api.Environment`; its arrays are copied."""

    num_envs: int
    seedable: bool

    def __init__(self, vector: Vector, images: Images) -> None:
        self._vector = vector
        self.num_envs = count = vector.num_envs
        self.seedable = _autoreset(vector) == "Disabled"
        self.observation, self._encode = observation_codec(vector.single_observation_space, images)
        self.action, self._decode = action_codec(vector.single_action_space)
        self._obs, self._final = (allocate(self.observation, (count,)) for _ in range(2))
        self._rows, self._final_rows = list(rows(self._obs, count)), list(rows(self._final, count))
        self._begun = False

    def reset(self, index: int, seed: int) -> Obs:
        """Begin an episode of row ``index`` from ``seed``; where it resets itself, the one that has begun already."""
        if not self._begun:
            self._write(self._vector.reset(seed=seed)[0], self._rows)
            self._begun = True
        if self.seedable:
            mask = np.arange(self.num_envs) == index
            observations, _ = self._vector.reset(seed=seed, options={"reset_mask": mask})
            for row, observation in enumerate(self._each(observations)):
                if row == index:
                    self._encode(observation, self._rows[index])
        row_of = self._rows[index]
        return (
            {name: array.copy() for name, array in row_of.items()}
            if isinstance(row_of, dict)
            else np.array(row_of)
        )

    def step(self, action: Array) -> Step:
        """Step all rows with ``action`` [B, *act]. Raises KeyError where a same-step reset hides the final row."""
        observations, rewards, terminated, truncated, info = self._vector.step(
            np.asarray(self._decode(action))
        )
        self._write(observations, self._rows)
        final = self._obs
        ended = np.flatnonzero(np.asarray(terminated) | np.asarray(truncated))
        if ended.size and not self.seedable:
            finals = info["final_obs"]
            for index in ended.tolist():
                self._encode(finals[index], self._final_rows[index])
            final = self._final
        return Step(
            self._obs, np.asarray(rewards, np.float32), np.array(terminated), np.array(truncated), final
        )

    def close(self) -> None:
        """Close the vector environment."""
        self._vector.close()

    def _each(self, observations: Any) -> Iterable[Any]:
        if isinstance(observations, np.ndarray):
            return observations
        return gymnasium.vector.utils.iterate(self._vector.observation_space, observations)

    def _write(self, observations: Any, into: list[Any]) -> None:
        for observation, row in zip(self._each(observations), into, strict=True):
            self._encode(observation, row)


def make_vector(config: GymnasiumConfig, num_envs: int, training: bool) -> Vector:
    """The vector environment that the id is registered with. Raises ConfigError where it cannot be used as it is."""
    lines = [
        f"{_KEY}: native: {what} for single environments: use inline or process"
        for what, wanted in (
            ("env.wrappers are", config.wrappers),
            ("env.metrics are", config.metrics),
            ("env.action_mask is", config.action_mask != "observation"),
        )
        if wanted
    ]
    registration = find(config)
    if registration.vector_entry_point is None:
        lines.append(f"{_KEY}: native: {registration.id!r} has no vector version: use inline or process")
    if lines:
        raise ConfigError(lines)
    kwargs = dict(config.kwargs)
    if not training and is_atari(registration.vector_entry_point):
        kwargs |= _EVALUATED
    failure: Exception | None = None
    for mode in _modes(registration.vector_entry_point):
        try:
            vector = gymnasium.make_vec(
                registration, num_envs=num_envs, vectorization_mode="vector_entry_point", **kwargs, **mode
            )
        except Exception as error:  # an environment's constructor may raise anything
            failure = failure or error
            continue
        if _autoreset(vector) in ("Disabled", "SameStep"):
            return vector
        vector.close()
        raise ConfigError(
            f"{_KEY}: native: {registration.id!r} resets itself in the next step, and the row after an end is no "
            "transition: use inline, which is exact, or process"
        )
    assert failure is not None
    raise ConfigError(explain(failure, config, registration)) from failure


def _modes(entry: Any) -> Iterator[dict[str, Any]]:
    """Arguments to try, the best first: a reset by mask takes seeds, a reset in the same step at least no time."""
    creator = load_env_creator(entry) if isinstance(entry, str) else entry
    known = getattr(gymnasium.vector, "AutoresetMode", None)
    if known is not None and "autoreset_mode" in inspect.signature(creator).parameters:
        yield {"autoreset_mode": known.DISABLED}
        yield {"autoreset_mode": known.SAME_STEP}
    yield {}


def _autoreset(vector: Vector) -> str:
    mode = vector.metadata.get("autoreset_mode")
    return str(getattr(mode, "value", mode))
