"""Throughput of OmniRL beside Stable-Baselines3, in alternating pairs.

Machines drift, so no figure means anything alone: each round runs every side once, one after the other in
processes of their own, and only ratios within a round are compared; the table shows their medians. Both sides
have the same environment, hyperparameters, network and torch threads, make the same number of gradient steps
(counted in the optimizers) and evaluate nothing; time runs from the second update to the last. Each side's
stepping alone, with random actions, stands beside. ::

    python tests/benchmarks/throughput_vs_sb3.py --pairs 5 --json result.json

The works are in works.py.

==========  =====================================================================================
side        runs
==========  =====================================================================================
sb3         Stable-Baselines3, DummyVecEnv
local       OmniRL in one process (``--local``), environments stepped in the process
ray         OmniRL on a local Ray cluster with the algorithm's own lead (PPO: lock-step)
ray-lead1   the same with ``runner.max_lead: 1`` (PPO only)
==========  =====================================================================================
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from works import WORKS

DRIVERS = {"sb3": "side_sb3.py"}  # every other side is OmniRL's
SIDES = ("sb3", "local", "ray", "ray-lead1")


def measure(options: argparse.Namespace, work: str, side: str, seed: int) -> dict[str, Any]:
    """Run one side once in a process of its own and return what it measured."""
    here = Path(__file__).parent
    python = options.sb3_python if side == "sb3" else sys.executable
    updates = options.updates or WORKS[work].updates
    script = here / DRIVERS.get(side, "side_omnirl.py")
    command = [python, str(script), work, side, str(updates), str(options.threads), str(seed)]
    env = {**os.environ, "OMP_NUM_THREADS": str(options.threads), "MKL_NUM_THREADS": str(options.threads)}
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=900)
    if run.returncode != 0:
        raise SystemExit(f"{work} {side} failed:\n{run.stdout[-2000:]}\n{run.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return result


def compare(options: argparse.Namespace, work: str) -> dict[str, Any]:
    """Run ``options.pairs`` rounds of one work; every round runs its sides in the opposite order."""
    sides = [side for side in WORKS[work].sides if side in options.sides]
    figure = WORKS[work].figure
    rounds: list[dict[str, dict[str, Any]]] = []
    for number in range(options.pairs):
        order = sides if number % 2 == 0 else sides[::-1]
        rounds.append({side: measure(options, work, side, number) for side in order})
        told = "  ".join(f"{side} {rounds[-1][side][figure]:,.0f}" for side in sides)
        print(f"{work} round {number + 1}/{options.pairs}: {told}", file=sys.stderr, flush=True)
    return {
        "work": work,
        "sides": {side: _summary(rounds, side, figure) for side in sides},
        "rounds": rounds,
    }


def _summary(rounds: list[dict[str, dict[str, Any]]], side: str, figure: str) -> dict[str, Any]:
    """Medians of one side over the rounds, and of its ratio to Stable-Baselines3 within each round."""
    names = ("steps_per_s", "updates_per_s", "stepping_alone")
    summary: dict[str, Any] = {
        name: statistics.median(float(one[side][name]) for one in rounds) for name in names
    }
    summary["gradient_steps"] = sorted({int(one[side]["gradient_steps"]) for one in rounds})
    summary["vector"] = rounds[0][side]["vector"]
    ratios = [one[side][figure] / one["sb3"][figure] for one in rounds if "sb3" in one]
    if ratios:
        summary.update(ratio=statistics.median(ratios), ratio_min=min(ratios), ratio_max=max(ratios))
    return summary


def check(result: dict[str, Any]) -> None:
    """Refuse a comparison of unequal work."""
    counts = {side: summary["gradient_steps"] for side, summary in result["sides"].items()}
    if len({tuple(count) for count in counts.values()}) != 1:
        raise SystemExit(f"{result['work']}: the sides made different numbers of gradient steps: {counts}")


def table(result: dict[str, Any]) -> str:
    """The medians as lines of text."""
    head = f"{'steps/s':>10}{'updates/s':>11}{'ratio to sb3':>14}{'(min - max)':>16}{'stepping alone':>16}"
    lines = [f"{result['work']:<12}{head}  grad. steps  vector"]
    for side, one in result["sides"].items():
        ratio, spread = "-", ""
        if "ratio" in one:
            ratio, spread = f"{one['ratio']:.2f}", f"({one['ratio_min']:.2f} - {one['ratio_max']:.2f})"
        lines.append(
            f"{side:<12}{one['steps_per_s']:>10,.0f}{one['updates_per_s']:>11,.1f}{ratio:>14}{spread:>16}"
            f"{one['stepping_alone']:>16,.0f}{one['gradient_steps'][0]:>13,}  {one['vector']}"
        )
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    names = ("numpy", "torch", "ray", "gymnasium", "omnirl-core", "stable-baselines3", "sb3-contrib")
    versions = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not in this environment"
    return {"python": platform.python_version(), "cores": os.cpu_count(), "versions": versions}


def main() -> None:
    """Compare, print the tables, and write everything to a JSON file where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", nargs="+", choices=WORKS, default=tuple(WORKS))
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--pairs", type=int, default=5, help="rounds; the table shows medians over them")
    parser.add_argument("--updates", type=int, help="updates of every work; unset: each work's own number")
    parser.add_argument("--threads", type=int, default=1, help="torch's threads, on both sides")
    parser.add_argument("--sb3-python", default=sys.executable, help="a Python that has stable-baselines3")
    parser.add_argument("--json", type=Path, help="write all rounds to this file")
    options = parser.parse_args()
    results = [compare(options, work) for work in options.work]
    if options.json:
        report = {"machine": machine(), "threads": options.threads, "results": results}
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    print("\n\n".join(table(result) for result in results))
    for result in results:
        check(result)


if __name__ == "__main__":
    main()
