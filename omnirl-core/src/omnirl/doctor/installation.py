"""Looks at what is installed: Python, the distributions and their versions, and what stands in OmniRL's way."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from omnirl.api.errors import PluginError
from omnirl.doctor.findings import PLUGIN, Finding, ok, problem, warning
from omnirl.plugins.registry import Registry

OURS = ("omnirl-core", "omnirl-algos", "omnirl-gymnasium")
OLDEST, NEWEST = (3, 10), (3, 13)
ABSENT = "not installed"
_NEEDLESS = {
    "omnirl-algos": "no algorithm of OmniRL's own",
    "omnirl-gymnasium": "no Gymnasium environment",
}


def python(version: Sequence[int] = sys.version_info[:3]) -> Finding:
    """The interpreter."""
    number = ".".join(map(str, version))
    if tuple(version[:2]) < OLDEST:
        return problem("python", number, "OmniRL needs Python 3.10 or newer", PLUGIN)
    if tuple(version[:2]) > NEWEST:
        return warning("python", number, "OmniRL is tested with Python 3.10 to 3.13")
    return ok("python", number)


def distributions(versions: Mapping[str, str]) -> Iterator[Finding]:
    """One line each. ``versions``: name -> version or :data:`ABSENT`. Ours move together."""
    core = versions["omnirl-core"]
    for name, version in versions.items():
        if version == ABSENT:
            if name in _NEEDLESS:
                yield warning(name, f"{ABSENT}: {_NEEDLESS[name]}", f"pip install {name}")
            continue
        if name in OURS and version != core:
            text = f"{version} beside omnirl-core {core}: OmniRL's distributions move together"
            yield problem(
                name, text, f"pip install -U {' '.join(n for n in OURS if versions[n] != ABSENT)}", PLUGIN
            )
        else:
            yield ok(name, version)


def shared(refusal: PluginError | None) -> Finding:
    """Whether the package ``omnirl`` belongs to our distributions alone; ``refusal`` says why it does not."""
    if refusal is None:
        return ok("package omnirl", "shared by OmniRL's distributions alone")
    text, *remedy = refusal.lines
    return problem("package omnirl", text, " ".join(remedy).strip(), refusal.exit_code)


def plugins(registry: Registry) -> Finding:
    """A glance: whether each could be asked, and whether names clash."""
    failed = len({failure.source for failure in registry.failures}) + len(registry.clashes())
    if failed:
        names = sorted({failure.source.plugin for failure in registry.failures})
        what = f"failing: {', '.join(names)}" if names else "names clash"
        return problem("plugins", what, "omnirl plugins doctor", PLUGIN)
    return ok("plugins", ", ".join(sorted(source.plugin for source in registry.loaded)) or "none")
