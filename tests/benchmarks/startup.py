"""Seconds and memory from a process's start to its first finished update, of OmniRL and Stable-Baselines3 in turn:
the work ``startup`` of throughput.py.

OmniRL runs ``omnirl train`` (PPO, CartPole, 8 environments x 128 steps), the other side the same. The moment is that
of the first row of the log, or a line of output; the memory is the proportional set size of every process of the
run together at that moment.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import psutil

MARK = "OMNIRL_BENCHMARK_MARK"
SETTINGS = [
    *("cartpole-ppo", "runner.log_interval=0", "runner.num_evaluators=1", "runner.max_updates=100000"),
    *("runner.max_steps=", "modules.memory.unroll_length=128", "modules.learner.epochs=4"),
]
OMNIRL = "from omnirl.cli.app import main; main()"
SB3 = """
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
class Rows(BaseCallback):
    def _on_step(self): return True
    def _on_rollout_start(self):
        if self.num_timesteps: print("updated", flush=True); import time; time.sleep(60)
torch.set_num_threads(1)
model = PPO("MlpPolicy", make_vec_env("CartPole-v1", 8), n_steps=128, batch_size=256, n_epochs=4)
model.learn(10**6, callback=Rows())
"""


def processes(mark: str) -> list[psutil.Process]:
    """Every living process of a run."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                found.append(process)
        except psutil.Error:
            continue
    return found


def memory(mark: str) -> float:
    """The processes' proportional set sizes together, in MB."""
    total = 0
    for process in processes(mark):
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total / 2**20


def measure(side: str, sb3_python: str) -> dict[str, float]:
    """Start one side, wait for its first update, end it."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as folder:
        log, told = Path(folder, "run", "log.csv"), Path(folder, "out")
        command = [sb3_python, "-c", SB3]
        if side != "sb3":
            local = ["--local"] if side == "local" else []
            command = [sys.executable, "-c", OMNIRL, "train", *SETTINGS, "--run-dir", str(log.parent), *local]
        env = {**os.environ, MARK: mark, "OMP_NUM_THREADS": "1"}
        with open(told, "w", encoding="utf-8") as out:
            began = time.perf_counter()
            run = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env, cwd=folder)
            while not (_lines(log) > 1 or "updated" in told.read_text(encoding="utf-8")):
                if run.poll() is not None:
                    raise SystemExit(f"{side} failed:\n{told.read_text(encoding='utf-8')}")
                time.sleep(0.01)
            result = {"seconds": time.perf_counter() - began, "megabytes": memory(mark)}
            for process in processes(mark):
                try:
                    process.kill()
                except psutil.Error:
                    continue
            run.wait()
    return result


def _lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n") if path.exists() else 0


def compare(pairs: int, sb3_python: str) -> dict[str, Any]:
    """Measure every side in turn, ``pairs`` times; print the medians."""
    sides = ("sb3", "local", "ray")
    rounds: list[dict[str, dict[str, float]]] = []
    for number in range(pairs):
        order = sides if number % 2 == 0 else sides[::-1]
        rounds.append({side: measure(side, sb3_python) for side in order})
    result: dict[str, Any] = {
        side: {
            figure: statistics.median(one[side][figure] for one in rounds)
            for figure in ("seconds", "megabytes")
        }
        for side in sides
    }
    for side, one in result.items():
        print(f"{side:<6} {one['seconds']:5.1f} s  {one['megabytes']:6.0f} MB")
    return {"sides": result, "rounds": rounds}
