"""Which versions decide a run's numbers: written into its files, and compared between the nodes of a cluster."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata

from omnirl.api.errors import PluginError

DISTRIBUTIONS = ("omnirl-core", "omnirl-algos", "omnirl-gymnasium", "numpy", "torch", "gymnasium", "ray")


def versions() -> dict[str, str]:
    """Versions of Python and of the installed distributions; imports none of them."""
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def check_same(workers: Mapping[str, Mapping[str, str]]) -> None:
    """Raise PluginError with a line per difference between this process and a worker's."""
    here = versions()
    lines = []
    for worker, there in workers.items():
        for name in sorted({*here, *there}):
            if here.get(name) != there.get(name):
                lines.append(
                    f"{worker}: {name} {there.get(name, 'is not installed')} on its node, "
                    f"{here.get(name, 'not installed')} here: install the same on every node"
                )
    if lines:
        raise PluginError(lines)
