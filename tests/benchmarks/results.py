"""What the benchmarks measured last of each work, and in which run: a file that report.py makes the page from.

=========  ==================================================================================================
``runs``   by when each began (UTC): its works, rounds, torch threads, the machine's load just before, versions
``works``  by name: the run it is of, the summary of each side and what every round measured
=========  ==================================================================================================
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

VERSIONS = ("numpy", "torch", "ray", "gymnasium", "omnirl-core", "stable-baselines3", "sb3-contrib")
_ASK = (
    "import json, sys; from importlib.metadata import version; "
    "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
)


class Results:
    """Those of one run, each kept in ``path`` (if any) as soon as it is there; those of other works stay."""

    def __init__(
        self, path: Path | None, works: list[str], pairs: int, threads: int, rllib_python: str
    ) -> None:
        self._path = path
        self._run = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M}"
        self._about = {
            "works": list(works),
            "pairs": pairs,
            "threads": threads,
            "load": round(os.getloadavg()[0], 2),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "versions": _versions(),
        }
        if any("impala" in work for work in works):
            told = subprocess.run(
                [rllib_python, "-c", _ASK, "ray", "gymnasium", "torch"],
                capture_output=True,
                text=True,
                check=False,
            )
            self._about["rllib"] = json.loads(told.stdout) if told.returncode == 0 else {}

    def keep(self, work: str, result: dict[str, Any]) -> None:
        """``result`` takes the place of what was there of ``work``."""
        if self._path is None:
            return
        held = read(self._path)
        held["runs"][self._run] = self._about
        held["works"][work] = {"run": self._run, **result}
        used = {one["run"] for one in held["works"].values()}
        held["runs"] = {run: about for run, about in sorted(held["runs"].items()) if run in used}
        self._path.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """What is kept so far."""
    if not path.exists():
        return {"runs": {}, "works": {}}
    held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return held


def _versions() -> dict[str, str]:
    versions = {}
    for name in VERSIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "in another environment"
    return versions
