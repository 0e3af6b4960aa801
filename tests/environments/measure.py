"""Trains on the real suites and on environments of others, and writes ``docs/environments-results.md``. ::

    python -m nox -s environments                        # both tables
    python -m nox -s environments -- --only Pong FetchReach
    python -m nox -s environments -- --report            # only the page, from what is known

Each row is the command line in a process of its own, one at a time. What came of it is one record in
``results.json`` beside this file, so that the page can be made of several sittings.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from page import write_page
from rows import REAL, SUITES, TRAINED, Real, Suite
from runs import Outcome, omnirl, random_returns, standard_errors_above

RESULTS = Path(__file__).with_name("results.json")
PACKAGES = (
    *(
        "omnirl-core",
        "torch",
        "ray",
        "gymnasium",
        "numpy",
        "box2d",
        "mujoco",
        "ale-py",
        "minatar",
        "opencv-python-headless",
    ),
    *(
        "minigrid",
        "highway-env",
        "flappy-bird-gymnasium",
        "gym-simplegrid",
        "gym-pusht",
        "gymnasium-robotics",
    ),
    *("mo-gymnasium", "miniworld"),
)
RANDOM_EPISODES = 50


def suite(row: Suite, folder: Path) -> dict[str, Any]:
    """Train a preset on Ray and compare its return with that of random actions."""
    run_dir = folder / row.preset
    shutil.rmtree(run_dir, ignore_errors=True)
    typed = ("train", row.preset, *row.overrides)
    outcome = omnirl(*typed, "--run-dir", str(run_dir), "--json", folder=folder, name=row.preset)
    record = {**_common(outcome), "command": f"omnirl {' '.join(typed)}"}
    score = outcome.finished.get("evaluation") or {}
    if score:
        record |= {"return": score["return_mean"], "std": score["return_std"], "episodes": score["episodes"]}
        if row.better_than_random is not None:
            random = random_returns(row.better_than_random, RANDOM_EPISODES)
            record |= {"random": float(random.mean()), "above": standard_errors_above(score, random)}
    return record


def real(row: Real, folder: Path) -> dict[str, Any]:
    """Check an environment, then train on it."""
    name = row.env.replace("/", "-")
    shutil.rmtree(folder / name, ignore_errors=True)
    check = omnirl("envs", "check", row.env, *row.keys, "--steps", "300", folder=folder, name=f"{name}-check")
    keys = (
        *row.keys,
        "runner.max_steps=2000",
        "runner.num_episodes=2",
        *TRAINED[row.algorithm],
        *row.overrides,
    )
    typed = ("train", "--algo", row.algorithm, "--env", row.env, *keys)
    outcome = omnirl(*typed, "--local", "--run-dir", str(folder / name), "--json", folder=folder, name=name)
    said = (folder / f"{name}-check.log").read_text("utf-8", "replace").strip().splitlines()
    return {
        **_common(outcome),
        "package": row.package,
        "keys": list(row.keys),
        "algorithm": row.algorithm,
        "check": check.code,
        "said": next((line for line in said if line.startswith(("problem", "warning"))), ""),
    }


def _common(outcome: Outcome) -> dict[str, Any]:
    return {
        "code": outcome.code,
        "seconds": round(outcome.seconds, 1),
        "error": outcome.error,
        "env_steps": outcome.finished.get("env_steps", 0),
        "memory": outcome.memory,
        "machine": f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}",
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def main() -> None:
    """Run the rows, then write the page; exit 1 where a suite failed or was not above random."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], help="parts of the names of rows")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument(
        "--runs", type=Path, default=Path(".nox", "environments"), help="the folder of the runs"
    )
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="where the page goes")
    options = parser.parse_args()
    records: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    folder = options.runs.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[str, Any, Any]] = [(row.name, suite, row) for row in SUITES]
    rows += [(row.env, real, row) for row in REAL]
    for name, measure, row in [] if options.report else rows:
        if options.only and not any(part.lower() in name.lower() for part in options.only):
            continue
        records[name] = measure(row, folder)
        RESULTS.write_text(json.dumps(records, indent=1) + "\n", "utf-8")
        print(
            f"{name}: exit {records[name]['code']}, {records[name]['seconds']:.0f} s {records[name]['error']}",
            flush=True,
        )
    write_page(records, SUITES, REAL, options.docs / "environments-results.md")
    suites = [records[row.name] for row in SUITES if row.name in records]
    if any(record["code"] or record.get("above", 3.0) < 3.0 for record in suites):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
