"""``omnirl version``: the versions that matter in a report of a bug."""

from __future__ import annotations

import platform
from importlib import metadata

from omnirl.cli.options import Json

HELP = "Show the versions of OmniRL and of what it runs on."
DISTRIBUTIONS = ("omnirl-core", "omnirl-algos", "omnirl-gymnasium", "ray", "torch", "gymnasium", "numpy")


def version(as_json: Json = False) -> None:
    """Print one line per distribution."""
    import json

    found = versions()
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for name, number in found.items():
        print(f"{name:<18}{number}")


def versions() -> dict[str, str]:
    """The version of each distribution and of Python, asked of the metadata so that nothing is imported."""
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return {**found, "python": platform.python_version()}
