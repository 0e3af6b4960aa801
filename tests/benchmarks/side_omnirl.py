"""One run of OmniRL for ppo_dqn_vs_sb3.py: trains, then prints one line of JSON.

The times are those of log.csv: a row per update for PPO, one per quarter of a second for DQN, whose updates
go many to a call and would otherwise be cut into calls of one.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from omnirl import run
from omnirl.api.environment import EnvContext
from omnirl.envs.gymnasium.backend import BACKEND
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.runtime import checkpoint

WARMUP = 1000  # steps before DQN's first update


def configuration(work: str, side: str, updates: int, threads: int, seed: int) -> dict[str, Any]:
    """The hyperparameters of side_sb3.py; vf_coef is twice its, since our value loss is 1/2 MSE."""
    ppo = work.startswith("ppo")
    count = int(work.removeprefix("ppo-")) if ppo else 1
    runner = {
        "num_samplers": 1,
        "num_envs_per_sampler": count,
        "max_updates": updates,
        "num_evaluators": 1,
        "num_episodes": 1,
        "eval_interval": 0,
        "save_interval": 3600,
        "log_interval": 0 if ppo else 0.25,
    }
    if side == "ray-lead1":
        runner["max_lead"] = 1
    network = {"hidden_sizes": [64, 64], "activation": "tanh" if ppo else "relu"}
    return {
        "runner": runner,
        "device": {"learner": "cpu", "threads": threads},
        "seed": seed,
        "env": {"module": "gymnasium", "id": "CartPole-v1"},
        "agent": {"module": "ppo" if ppo else "dqn"},
        "modules": {**(ppo_modules(count) if ppo else dqn_modules()), "network": network},
    }


def ppo_modules(count: int) -> dict[str, Any]:
    """PPO's sections but the network."""
    learner = {
        **{"lr": 3e-4, "gamma": 0.99, "gae_lambda": 0.95, "clip": 0.2, "ent_coef": 0.0, "vf_coef": 1.0},
        **{"max_grad_norm": 0.5, "epochs": 4, "minibatch_size": count * 128 // 4},
    }
    return {"learner": learner, "memory": {"unroll_length": 128}}


def dqn_modules() -> dict[str, Any]:
    """DQN's sections but the network. A rollout of 256 steps, as in the preset, is worth a call on Ray."""
    return {
        "learner": {
            **{"lr": 1e-3, "gamma": 0.99, "target_update_interval": 500, "max_grad_norm": 10.0},
            "steps_per_update": 1,
        },
        "memory": {"capacity": 50_000, "batch_size": 64, "warmup_steps": WARMUP, "unroll_length": 256},
        "policy": {"epsilon": {"kind": "linear", "start": 1.0, "end": 0.05, "until": 0.5}},
    }


def between_second_and_last(log: Path) -> dict[str, float]:
    """Rates from the first row with at least two updates to the last row."""
    with log.open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if int(row["updates"]) >= 2]
    first, last = rows[0], rows[-1]
    seconds = float(last["wall_time"]) - float(first["wall_time"])
    names = {"steps_per_s": "env_steps", "updates_per_s": "updates"}
    return {rate: (int(last[column]) - int(first[column])) / seconds for rate, column in names.items()}


def gradient_steps(run_dir: Path) -> int:
    """How many steps the optimizer made, by its own count in the last checkpoint."""
    counts = list(_named("steps", checkpoint.load_latest(run_dir).tree))
    if len(counts) != 1:
        raise SystemExit(f"the checkpoint holds {len(counts)} optimizers' counts")
    return int(counts[0].item())


def _named(name: str, tree: Any) -> Any:
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == name:
                yield value
            else:
                yield from _named(name, value)


def stepping_alone(count: int, seconds: float = 1.0) -> float:
    """Steps/s with random actions, ended episodes begun anew as in training, for at least ``seconds``."""
    env = BACKEND.build_env(GymnasiumConfig(id="CartPole-v1"), EnvContext("sampler", 0, count))
    actions = np.random.default_rng(0).integers(0, 2, (256, count))
    for index in range(count):
        env.reset(index, seed=index)
    steps, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        for action in actions:
            step = env.step(action)
            for index in np.flatnonzero(step.terminated | step.truncated):
                env.reset(int(index), seed=steps + int(index))
        steps += actions.size
    env.close()
    return steps / passed


def main() -> None:
    """Arguments: work, side, updates, threads, seed."""
    work, side = sys.argv[1:3]
    updates, threads, seed = map(int, sys.argv[3:6])
    settings = configuration(work, side, updates, threads, seed)
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder, "run")
        settings["runner"]["ckpt_dir"] = str(run_dir)
        config = run.configure(settings)
        summary = run.train(config, local=side == "local", resume="never")
        if summary.updates != updates:
            raise SystemExit(f"{summary.updates} updates instead of {updates}: {summary.message}")
        result: dict[str, Any] = {
            **between_second_and_last(run_dir / "log.csv"),
            "gradient_steps": gradient_steps(run_dir),
            "vector": "stepped in the process",
            "stepping_alone": stepping_alone(settings["runner"]["num_envs_per_sampler"]),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
