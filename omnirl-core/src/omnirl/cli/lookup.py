"""Names given on the command line: one that is not there ends with exit 3 (in a file it would be exit 2)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, TypeVar

from omnirl.api.errors import ConfigError, NotFoundError, PluginError
from omnirl.api.plugin import load_object

SpecT = TypeVar("SpecT")


def named(find: Callable[[str], SpecT], name: str) -> SpecT:
    """``find(name)``. Raises NotFoundError for an unknown name, PluginError where a failed plugin has it."""
    try:
        return find(name)
    except ConfigError as error:
        raise NotFoundError(error.lines) from error


def load_part(owner: str, reference: str) -> Any:
    """Import a part of a descriptor. Raises PluginError in one line where that fails."""
    try:
        with redirect_stdout(sys.stderr):  # what it prints is no part of the output
            return load_object(reference)
    except Exception as error:
        raise PluginError(
            f"{owner}: {reference} cannot be imported: {type(error).__name__}: {error}"
        ) from error
