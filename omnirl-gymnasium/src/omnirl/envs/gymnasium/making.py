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
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.vector import OneRow

_PROVIDERS = {"ALE": ("ale_py", None, "atari"), "MinAtar": ("minatar.gym", "register_envs", "minatar")}
"""Namespaces that an extra brings: module, its function that registers (None: the import does), extra."""
_EXTRAS = {"gymnasium.envs.box2d": "box2d", "gymnasium.envs.mujoco": "mujoco"}
"""Gymnasium's own families that need more: package of the entry point, extra."""


def make(config: GymnasiumConfig, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """The environment with the wrappers it is registered with. Raises ConfigError."""
    registration = find(config)
    kwargs = dict(config.kwargs) if render_mode is None else {**config.kwargs, "render_mode": render_mode}
    try:
        if registration.entry_point is None:
            return OneRow(gymnasium.make_vec(registration, num_envs=1, **kwargs))
        # Both wrappers left out only check how they are called, which the tests of the loops do once for all.
        plain = dataclasses.replace(registration, order_enforce=False)
        return gymnasium.make(plain, **{"disable_env_checker": True, **kwargs})
    except Exception as error:  # an environment's constructor may raise anything
        raise ConfigError(_explain(error, config, registration)) from error


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
        raise ConfigError(f"{key}: cannot import {module!r}: {_one_line(error)}") from error


def _register_provider(name: str) -> None:
    """Register the environments of a known namespace, unless they are or their package is not installed."""
    namespace = name.partition("/")[0]
    if namespace not in _PROVIDERS or _is_registered(namespace):
        return
    module, function, _ = _PROVIDERS[namespace]
    try:
        loaded = importlib.import_module(module)
    except ImportError:
        return  # the id stays unknown, and the hint names the extra
    if function is not None:
        getattr(loaded, function)()


def _is_registered(namespace: str) -> bool:
    return any(known.startswith(f"{namespace}/") for known in gymnasium.registry)


def _hint(name: str) -> str:
    namespace = name.partition("/")[0]
    if namespace in _PROVIDERS and not _is_registered(namespace):
        return f"; {_install(_PROVIDERS[namespace][2])}"
    lowered = {known.lower(): known for known in gymnasium.registry}
    near = difflib.get_close_matches(name.lower(), lowered, n=1)
    if near:
        return f" (did you mean {lowered[near[0]]!r}?)"
    return "; if another package registers it, install that and name its module in env.imports"


def _explain(error: Exception, config: GymnasiumConfig, registration: Registration) -> list[str]:
    entry = registration.entry_point or registration.vector_entry_point
    family = entry.rpartition(".")[0] if isinstance(entry, str) else ""
    if isinstance(error, ImportError | gymnasium.error.DependencyNotInstalled):
        extra = next((extra for package, extra in _EXTRAS.items() if family.startswith(package)), None)
        if extra is not None:
            return [f"env.id: {registration.id!r} needs more than is installed; {_install(extra)}"]
        return [f"env.id: {registration.id!r} needs more than is installed: {_one_line(error)}"]
    if isinstance(error, TypeError) and (lines := _unknown_arguments(config, registration.id, entry)):
        return lines
    return [f"env.id: cannot build {registration.id!r}: {_one_line(error)}"]


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


def _install(extra: str) -> str:
    return f'run: pip install "omnirl-gymnasium[{extra}]"'


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {text}" if text else name
