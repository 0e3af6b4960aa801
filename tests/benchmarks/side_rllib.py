"""One run of RLlib's IMPALA for throughput.py: trains, then prints one line of JSON.

The hyperparameters are those of RLlib's own tuned example for CartPole, with separate networks; time runs from the
first report with two updates to the report that has them all. Steps are those sampled, learned from or not.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time

import gymnasium
import ray
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from works import WORKS, Work


def configuration(work: Work, seed: int) -> IMPALAConfig:
    """The hyperparameters of side_omnirl.py."""
    return (
        IMPALAConfig()
        .environment(work.env)
        .env_runners(
            num_env_runners=work.samplers,
            num_envs_per_env_runner=work.envs,
            rollout_fragment_length=work.unroll,
        )
        .learners(num_learners=1, num_gpus_per_learner=0)
        .training(
            train_batch_size_per_learner=work.steps,
            lr=5e-4,
            gamma=0.99,
            grad_clip=40.0,
            vf_loss_coeff=0.05,
            entropy_coeff=0.0,
        )
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], vf_share_layers=False))
        .reporting(min_time_s_per_iteration=1)
        .debugging(seed=seed)
    )


def stepping_alone(work: Work, seconds: float = 0.5) -> float:
    """Steps/s of one runner's environments with random actions, for at least ``seconds``."""
    env = gymnasium.make_vec(work.env, num_envs=work.envs, vectorization_mode="sync")
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(256)]
    env.reset(seed=0)
    steps, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        for action in actions:
            env.step(action)
        steps += len(actions) * work.envs
    env.close()
    return steps / passed


def main() -> None:
    """Arguments: work, side (always rllib), updates, threads (by OMP_NUM_THREADS), seed."""
    name, _, updates, _, seed = sys.argv[1:]
    work = WORKS[name]
    os.environ.pop("TMPDIR", None)  # Ray's sockets lie there, and their paths may have 107 characters
    ray.init(address="local", include_dashboard=False, num_cpus=work.samplers + 2, log_to_driver=False)
    algorithm = configuration(work, int(seed)).build_algo()
    reports: list[tuple[float, int, int]] = []
    while not reports or reports[-1][1] < int(updates):
        result = algorithm.train()
        # A report in whose second no update ended has no number of updates, or NaN.
        made = result.get("learners", {}).get("default_policy", {}).get("weights_seq_no", math.nan)
        steps = result.get("env_runners", {}).get("num_env_steps_sampled_lifetime", math.nan)
        if made >= 2 and math.isfinite(steps):
            reports.append((time.perf_counter(), int(made), int(steps)))
    (start, first_updates, first_steps), (end, last_updates, last_steps) = reports[0], reports[-1]
    algorithm.stop()
    ray.shutdown()
    figures = {
        "steps_per_s": (last_steps - first_steps) / (end - start),
        "updates_per_s": (last_updates - first_updates) / (end - start),
        "gradient_steps": last_updates,
        "vector": "SyncVectorEnv",
        "stepping_alone": stepping_alone(work),
    }
    print(json.dumps(figures), flush=True)
    os._exit(0)  # RLlib's destructors would ask for Ray anew


if __name__ == "__main__":
    main()
