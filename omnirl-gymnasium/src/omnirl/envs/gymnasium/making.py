"""Make one environment of Gymnasium from its configuration, and turn what goes wrong into lines for the user.

Every mistake is a ConfigError whose line begins with the key it concerns (``env.id``, ``env.kwargs.x``,
``env.imports``) and names the way out: the nearest id, the ``pip install`` that brings a missing extra.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec as Registration
from gymnasium.envs.registration import load_env_creator

from omnirl.api.errors import ConfigError
from omnirl.envs.gymnasium import atari
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.masking import masked
from omnirl.envs.gymnasium.messages import install, one_line
from omnirl.envs.gymnasium.vector import OneRow
from omnirl.envs.gymnasium.wrapper_config import AtariEntry
from omnirl.envs.gymnasium.wrappers import wrap

_PROVIDERS = {"ALE": ("ale_py", None, "atari"), "MinAtar": ("minatar.gym", "register_envs", "minatar")}
"""Namespaces that an extra brings: module, its function that registers (None: the import does), extra."""
_EXTRAS = {
    "gymnasium.envs.box2d": "box2d",
    "gymnasium.envs.mujoco": "mujoco",
    "ale_py": "atari",
    "minatar": "minatar",
}
"""Families that need more than this distribution: package of the entry point, extra."""
_NEAR = 0.7  # among hundreds of names one of another package is near enough by chance below that


def make(
    config: GymnasiumConfig, render_mode: str | None = None, *, training: bool = False
) -> gymnasium.Env[Any, Any]:
    """The environment in the wrappers that it is registered with, and in those of ``env.wrappers``.

    training: with what only training may see, such as clipped rewards. Raises ConfigError.
    """
    env = _make(config, render_mode)
    try:
        _check_declared(env, config.id)
        env = wrap(env, config.wrappers, training, atari.stickiness(config.kwargs, env.spec))
        return masked(env, config.action_mask, config.id)
    except ConfigError:
        env.close()
        raise


def _check_declared(env: gymnasium.Env[Any, Any], env_id: str) -> None:
    """Raise ConfigError where the environment does not say what its observations and actions are."""
    lines = [
        f"env.id: {env_id!r}: its {name} is missing, or not a space: set it in __init__"
        for name in ("observation_space", "action_space")
        if not isinstance(getattr(env, name, None), gymnasium.Space)
    ]
    if lines:
        raise ConfigError(lines)


def _make(config: GymnasiumConfig, render_mode: str | None) -> gymnasium.Env[Any, Any]:
    registration = find(config)
    kwargs = _arguments(config, registration)
    if render_mode is not None:
        kwargs["render_mode"] = render_mode
    try:
        if registration.entry_point is None:
            return OneRow(gymnasium.make_vec(registration, num_envs=1, **kwargs))
        # Both wrappers left out only check how they are called, which the tests of the loops do once for all.
        plain = dataclasses.replace(registration, order_enforce=False)
        return gymnasium.make(plain, **{"disable_env_checker": True, **kwargs})
    except Exception as error:  # an environment's constructor may raise anything
        raise ConfigError(explain(error, config, registration)) from error


def _arguments(config: GymnasiumConfig, registration: Registration) -> dict[str, Any]:
    """``env.kwargs``, and what the atari wrapper asks of the game."""
    wanted = next((entry.atari for entry in config.wrappers if isinstance(entry, AtariEntry)), None)
    if wanted is None or not atari.is_atari(registration.entry_point):
        return dict(config.kwargs)
    lines = [
        f"env.kwargs.{key}: the atari wrapper {does} itself: leave this out"
        for key, does in (("frameskip", "skips frames"), ("obs_type", "reads the screen"))
        if key in config.kwargs
    ]
    if lines:
        raise ConfigError(lines)
    return {**config.kwargs, **atari.arguments(wanted)}


def find(config: GymnasiumConfig) -> Registration:
    """How the id is registered, after importing what registers it. Raises ConfigError."""
    for module in config.imports:
        _import(module, "env.imports")
    module, _, name = config.id.rpartition(":")
    if module:
        _import(module, "env.id")
    if name not in gymnasium.registry:
        _register_provider(name)
    registration = gymnasium.registry.get(name)
    if registration is None:
        raise ConfigError(f"env.id: unknown environment {name!r}{_hint(name)}")
    return registration


def _import(module: str, key: str) -> None:
    try:
        importlib.import_module(module)
    except Exception as error:  # a third party's module may raise anything
        raise ConfigError(f"{key}: cannot import {module!r}: {one_line(error)}") from error


def _register_provider(name: str) -> None:
    """Register the environments of a known namespace, unless they are or their package is not installed."""
    namespace = _namespace(name)
    if namespace not in _PROVIDERS or _is_registered(namespace):
        return
    module, function, _ = _PROVIDERS[namespace]
    try:
        loaded = importlib.import_module(module)
    except ImportError:
        return  # the id stays unknown, and the hint names the extra
    if function is not None:
        getattr(loaded, function)()


def _namespace(name: str) -> str:
    """What stands before the slash; the games of Atari have older names without one, such as PongNoFrameskip-v4."""
    return "ALE" if name.endswith(("NoFrameskip-v0", "NoFrameskip-v4")) else name.partition("/")[0]


def _is_registered(namespace: str) -> bool:
    return any(known.startswith(f"{namespace}/") for known in gymnasium.registry)


def _hint(name: str) -> str:
    namespace = _namespace(name)
    if namespace in _PROVIDERS and not _is_registered(namespace):
        return f"; {install(_PROVIDERS[namespace][2])}"
    whole = [] if "/" in name else [f"{namespace}/{name}".lower() for namespace in _PROVIDERS]
    for place in _PROVIDERS if whole else ():
        _register_provider(f"{place}/")
    lowered = {known.lower(): known for known in gymnasium.registry}
    near = [full for full in whole if full in lowered]  # Pong-v5 is ALE/Pong-v5
    near = near or difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=_NEAR)
    if near:
        return f" (did you mean {lowered[near[0]]!r}?)"
    return "; if another package registers it, install that and name its module in env.imports"


def explain(error: Exception, config: GymnasiumConfig, registration: Registration) -> list[str]:
    """What a constructor raised, as lines for the user."""
    entry = registration.entry_point or registration.vector_entry_point
    family = entry.partition(":")[0] if isinstance(entry, str) else ""
    if isinstance(error, ImportError | gymnasium.error.DependencyNotInstalled):
        extra = next((extra for package, extra in _EXTRAS.items() if family.startswith(package)), None)
        if extra is not None:
            return [f"env.id: {registration.id!r} needs more than is installed; {install(extra)}"]
        return [f"env.id: {registration.id!r} needs more than is installed: {one_line(error)}"]
    if isinstance(error, TypeError) and (lines := _unknown_arguments(config, registration.id, entry)):
        return lines
    return [f"env.id: cannot build {registration.id!r}: {one_line(error)}"]


def _unknown_arguments(config: GymnasiumConfig, name: str, entry: Any) -> list[str]:
    """A line for each of ``env.kwargs`` that the environment's constructor does not take."""
    creator = load_env_creator(entry) if isinstance(entry, str) else entry
    parameters = inspect.signature(creator).parameters.values()
    if any(item.kind is item.VAR_KEYWORD for item in parameters):
        return []
    named = [item.name for item in parameters if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)]
    known = [*(item for item in named if item not in ("render_mode", "num_envs")), "max_episode_steps"]
    lines = []
    for key in config.kwargs:
        if key not in known and key != "disable_env_checker":
            near = difflib.get_close_matches(key, known, n=1)
            help_text = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
            lines.append(f"env.kwargs.{key}: {name!r} takes no such argument ({help_text})")
    return lines
