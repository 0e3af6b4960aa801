"""The functions that OmniRL calls for ``env: {module: gymnasium}``, gathered in :data:`BACKEND`.

It brings no loops of its own: rollouts are collected and episodes evaluated by :mod:`omnirl.loops`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from omnirl.api.environment import EnvBackend, EnvContext, Environment
from omnirl.api.errors import ConfigError, SpaceError
from omnirl.api.specs import EnvSpec
from omnirl.envs.gymnasium import viewing
from omnirl.envs.gymnasium.checking import check
from omnirl.envs.gymnasium.composite import observation_codec
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.figures import EpisodeFigures, FirstEpisode
from omnirl.envs.gymnasium.images import Images
from omnirl.envs.gymnasium.images import mistakes as image_mistakes
from omnirl.envs.gymnasium.images import notes as image_notes
from omnirl.envs.gymnasium.making import make
from omnirl.envs.gymnasium.metric_config import parse
from omnirl.envs.gymnasium.native import NativeEnvironment, make_vector
from omnirl.envs.gymnasium.processes import ProcessEnvironment
from omnirl.envs.gymnasium.spaces import UnsupportedSpaceError, action_codec
from omnirl.envs.gymnasium.vector import InProcessEnvironment, OneRow, close_all
from omnirl.envs.gymnasium.vectorization import cores, decide


def get_env_spec(config: GymnasiumConfig) -> EnvSpec:
    """The spaces of the environment, in OmniRL's terms; builds one to ask it and closes it again.

    Raises a ConfigError with a line for every space and render mode that cannot be used; a SpaceError where
    a space is among them.
    """
    env = OneRow(make_vector(config, 1, False)) if config.vectorization == "native" else make(config)
    try:
        if config.action_mask == "info":
            env.reset(seed=0)  # whether there is a mask is told by an episode only
        lines: list[str] = []
        images = Images(config.layout, config.frame_stack)
        try:
            observation, _ = observation_codec(env.observation_space, images)
        except UnsupportedSpaceError as error:
            lines.append(f"env.id: {config.id!r}: {error}")
        try:
            action, _ = action_codec(env.action_space)
        except UnsupportedSpaceError as error:
            lines.append(f"env.id: {config.id!r}: {error}")
        mistakes = viewing.mistakes(config, env, config.render_mode, "env.render_mode")
        mistakes += _reward_mistakes(config, env)
        mistakes += [] if lines else image_mistakes(observation, images)
        if lines:
            raise SpaceError(lines + mistakes)
        if mistakes:
            raise ConfigError(mistakes)
        columns = (parse(text).column for text in config.metrics)
        names = (*EnvSpec.eval_metrics, *columns)
        return EnvSpec(observation, action, names, config.id, image_notes(observation, images))
    finally:
        env.close()


def _reward_mistakes(config: GymnasiumConfig, env: gymnasium.Env[Any, Any]) -> list[str]:
    """Environments of several objectives (MO-Gymnasium) say so in ``reward_space``."""
    space = env.get_wrapper_attr("reward_space") if env.has_wrapper_attr("reward_space") else None
    size = int(np.prod(getattr(space, "shape", None) or (1,)))
    if size == 1:
        return []
    return [
        f"env.id: {config.id!r} pays {size} rewards per step, and algorithms take one: weigh them in env.wrappers, "
        "such as {class: 'mo_gymnasium.wrappers:LinearReward'}"
    ]


def build_env(config: GymnasiumConfig, context: EnvContext) -> Environment:
    """``context.num_envs`` environments, stepped together as ``env.vectorization`` says. Raises ConfigError.

    What somebody watches is stepped in this process, whose window it is.
    """
    watched = context.view or (context.role == "evaluator" and config.render_mode is not None)
    if config.vectorization == "native":
        if watched:
            raise ConfigError("env.vectorization: native environments cannot be watched: use inline")
        vector = make_vector(config, context.num_envs, context.role == "sampler")
        return NativeEnvironment(vector, Images(config.layout, config.frame_stack))
    if config.vectorization == "process" and context.num_envs > 1 and not watched:
        return ProcessEnvironment(config, context, cores())
    return build_inline(config, context)


def build_inline(config: GymnasiumConfig, context: EnvContext) -> InProcessEnvironment:
    """``context.num_envs`` environments, stepped one after the other in this process. Raises ConfigError.

    Only evaluators render, and only the first of their environments opens a window.
    """
    evaluates = context.role == "evaluator"
    mode = viewing.render_mode(config, context.view) if evaluates else None
    if context.view:
        _check_view(config, mode)
    envs: list[gymnasium.Env[Any, Any]] = []
    try:
        for index in range(context.num_envs):
            renders = evaluates and (index == 0 or mode != "human")
            env = make(config, mode if renders else None, training=not evaluates)
            if config.metrics:
                figures = EpisodeFigures if evaluates else FirstEpisode
                env = figures(env, config.metrics, config.id)
            envs.append(env)
        return InProcessEnvironment(envs, Images(config.layout, config.frame_stack))
    except UnsupportedSpaceError as error:
        close_all(envs)
        raise ConfigError(f"env.id: {config.id!r}: {error}") from error
    except ConfigError:
        close_all(envs)
        raise


def _check_view(config: GymnasiumConfig, mode: str | None) -> None:
    """Raise ConfigError where the environment cannot be watched, before its constructor fails in its own words."""
    env = make(config)
    try:
        lines = viewing.mistakes(config, env, mode, "env.id")
    finally:
        env.close()
    if lines:
        raise ConfigError(lines)


BACKEND = EnvBackend(
    get_env_spec=get_env_spec,
    build_env=build_env,
    views=viewing.VIEWS,
    decide=decide,
    check=check,
)
