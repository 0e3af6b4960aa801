"""One run of OmniRL for throughput.py: trains, then prints one line of JSON.

The times are those of log.csv: a row per update for PPO, one per quarter of a second for the others, whose updates
are short or go many to a call, which a row for each would cut into calls of one.
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
from works import WORKS, Work

from omnirl import run
from omnirl.api.environment import EnvContext
from omnirl.api.specs import ContinuousAction
from omnirl.envs.gymnasium.backend import BACKEND
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.runtime import checkpoint


def configuration(name: str, side: str, updates: int, threads: int, seed: int) -> dict[str, Any]:
    """The hyperparameters of side_sb3.py; vf_coef is twice its, since our value loss is 1/2 MSE."""
    work = WORKS[name]
    runner = {
        "num_samplers": work.samplers,
        "num_envs_per_sampler": work.envs,
        "max_updates": updates,
        "num_evaluators": 1,
        "num_episodes": 1,
        "eval_interval": 0,
        "save_interval": 3600,
        "log_interval": 0 if work.algorithm == "ppo" else 0.25,
    }
    if side == "ray-lead1":
        runner["max_lead"] = 1
    modules = MODULES.get(work.algorithm, continuous_modules)
    return {
        "runner": runner,
        "device": {"learner": "cpu", "threads": threads},
        "seed": seed,
        "env": {"module": "gymnasium", "id": work.env},
        "agent": {"module": work.algorithm},
        "modules": modules(work),
    }


TANH = {"hidden_sizes": [64, 64], "activation": "tanh"}


def ppo_modules(work: Work) -> dict[str, Any]:
    """PPO's sections."""
    learner = {
        **{"lr": 3e-4, "gamma": 0.99, "gae_lambda": 0.95, "clip": 0.2, "ent_coef": 0.0, "vf_coef": 1.0},
        **{"max_grad_norm": 0.5, "epochs": 4, "minibatch_size": work.steps // 4},
    }
    return {"learner": learner, "memory": {"unroll_length": work.unroll}, "network": dict(TANH)}


def a2c_modules(work: Work) -> dict[str, Any]:
    """A2C's sections."""
    learner = {
        **{"lr": 7e-4, "gamma": 0.99, "gae_lambda": 1.0, "ent_coef": 0.0, "vf_coef": 0.5},
        **{"max_grad_norm": 0.5, "optimizer": "rmsprop", "rmsprop_decay": 0.99, "rmsprop_epsilon": 1e-5},
    }
    return {"learner": learner, "memory": {"unroll_length": work.unroll}, "network": dict(TANH)}


def impala_modules(work: Work) -> dict[str, Any]:
    """IMPALA's sections, those of side_rllib.py."""
    learner = {
        **{"lr": 5e-4, "gamma": 0.99, "ent_coef": 0.0, "vf_coef": 0.05, "max_grad_norm": 40.0},
        "optimizer": "adam",
    }
    memory = {"unroll_length": work.unroll, "rollouts_per_update": work.samplers}
    return {"learner": learner, "memory": memory, "network": dict(TANH)}


def value_modules(work: Work) -> dict[str, Any]:
    """Those of DQN and QR-DQN. A rollout of 256 steps, as in the preset, is worth a call on Ray."""
    own: dict[str, Any] = (
        {"num_quantiles": 50, "adam_epsilon": 0.01 / 64} if work.algorithm == "qr_dqn" else {}
    )
    return {
        "learner": {
            **{"lr": 1e-3, "gamma": 0.99, "target_update_interval": 500, "max_grad_norm": 10.0},
            "steps_per_update": 1,
            **own,
        },
        "memory": {
            "capacity": 50_000,
            "batch_size": 64,
            "warmup_steps": work.warmup,
            "unroll_length": work.unroll,
        },
        "policy": {"epsilon": {"kind": "linear", "start": 1.0, "end": 0.05, "until": 0.5}},
        "network": {"hidden_sizes": [64, 64], "activation": "relu"},
    }


def continuous_modules(work: Work) -> dict[str, Any]:
    """Those of SAC, TD3 and TQC; what is not given are the defaults of both sides."""
    return {
        "learner": {"lr": 3e-4, "gamma": 0.99, "tau": 0.005, "steps_per_update": 1},
        "memory": {
            "capacity": 50_000,
            "batch_size": 256,
            "warmup_steps": work.warmup,
            "unroll_length": work.unroll,
        },
        "network": {"hidden_sizes": [256, 256], "activation": "relu"},
    }


MODULES = {
    "ppo": ppo_modules,
    "a2c": a2c_modules,
    "impala": impala_modules,
    "dqn": value_modules,
    "qr_dqn": value_modules,
}


def rows_of(log: Path) -> list[dict[str, str]]:
    """The rows of log.csv with at least two updates."""
    with log.open(newline="") as stream:
        return [row for row in csv.DictReader(stream) if int(row["updates"]) >= 2]


def between_first_and_last(rows: list[dict[str, str]]) -> dict[str, float]:
    """Rates from the first row to the last."""
    if len(rows) < 2:
        raise SystemExit("too few updates: the log has no two rows to measure between")
    first, last = rows[0], rows[-1]
    seconds = float(last["wall_time"]) - float(first["wall_time"])
    # Steps that were learned from: IMPALA drops rollouts that are too old.
    names = {"steps_per_s": "trained_steps", "updates_per_s": "updates"}
    return {rate: (int(last[column]) - int(first[column])) / seconds for rate, column in names.items()}


def gradient_steps(run_dir: Path, last: dict[str, str]) -> int:
    """How many steps the optimizer made, by its own count in the last checkpoint; of several, the critics'. RMSprop
    counts none: its are the updates that the last row of the log does not call non-finite."""
    tree = checkpoint.load_latest(run_dir).tree
    counts = list(_named("steps", next(_named("critics", tree), tree)))
    if not counts:
        return int(last["updates"]) - int(float(last["nonfinite_updates"]))
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


def stepping_alone(work: Work, seconds: float = 0.5) -> float:
    """Steps/s with random actions, ended episodes begun anew as in training, for at least ``seconds``."""
    config = GymnasiumConfig(id=work.env)
    env = BACKEND.build_env(config, EnvContext("sampler", 0, work.envs))
    action, rng = BACKEND.get_env_spec(config).action, np.random.default_rng(0)
    if isinstance(action, ContinuousAction):
        actions = rng.uniform(*action.bounds(), (256, work.envs, *action.shape)).astype(np.float32)
    else:
        actions = rng.integers(0, action.n, (256, work.envs))
    for index in range(work.envs):
        env.reset(index, seed=index)
    steps, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        for row in actions:
            step = env.step(row)
            for index in np.flatnonzero(step.terminated | step.truncated):
                env.reset(int(index), seed=steps + int(index))
        steps += len(actions) * work.envs
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
        rows = rows_of(run_dir / "log.csv")
        result: dict[str, Any] = {
            **between_first_and_last(rows),
            "gradient_steps": gradient_steps(run_dir, rows[-1]),
            "vector": "stepped in the process",
            "stepping_alone": stepping_alone(WORKS[work]),
        }
        if WORKS[work].max_lag is not None:
            result["lag_max"] = max(int(row["lag_max"]) for row in rows if row["lag_max"])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
