"""Throughput of OmniRL beside Stable-Baselines3 and RLlib, in alternating rounds.

Machines drift, so no figure means anything alone: each round runs every side once, one after the other in
processes of their own, and only ratios within a round are compared; the table shows their medians. All sides
have the same environment, hyperparameters, network and torch threads, make the same number of gradient steps
(counted in the optimizers) and evaluate nothing; time runs from the second update to the last. Each side's
stepping alone, with random actions, stands beside. ::

    python tests/benchmarks/throughput.py --works sac td3 --results tests/benchmarks/results.json

The works are in works.py; ``startup`` is startup.py's and ``ppo-475`` learning_time.py's. What was measured of a work
takes the place of what ``--results`` held of it, as soon as it is there; report.py writes the page.

==========  =====================================================================================
side        runs
==========  =====================================================================================
sb3         Stable-Baselines3 or its contrib, DummyVecEnv
rllib       RLlib on a local Ray cluster, with a learner's process; it makes fewer gradient steps
local       OmniRL in one process (``--local``), environments stepped in the process
ray         OmniRL on a local Ray cluster with the algorithm's own lead (PPO: lock-step)
ray-lead1   the same with ``runner.max_lead: 1`` (PPO only)
==========  =====================================================================================
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import learning_time
import startup
from results import Results
from works import WORKS

DRIVERS = {"sb3": "side_sb3.py", "rllib": "side_rllib.py"}  # every other side is OmniRL's
SIDES = ("sb3", "rllib", "local", "ray", "ray-lead1")
OTHERS = {"startup": startup.compare, "ppo-475": learning_time.compare}  # what is no rate


def measure(options: argparse.Namespace, work: str, side: str, seed: int) -> dict[str, Any]:
    """Run one side once in a process of its own and return what it measured."""
    here = Path(__file__).parent
    python = {"sb3": options.sb3_python, "rllib": options.rllib_python}.get(side, sys.executable)
    updates = options.updates or WORKS[work].updates_of(side)
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
        taken = {side: measure(options, work, side, number) for side in order}
        rounds.append({side: taken[side] for side in sides})
        told = "  ".join(f"{side} {rounds[-1][side][figure]:,.0f}" for side in sides)
        print(f"{work} round {number + 1}/{options.pairs}: {told}", file=sys.stderr, flush=True)
    return {"sides": {side: _summary(rounds, side, work) for side in sides}, "rounds": rounds}


def _summary(rounds: list[dict[str, dict[str, Any]]], side: str, work: str) -> dict[str, Any]:
    """Medians of one side over the rounds, and of its ratio to the side compared with within each round."""
    names = ("steps_per_s", "updates_per_s", "stepping_alone")
    summary: dict[str, Any] = {
        name: statistics.median(float(one[side][name]) for one in rounds) for name in names
    }
    summary["gradient_steps"] = sorted({int(one[side]["gradient_steps"]) for one in rounds})
    summary["vector"] = rounds[0][side]["vector"]
    lags = [int(one[side]["lag_max"]) for one in rounds if "lag_max" in one[side]]
    if lags:
        summary["lag_max"] = max(lags)
    figure, peer = WORKS[work].figure, WORKS[work].sides[0]
    ratios = [one[side][figure] / one[peer][figure] for one in rounds if peer in one]
    if ratios:
        summary.update(ratio=statistics.median(ratios), ratio_min=min(ratios), ratio_max=max(ratios))
    return summary


def check(work: str, result: dict[str, Any]) -> None:
    """Refuse a comparison of unequal work, or of rollouts older than their bound."""
    sides, peer = result["sides"], WORKS[work].sides[0]
    counts = {
        side: summary["gradient_steps"]
        for side, summary in sides.items()
        if side != peer or WORKS[work].peer_updates is None
    }
    if len({tuple(count) for count in counts.values()}) > 1:
        raise SystemExit(f"{work}: the sides made different numbers of gradient steps: {counts}")
    bound = WORKS[work].max_lag
    late = {
        side: one["lag_max"]
        for side, one in sides.items()
        if bound is not None and one.get("lag_max", 0) > bound
    }
    if late:
        raise SystemExit(f"{work}: rollouts older than {bound} updates: {late}")


def table(work: str, result: dict[str, Any]) -> str:
    """The medians as lines of text."""
    head = f"{'steps/s':>10}{'updates/s':>11}{'ratio':>14}{'(min - max)':>16}{'stepping alone':>16}"
    lines = [f"{work:<12}{head}  grad. steps  vector"]
    for side, one in result["sides"].items():
        ratio, spread = "-", ""
        if "ratio" in one:
            ratio, spread = f"{one['ratio']:.2f}", f"({one['ratio_min']:.2f} - {one['ratio_max']:.2f})"
        lag = f", greatest lag {one['lag_max']}" if "lag_max" in one else ""
        lines.append(
            f"{side:<12}{one['steps_per_s']:>10,.0f}{one['updates_per_s']:>11,.1f}{ratio:>14}{spread:>16}"
            f"{one['stepping_alone']:>16,.0f}{one['gradient_steps'][0]:>13,}  {one['vector']}{lag}"
        )
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = (*WORKS, *OTHERS)
    parser.add_argument(
        "--works", nargs="+", choices=every, default=every, metavar="WORK", help=", ".join(every)
    )
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--pairs", type=int, default=5, help="rounds; the table shows medians over them")
    parser.add_argument("--updates", type=int, help="updates of every work; unset: each work's own number")
    parser.add_argument("--threads", type=int, default=1, help="torch's threads, on both sides")
    parser.add_argument("--sb3-python", default=sys.executable, help="a Python that has stable-baselines3")
    parser.add_argument("--rllib-python", default=sys.executable, help="a Python that has ray[rllib]")
    parser.add_argument("--results", type=Path, help="keep what is measured in this file")
    return parser.parse_args()


def main() -> None:
    """Compare, print the tables, and keep the results where asked."""
    options = arguments()
    if options.results and (options.updates or set(options.sides) != set(SIDES)):
        raise SystemExit("--results keeps whole measurements: leave --updates and --sides out")
    results = Results(options.results, options.works, options.pairs, options.threads, options.rllib_python)
    for work in options.works:
        if work in OTHERS:
            results.keep(work, OTHERS[work](options.pairs, options.sb3_python))
            continue
        result = compare(options, work)
        print(table(work, result), end="\n\n", flush=True)
        check(work, result)
        results.keep(work, result)


if __name__ == "__main__":
    main()
