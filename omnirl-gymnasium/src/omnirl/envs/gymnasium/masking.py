"""Environments that tell the legal actions outside their observation, brought into the one form that OmniRL knows.

``env.action_mask`` says where they are told. Afterwards they are the entry ``action_mask`` of a Dict observation, and
what was observed before is the entry ``observation``, or the Dict's own entries.
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from omnirl.api.errors import ConfigError
from omnirl.api.specs import ACTION_MASK

Source = Literal["observation", "info", "method", "none"]
"""The observation's own entry, ``info["action_mask"]``, the method ``action_masks()``, or none at all."""


def masked(env: gymnasium.Env[Any, Any], source: Source, name: str) -> gymnasium.Env[Any, Any]:
    """The environment with its mask where algorithms look for it. ConfigError where it tells none there."""
    if source == "none":
        space = env.observation_space
        return WithoutMask(env) if isinstance(space, spaces.Dict) and ACTION_MASK in space.spaces else env
    return env if source == "observation" else WithMask(env, source, name)


class WithoutMask(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Leaves the entry ``action_mask`` out: every action may be chosen."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, spaces.Dict)
        self.observation_space = spaces.Dict(
            [(name, space) for name, space in env.observation_space.spaces.items() if name != ACTION_MASK]
        )

    def observation(self, observation: Any) -> Any:
        """The other entries."""
        return {name: value for name, value in observation.items() if name != ACTION_MASK}


class WithMask(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds the entry ``action_mask`` from ``info`` or from the environment's method."""

    def __init__(self, env: gymnasium.Env[Any, Any], source: Source, name: str) -> None:
        super().__init__(env)
        self._source, self._name = source, name
        if source == "method":
            try:
                self._ask = env.get_wrapper_attr("action_masks")
            except AttributeError:
                raise ConfigError(f"env.action_mask: {name!r} has no method action_masks()") from None
        mask = spaces.MultiBinary(_count(env.action_space, name))
        space = env.observation_space
        self._named = isinstance(space, spaces.Dict)
        entries = list(space.spaces.items()) if isinstance(space, spaces.Dict) else [("observation", space)]
        if any(entry == ACTION_MASK for entry, _ in entries):
            raise ConfigError(
                f"env.action_mask: {name!r} observes {ACTION_MASK} already (leave the key out, or use none)"
            )
        self.observation_space = spaces.Dict([*entries, (ACTION_MASK, mask)])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with_mask(observation, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_mask(observation, info), reward, terminated, truncated, info

    def _with_mask(self, observation: Any, info: dict[str, Any]) -> dict[str, Any]:
        if self._source == "info":
            if ACTION_MASK not in info:
                raise ConfigError(f"env.action_mask: {self._name!r} tells no action_mask in info")
            mask = info[ACTION_MASK]
        else:
            mask = self._ask()
        entries = dict(observation) if self._named else {"observation": observation}
        return {**entries, ACTION_MASK: np.asarray(mask).reshape(-1)}


def _count(space: spaces.Space[Any], name: str) -> int:
    """How many entries a mask has: the actions, or those of all positions."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.sum())
    if isinstance(space, spaces.MultiBinary):
        return 2 * int(np.prod(space.shape))
    raise ConfigError(f"env.action_mask: {name!r} has no discrete actions that a mask could forbid")
