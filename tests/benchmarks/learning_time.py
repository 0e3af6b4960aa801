"""Seconds of learning until PPO has solved CartPole, of OmniRL and Stable-Baselines3 in turn: the work ``ppo-475`` of
throughput.py.

Both sides train with the preset's hyperparameters, which are those of rl-baselines3-zoo, to its end and evaluate
nothing before; a round is a seed. CartPole is solved at the first update at which the last 20 training episodes, or
the few more that ended with the earliest of them, had a mean return of 475, Gymnasium's threshold. The time is that
of the run's own clock: from the first step on. OmniRL is looked at ten times a second, by the rows of its log, which
it writes once a second as a rule.
"""

from __future__ import annotations

import csv
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from startup import OMNIRL

SIDES = ("sb3", "local", "ray", "ray-lead1")
THRESHOLD, EPISODES = 475.0, 20
MORE = {"local": ("--local",), "ray": (), "ray-lead1": ("runner.max_lead=1",)}
SB3 = """
import json, sys, time, torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
class Episodes(BaseCallback):
    ended, rows = [], []
    def _on_step(self):
        self.ended += [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        return True
    def _on_rollout_start(self): self.row()
    def _on_training_end(self): self.row()
    def row(self):
        self.rows.append((time.perf_counter() - began, self.num_timesteps, len(self.ended), sum(self.ended)))
        self.ended.clear()
torch.set_num_threads(1)
model = PPO(
    "MlpPolicy", make_vec_env("CartPole-v1", 8, seed=int(sys.argv[1])), n_steps=32, batch_size=256, n_epochs=20,
    gamma=0.98, gae_lambda=0.8, ent_coef=0.0, seed=int(sys.argv[1]), device="cpu",
    learning_rate=lambda left: 1e-3 * left, clip_range=lambda left: 0.2 * left,
)
began = time.perf_counter()
model.learn(99_840, callback=Episodes())
print(json.dumps(Episodes.rows))
"""


class Row(NamedTuple):
    """What is known after an update: seconds and steps so far; of the episodes since the row before, how many there
    were and the sum of their returns."""

    seconds: float
    steps: int
    episodes: int
    returns: float


def solved(rows: Sequence[Row]) -> Row | None:
    """The first row at which CartPole is solved."""
    for last in range(len(rows)):
        count, total = 0, 0.0
        for row in rows[last::-1]:
            count, total = count + row.episodes, total + row.returns
            if count >= EPISODES:
                break
        if count >= EPISODES and total / count >= THRESHOLD:
            return rows[last]
    return None


def rows_of(log: Path) -> list[Row]:
    """Those of OmniRL's log."""
    rows, before = [], 0
    with log.open(newline="") as stream:
        for row in csv.DictReader(stream):
            count = int(row["episodes"]) - before
            before += count
            mean = float(row["train_return"]) if row["train_return"] else 0.0
            rows.append(Row(float(row["wall_time"]), int(row["env_steps"]), count, count * mean))
    return rows


def measure(side: str, seed: int, sb3_python: str) -> dict[str, float | None]:
    """Train one seed; seconds and steps until it was solved, None where it was not."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sb3_python, "-c", SB3, str(seed)]
        if side != "sb3":
            settings = ["runner.log_interval=0.1", "runner.num_episodes=1", *MORE[side]]
            command = [sys.executable, "-c", OMNIRL, "train", "cartpole-ppo", "--seed", str(seed), *settings]
            command += ["device.threads=1", "--run-dir", str(Path(folder, "run"))]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        run = subprocess.run(
            command, env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=600
        )
        if run.returncode != 0:
            raise SystemExit(f"ppo-475 {side} failed:\n{run.stdout[-2000:]}\n{run.stderr[-4000:]}")
        if side == "sb3":
            rows = [Row(*row) for row in json.loads(run.stdout.splitlines()[-1])]
        else:
            rows = rows_of(Path(folder, "run", "log.csv"))
    found = solved(rows)
    return {"seconds": found.seconds if found else None, "steps": found.steps if found else None}


def median(values: Sequence[float | None]) -> float | None:
    """The median, where a seed that was never solved took for ever; None where that is the median."""
    found = statistics.median(math.inf if value is None else value for value in values)
    return found if math.isfinite(found) else None


def compare(pairs: int, sb3_python: str) -> dict[str, Any]:
    """Measure every side in turn, ``pairs`` seeds; print the medians."""
    rounds: list[dict[str, dict[str, float | None]]] = []
    for number in range(pairs):
        order = SIDES if number % 2 == 0 else SIDES[::-1]
        taken = {side: measure(side, number, sb3_python) for side in order}
        rounds.append({side: taken[side] for side in SIDES})
        told = "  ".join(f"{side} {taken[side]['seconds'] or math.inf:.1f}" for side in SIDES)
        print(f"ppo-475 seed {number}: {told}", file=sys.stderr, flush=True)
    result: dict[str, Any] = {}
    for side in SIDES:
        seconds = [one[side]["seconds"] for one in rounds]
        result[side] = {
            "seconds": median(seconds),
            "steps": median([one[side]["steps"] for one in rounds]),
            "solved": sum(value is not None for value in seconds),
        }
    peer = result["sb3"]["seconds"]
    for side, one in result.items():
        one["of_peer"] = one["seconds"] / peer if one["seconds"] and peer else None
        print(f"{side:<10} {one['seconds'] or math.inf:5.1f} s  solved {one['solved']} of {pairs}")
    return {"sides": result, "rounds": rounds}
