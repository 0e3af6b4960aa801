"""Looking at an environment of Gymnasium: frames for a video, a window for people, and why one cannot be had."""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np

from omnirl.api.data import Array
from omnirl.api.errors import ConfigError
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.messages import install

VIEWS = ("frames", "window")
_MODE_OF_VIEW = {"frames": "rgb_array", "window": "human"}
_DRAW_WITH_PYGAME = tuple(f"gymnasium.envs.{family}." for family in ("classic_control", "toy_text", "box2d"))
"""Gymnasium's own families that find out at the first picture only that pygame is missing."""
_USUAL_FRAMES_PER_SECOND = 30.0


def render_mode(config: GymnasiumConfig, view: str) -> str | None:
    """How an evaluator's environments render: as ``view`` asks, or else the configuration.

    Raises ConfigError for a window where there is no display.
    """
    mode = _MODE_OF_VIEW[view] if view else config.render_mode
    if mode == "human" and not has_display():
        raise ConfigError(
            "env.render_mode: human opens a window, and there is no display (neither DISPLAY nor WAYLAND_DISPLAY "
            "is set); omnirl record writes a video instead"
        )
    if mode == "rgb_array" and not has_display():
        # Looking for a display, pygame's Wayland complains on standard error of a folder that is missing without one.
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    return mode


def has_display() -> bool:
    """Whether a window can be opened. SDL_VIDEODRIVER names a driver of pygame's, such as one that only pretends."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in names)


def mistakes(config: GymnasiumConfig, env: gymnasium.Env[Any, Any], mode: str | None, key: str) -> list[str]:
    """Why ``env`` cannot render in ``mode``: lines that begin with ``key``."""
    if mode is None:
        return []
    modes = list(env.metadata.get("render_modes") or ())
    # Gymnasium shows the pictures of rgb_array in a window where an environment has none of its own.
    if mode not in modes and not (mode == "human" and {"rgb_array", "rgb_array_list"} & set(modes)):
        can = f"it can {', '.join(modes)}" if modes else "it cannot render at all"
        return [f"{key}: {config.id!r} cannot render {mode} ({can})"]
    if type(env.unwrapped).__module__.startswith(_DRAW_WITH_PYGAME) and find_spec("pygame") is None:
        return [f"{key}: {config.id!r} draws with pygame; {install('video')}"]
    return []


def frames_per_second(env: gymnasium.Env[Any, Any]) -> float:
    """The environment's ``render_fps``, 30 where it says none."""
    rate = env.metadata.get("render_fps")
    usable = isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0
    return float(rate) if usable else _USUAL_FRAMES_PER_SECOND  # type: ignore[arg-type]


def frame(env: gymnasium.Env[Any, Any]) -> Array:
    """The picture as it is now, uint8 [height, width, 3]. Raises ConfigError in one line where there is none."""
    try:
        picture = env.render()
    except Exception as error:  # drawing may fail in a hundred ways
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"env.id: {_name(env)} cannot draw: {text}{_hint(env)}") from error
    array = np.asarray(picture)
    if array.dtype.kind == "f" and array.ndim == 3 and array.min() >= 0.0 and array.max() <= 1.0:
        array = np.rint(255.0 * array).astype(np.uint8)  # as MinAtar's
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
        is_array = isinstance(picture, np.ndarray)
        found = f"{array.dtype} {list(array.shape)}" if is_array else type(picture).__name__
        raise ConfigError(
            f"env.id: {_name(env)} draws {found} with render_mode rgb_array, not uint8 [height, width, 3]"
        )
    return array


def _hint(env: gymnasium.Env[Any, Any]) -> str:
    if "mujoco" in type(env.unwrapped).__module__ and not has_display() and not os.environ.get("MUJOCO_GL"):
        return "; without a display set MUJOCO_GL=egl (or osmesa)"
    return ""


def _name(env: gymnasium.Env[Any, Any]) -> str:
    return repr(env.spec.id) if env.spec is not None else type(env.unwrapped).__name__
