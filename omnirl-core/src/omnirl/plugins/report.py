"""What ``omnirl plugins list`` and ``omnirl plugins show`` print, as plain data."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

from omnirl.api.errors import NotFoundError
from omnirl.plugins.registry import Registry
from omnirl.plugins.sources import PluginSource

HEADINGS = {
    "omnirl_algorithms": "algorithms",
    "omnirl_env_backends": "environment backends",
    "omnirl_presets": "presets",
    "omnirl_observers": "observers",
    "omnirl_commands": "commands",
}
"""What the names of each hook are called."""


@dataclass(frozen=True)
class PluginRow:
    """One plugin.

    status: ``"ok"``, ``"failed"`` (nothing of it is usable), ``"partly"`` (a command of it is refused) or
    ``"disabled"``. provides: names by :data:`HEADINGS`. problems: one line each, name clashes included.
    """

    plugin: str
    distribution: str
    version: str
    module: str
    status: str
    provides: dict[str, list[str]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def rows(registry: Registry) -> list[PluginRow]:
    """One row per entry point, by name, whatever its state."""
    clashes = registry.clashes()
    found = [_row(registry, source, clashes) for source in registry.loaded]
    whole = {failure.source for failure in registry.failures} - set(registry.loaded)
    found += [_row(registry, source, (), "failed") for source in whole]
    found += [_row(registry, source, (), "disabled") for source in registry.disabled]
    return sorted(found, key=lambda row: (row.plugin, row.distribution))


def show(registry: Registry, name: str) -> list[PluginRow]:
    """The rows of the entry point or distribution ``name``; else NotFoundError with the nearest name."""
    known = rows(registry)
    found = [row for row in known if name in (row.plugin, row.distribution)]
    if not found:
        names = sorted({row.plugin for row in known} | {row.distribution for row in known})
        nearest = difflib.get_close_matches(name, names, n=1)
        hint = f" (did you mean {nearest[0]!r}?)" if nearest else ""
        raise NotFoundError(f"no plugin {name!r}{hint}; there are: {', '.join(names) or 'none'}")
    return found


def _row(
    registry: Registry, source: PluginSource, clashes: Iterable[str], status: str | None = None
) -> PluginRow:
    provided = registry.provided_by(source)
    problems = [
        f"{failure.stage}: {failure.error}" for failure in registry.failures if failure.source == source
    ]
    if status is None:
        status = "partly" if problems else "ok"
    problems += [clash for clash in clashes if str(source) in clash]
    return PluginRow(
        source.plugin,
        source.distribution,
        source.version,
        source.module,
        status,
        {HEADINGS[hook]: names for hook, names in provided.items() if names},
        tuple(problems),
    )
