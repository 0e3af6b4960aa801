"""Trains what the ladder asks for and is not there yet, and writes ``docs/results.md``. ::

    python -m nox -s learning                     # every row that is missing
    python -m nox -s learning -- ppo              # an algorithm, an environment or a preset
    python -m nox -s learning -- --tier 2 sac --seeds 3
    python -m nox -s learning -- --report         # only the page, from what is known

Each run is ``omnirl train PRESET --seed S`` in a process of its own, one at a time; a killed one goes on where it
was. A finished run is one record in ``results.json`` (score, curve, time, versions, command) and is not
run again; ``--again`` runs it again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from ladder import Row, chosen, points_of_log, read_ladder
from report import write_page

from omnirl.runs.log import read_rows, values

RESULTS = Path(__file__).with_name("results.json")
OMNIRL = Path(sys.executable).with_name("omnirl")
PACKAGES = ("omnirl-core", "torch", "ray", "gymnasium", "numpy", "box2d", "mujoco", "ale-py", "minatar")


def command(row: Row, seed: int, transport: tuple[str, ...]) -> list[str]:
    """What a user types to repeat the run."""
    return ["omnirl", "train", row.preset, *row.overrides, "--seed", str(seed), *transport]


def train(row: Row, seed: int, transport: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """Train one seed and return its record. Raises SystemExit with the run's last lines where it fails."""
    run_dir = folder / f"{row.preset}-seed{seed}"
    typed = command(row, seed, transport)
    log = folder / f"{row.preset}-seed{seed}.jsonl"
    before = logged(run_dir)  # of a run that was killed and now goes on
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        full = [str(OMNIRL), *typed[1:], "--run-dir", str(run_dir), "--json"]
        code = subprocess.run(full, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    events = _events(log)
    finished = events[-1] if events and events[-1].get("event") == "finished" else None
    if code != 0 or finished is None:
        raise SystemExit(f"{' '.join(typed)} ended with exit code {code}; its output is in {log}")
    score = finished["evaluation"]
    seconds = time.monotonic() - began + (float(before[-1]["wall_time"]) if before else 0.0)
    return {
        "preset": row.preset,
        "seed": seed,
        "command": " ".join(typed),
        "score": score["return_mean"],
        "score_std": score["return_std"],
        "episodes": int(score["episodes"]),
        "env_steps": finished["env_steps"],
        "updates": finished["updates"],
        "restarts": finished["restarts"],
        "seconds": round(seconds, 1),
        "curve": points_of_log(logged(run_dir)),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "versions": versions(),
    }


def logged(run_dir: Path) -> list[dict[str, Any]]:
    """All rows of the run's log, those before an interruption included."""
    return [values(row) for row in read_rows(run_dir / "log.csv")]


def versions() -> dict[str, str]:
    """The versions of the packages that a score may depend on, as far as they are installed."""
    found = {}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _events(log: Path) -> list[dict[str, Any]]:
    events = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("{"):
            events.append(json.loads(line))
    return events


def known_results() -> list[dict[str, Any]]:
    """The records of earlier runs."""
    if not RESULTS.exists():
        return []
    records: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return records


def keep(records: list[dict[str, Any]], record: dict[str, Any]) -> list[dict[str, Any]]:
    """``records`` with ``record`` in the place of an older one of the same run, written down at once."""

    def same(other: dict[str, Any]) -> bool:
        return (other["preset"], other["seed"]) == (record["preset"], record["seed"])

    kept = [other for other in records if not same(other)] + [record]
    kept.sort(key=lambda one: (one["preset"], one["seed"]))
    lines = ",\n".join(json.dumps(one) for one in kept)  # a line per run, so that a change shows as one
    partial = RESULTS.with_suffix(".partial")
    partial.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    partial.replace(RESULTS)
    return kept


def main() -> None:
    """Run what is missing, then write the page; exit 1 where a row that was asked for misses its bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="algorithms, environments or presets; none: all")
    parser.add_argument("--tier", type=int, choices=(1, 2))
    parser.add_argument("--seeds", type=int, help="how many seeds, in place of the ladder's number")
    parser.add_argument("--again", action="store_true", help="run finished ones again")
    parser.add_argument("--local", action="store_true", help="in one process instead of on Ray")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--runs", type=Path, default=Path(".nox", "learning"), help="the folder of the runs")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="where results.md goes")
    options = parser.parse_args()
    try:
        rows = chosen(read_ladder(), options.words, options.tier)
    except ValueError as error:
        parser.error(str(error))
    records = known_results()
    folder = options.runs.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    transport = ("--local",) if options.local else ()
    for row in [] if options.report else rows:
        for seed in range(options.seeds or row.seeds):
            known = [one for one in records if (one["preset"], one["seed"]) == (row.preset, seed)]
            if known and not options.again:
                continue
            if options.again:
                shutil.rmtree(folder / f"{row.preset}-seed{seed}", ignore_errors=True)
            record = train(row, seed, transport, folder)
            records = keep(records, record)
            print(
                f"{record['command']}: {record['score']:.1f} ± {record['score_std']:.1f} over {record['episodes']} "
                f"episodes, {record['env_steps']:,} steps, {record['seconds']:.0f} s (target {row.target:g})",
                flush=True,
            )
    missed = write_page(read_ladder(), records, options.docs)
    asked = {row.preset for row in rows}
    told = [line for preset, line in missed.items() if preset in asked]
    if told:
        raise SystemExit("\n".join(told))


if __name__ == "__main__":
    main()
