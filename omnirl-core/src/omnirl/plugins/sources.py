"""Where a descriptor came from, and why a plugin could not be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

SpecT_co = TypeVar("SpecT_co", covariant=True)


@dataclass(frozen=True)
class PluginSource:
    """One entry point: its name, the module it refers to, and the distribution that declares it."""

    plugin: str
    distribution: str
    version: str
    module: str = ""

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} ({self.distribution} {self.version})"


@dataclass(frozen=True)
class PluginFailure:
    """What went wrong with a plugin.

    stage: ``"import"``, ``"api"`` (its OMNIRL_API number), ``"hooks"`` (unmarked, unknown or with arguments),
    ``"call"`` (a hook raised), ``"descriptors"`` (what a hook returned) or ``"command"`` (a command with a
    name of OmniRL's own; only that command is lost). error: one line.
    """

    source: PluginSource
    stage: str
    error: str

    def __str__(self) -> str:
        return f"{self.source} failed ({self.stage}): {self.error}"


@dataclass(frozen=True)
class Provided(Generic[SpecT_co]):
    """A descriptor and the plugin that provided it."""

    spec: SpecT_co
    source: PluginSource


def one_line(error: BaseException) -> str:
    """An exception as one line: its class and its text, line breaks folded."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
