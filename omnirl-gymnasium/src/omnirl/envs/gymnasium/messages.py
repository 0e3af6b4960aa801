"""Words for the lines that a user sees."""

from __future__ import annotations

import os
import traceback
from typing import Any

import numpy as np

RESET = "(observation, info)"
STEP = "(observation, reward, terminated, truncated, info)"
FOLLOW_GYMNASIUM = "follow Gymnasium 1.x; an environment of the old gym can be wrapped with shimmy"


def install(extra: str) -> str:
    """The command that brings an extra of this distribution."""
    return f'run: pip install "omnirl-gymnasium[{extra}]"'


def one_line(error: BaseException) -> str:
    """An exception's type and text in one line; where it has no text, such as a bare assertion, its place instead."""
    text = " ".join(str(error).split())
    name = type(error).__name__
    if text:
        return f"{name}: {text}"
    frames = traceback.extract_tb(error.__traceback__)
    return f"{name} in {os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}" if frames else name


def not_returned(method: str, expected: str, result: Any) -> str:
    """That an environment's ``method`` returned something else, and what to do."""
    return f"env.id: its {method} returned {shape_of(result)}, not {expected}: {FOLLOW_GYMNASIUM}"


def not_unpacked(method: str, expected: str, error: BaseException) -> str:
    """The same where a wrapper has noticed it."""
    return f"env.id: its {method} did not return {expected} ({error}): {FOLLOW_GYMNASIUM}"


def raised_in_wrapper(error: BaseException) -> bool:
    """Whether one of Gymnasium's own wrappers raised ``error``, not what it calls."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and os.path.join("gymnasium", "wrappers", "") in frames[-1].filename


def shape_of(value: Any) -> str:
    """``4 values``, ``float64 [3]``, ``NoneType``."""
    if isinstance(value, np.ndarray):
        return f"an array {value.dtype} {list(value.shape)}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)} values"
    return f"{type(value).__name__} {value}" if isinstance(value, int | str) else type(value).__name__
