"""Words for the lines that a user sees."""

from __future__ import annotations

import os
import traceback


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
