"""Words for the lines that a user sees."""

from __future__ import annotations


def install(extra: str) -> str:
    """The command that brings an extra of this distribution."""
    return f'run: pip install "omnirl-gymnasium[{extra}]"'


def one_line(error: Exception) -> str:
    """An exception's type and text in one line."""
    text = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {text}" if text else name
