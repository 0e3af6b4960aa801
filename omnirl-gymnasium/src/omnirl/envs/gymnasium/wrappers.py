"""Put the wrappers of ``env.wrappers`` around an environment, in their order.

Gymnasium's own are used where it has them. Each mistake is a ConfigError whose line begins with the entry's place,
``env.wrappers.0.resize``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import (
    FlattenObservation,
    GrayscaleObservation,
    MaxAndSkipObservation,
    ResizeObservation,
    TimeLimit,
    TransformObservation,
    TransformReward,
)

from omnirl.api.errors import ConfigError
from omnirl.envs.gymnasium import wrapper_config as config
from omnirl.envs.gymnasium.atari import is_atari, preprocess
from omnirl.envs.gymnasium.messages import install, one_line

Env: TypeAlias = gymnasium.Env[Any, Any]


def wrap(env: Env, entries: tuple[config.WrapperEntry, ...], training: bool, stickiness: float = 0.0) -> Env:
    """``env`` in the wrappers of ``entries``, the first one innermost.

    Where not ``training``, without what only training may see: clipped and scaled rewards, lives that end episodes.
    stickiness: that of an Atari game whose preprocessing is among the wrappers. Raises ConfigError.
    """
    for index, entry in enumerate(entries):
        name = "class" if isinstance(entry, config.ClassEntry) else next(iter(type(entry).model_fields))
        try:
            env = _one(env, entry, training, stickiness)
        except ConfigError as error:
            raise ConfigError([f"env.wrappers.{index}.{name}: {line}" for line in error.lines]) from error
        except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
            hint = install("image") if "cv2" in str(error) or "opencv" in str(error) else one_line(error)
            raise ConfigError(f"env.wrappers.{index}.{name}: needs more than is installed; {hint}") from error
        except Exception as error:  # a wrapper's constructor may raise anything
            raise ConfigError(
                f"env.wrappers.{index}.{name}: does not fit what it wraps: {one_line(error)}"
            ) from error
    return env


def _one(env: Env, entry: config.WrapperEntry, training: bool, stickiness: float) -> Env:
    if isinstance(entry, config.ClassEntry):
        if entry.training_only and not training:
            return env
        return _by_path(env, entry)
    if isinstance(entry, config.AtariEntry):
        return _atari(env, entry.atari, stickiness, training)
    name = next(iter(type(entry).model_fields))
    return _BUILDERS[name](env, getattr(entry, name), training)


def _atari(env: Env, parameters: config.Atari, stickiness: float, training: bool) -> Env:
    if env.spec is None or not is_atari(env.spec.entry_point):
        raise ConfigError("is for Atari games (ALE/...) only")
    if env is not env.unwrapped and not isinstance(env, TimeLimit):
        raise ConfigError("must be the first wrapper: it reads the screen of the game itself")
    env = preprocess(env, parameters, stickiness, training)
    return TransformReward(env, _sign) if parameters.clip_reward and training else env


def _sign(reward: Any) -> float:
    return float(reward > 0) - float(reward < 0)


def _resize(env: Env, parameters: config.Resize, training: bool) -> Env:
    return ResizeObservation(env, (parameters.height, parameters.width))


def _grey(env: Env, parameters: config.Grey, training: bool) -> Env:
    return GrayscaleObservation(env)


def _crop(env: Env, parameters: config.Crop, training: bool) -> Env:
    space = env.observation_space
    if not isinstance(space, spaces.Box) or len(space.shape) not in (2, 3):
        raise ConfigError(f"needs a picture [height, width] or [height, width, channels], not {space}")
    height, width = space.shape[:2]
    if parameters.top + parameters.bottom >= height or parameters.left + parameters.right >= width:
        raise ConfigError(f"leaves nothing of a picture of {height} x {width}")
    inside = np.s_[parameters.top : height - parameters.bottom, parameters.left : width - parameters.right]
    smaller = spaces.Box(space.low[inside], space.high[inside], dtype=space.dtype.type)
    return TransformObservation(env, lambda picture: picture[inside], smaller)


def _frame_skip(env: Env, parameters: config.FrameSkip, training: bool) -> Env:
    if parameters.frames == 1:
        return env
    if parameters.max_last_two:
        return MaxAndSkipObservation(env, parameters.frames)
    return FrameSkip(env, parameters.frames)


def _time_limit(env: Env, parameters: config.TimeLimit, training: bool) -> Env:
    return TimeLimit(env, parameters.steps)


def _reward_scale(env: Env, parameters: config.RewardScale, training: bool) -> Env:
    factor = parameters.factor
    return TransformReward(env, lambda reward: float(reward) * factor) if training else env


def _reward_clip(env: Env, parameters: config.RewardClip, training: bool) -> Env:
    low, high = parameters.low, parameters.high
    return TransformReward(env, lambda reward: min(max(float(reward), low), high)) if training else env


def _flatten(env: Env, parameters: config.Flatten, training: bool) -> Env:
    return FlattenObservation(env)


_BUILDERS: dict[str, Callable[[Env, Any, bool], Env]] = {
    "resize": _resize,
    "grey": _grey,
    "crop": _crop,
    "frame_skip": _frame_skip,
    "time_limit": _time_limit,
    "reward_scale": _reward_scale,
    "reward_clip": _reward_clip,
    "flatten": _flatten,
}


def _by_path(env: Env, entry: config.ClassEntry) -> Env:
    module_name, _, name = entry.class_.partition(":")
    try:
        wrapper = getattr(importlib.import_module(module_name), name)
    except Exception as error:  # a third party's module may raise anything
        raise ConfigError(f"cannot import {entry.class_!r}: {one_line(error)}") from error
    wrapped = wrapper(env, **entry.kwargs)
    if not isinstance(wrapped, gymnasium.Env):
        raise ConfigError(f"{entry.class_!r} made a {type(wrapped).__name__}, not a gymnasium.Env")
    return wrapped


class FrameSkip(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Repeat each action ``frames`` times, or until the episode ends, and sum the rewards."""

    def __init__(self, env: Env, frames: int) -> None:
        super().__init__(env)
        self._frames = frames

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step of the agent."""
        total = 0.0
        for _ in range(self._frames):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return observation, total, terminated, truncated, info
