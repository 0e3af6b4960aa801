"""The functions that OmniRL calls for ``env: {module: gymnasium}``, gathered in :data:`BACKEND`.

It brings no loops of its own: rollouts are collected and episodes evaluated by :mod:`omnirl.loops`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import gymnasium

from omnirl.api.environment import EnvBackend, EnvContext
from omnirl.api.errors import ConfigError, SpaceError
from omnirl.api.specs import EnvSpec
from omnirl.envs.gymnasium.composite import observation_codec
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.making import make
from omnirl.envs.gymnasium.spaces import UnsupportedSpaceError, action_codec
from omnirl.envs.gymnasium.vector import InProcessEnvironment, close_all

_DRAW_WITH_PYGAME = tuple(f"gymnasium.envs.{family}." for family in ("classic_control", "toy_text", "box2d"))
"""Gymnasium's own families that find out at the first picture only that pygame is missing."""


def get_env_spec(config: GymnasiumConfig) -> EnvSpec:
    """The spaces of the environment, in OmniRL's terms; builds one to ask it and closes it again.

    Raises a ConfigError with a line for every space and render mode that cannot be used; a SpaceError where
    a space is among them.
    """
    env = make(config)
    try:
        if config.action_mask == "info":
            env.reset(seed=0)  # whether there is a mask is told by an episode only
        lines: list[str] = []
        try:
            observation, _ = observation_codec(env.observation_space)
        except UnsupportedSpaceError as error:
            lines.append(f"env.id: {config.id!r}: {error}")
        try:
            action, _ = action_codec(env.action_space)
        except UnsupportedSpaceError as error:
            lines.append(f"env.id: {config.id!r}: {error}")
        mistakes = _render_mistakes(config, env)
        if lines:
            raise SpaceError(lines + mistakes)
        if mistakes:
            raise ConfigError(mistakes)
        return EnvSpec(observation=observation, action=action, id=config.id)
    finally:
        env.close()


def build_env(config: GymnasiumConfig, context: EnvContext) -> InProcessEnvironment:
    """``context.num_envs`` environments, stepped together. Raises ConfigError.

    Only evaluators render, and only the first of their environments opens a window.
    """
    evaluates = context.role == "evaluator"
    envs: list[gymnasium.Env[Any, Any]] = []
    try:
        for index in range(context.num_envs):
            renders = evaluates and (index == 0 or config.render_mode != "human")
            mode = config.render_mode if renders else None
            envs.append(make(config, mode, training=not evaluates))
        return InProcessEnvironment(envs)
    except UnsupportedSpaceError as error:
        close_all(envs)
        raise ConfigError(f"env.id: {config.id!r}: {error}") from error
    except ConfigError:
        close_all(envs)
        raise


def _render_mistakes(config: GymnasiumConfig, env: gymnasium.Env[Any, Any]) -> list[str]:
    modes = list(env.metadata.get("render_modes") or ())
    wanted = config.render_mode
    if wanted is None:
        return []
    # Gymnasium shows the pictures of rgb_array in a window where an environment has none of its own.
    if wanted not in modes and not (wanted == "human" and {"rgb_array", "rgb_array_list"} & set(modes)):
        can = f"it can {', '.join(modes)}" if modes else "it cannot render at all"
        return [f"env.render_mode: {config.id!r} cannot render {wanted} ({can})"]
    if type(env.unwrapped).__module__.startswith(_DRAW_WITH_PYGAME) and find_spec("pygame") is None:
        return [
            f'env.render_mode: {config.id!r} draws with pygame; run: pip install "gymnasium[classic-control]"'
        ]
    return []


BACKEND = EnvBackend(get_env_spec=get_env_spec, build_env=build_env, seeding="cheap")
