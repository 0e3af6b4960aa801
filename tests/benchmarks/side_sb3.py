"""One run of Stable-Baselines3 for ppo_dqn_vs_sb3.py: trains, then prints one line of JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

WARMUP = 1000  # steps before DQN's first update


def build(work: str, seed: int) -> tuple[BaseAlgorithm, VecEnv]:
    """The algorithm and its environments, with the hyperparameters of side_omnirl.py."""
    count = int(work.removeprefix("ppo-")) if work.startswith("ppo") else 1
    env = make_vec_env("CartPole-v1", n_envs=count, seed=seed, vec_env_cls=DummyVecEnv)
    shared = {"seed": seed, "device": "cpu", "gamma": 0.99}
    if work.startswith("ppo"):
        network = {"net_arch": {"pi": [64, 64], "vf": [64, 64]}}
        minibatch = count * 128 // 4
        return (
            PPO(
                "MlpPolicy", env, learning_rate=3e-4, n_steps=128, batch_size=minibatch, n_epochs=4,
                gae_lambda=0.95, clip_range=0.2, ent_coef=0.0, vf_coef=0.5, max_grad_norm=0.5,
                policy_kwargs=network, **shared,
            ),
            env,
        )  # fmt: skip
    return (
        DQN(
            "MlpPolicy", env, learning_rate=1e-3, buffer_size=50_000, learning_starts=WARMUP, batch_size=64,
            train_freq=1, gradient_steps=1, target_update_interval=500, exploration_fraction=0.5,
            exploration_final_eps=0.05, max_grad_norm=10, policy_kwargs={"net_arch": [64, 64]}, **shared,
        ),
        env,
    )  # fmt: skip


def watch(model: Any) -> tuple[list[tuple[float, int]], list[int]]:
    """Note (time, environment steps) after each update, and count the optimizer's steps."""
    moments: list[tuple[float, int]] = []
    counted = [0]
    train, step = model.train, model.policy.optimizer.step

    def timed_train(*args: Any, **kwargs: Any) -> None:
        train(*args, **kwargs)
        moments.append((time.perf_counter(), model.num_timesteps))

    def counted_step(*args: Any, **kwargs: Any) -> Any:
        counted[0] += 1
        return step(*args, **kwargs)

    model.train, model.policy.optimizer.step = timed_train, counted_step
    return moments, counted


def stepping_alone(env: VecEnv, seconds: float = 1.0) -> float:
    """Steps/s with random actions, for at least ``seconds``."""
    env.action_space.seed(0)
    actions = [[env.action_space.sample() for _ in range(env.num_envs)] for _ in range(256)]
    env.reset()
    steps, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        for action in actions:
            env.step(action)
        steps += len(actions) * env.num_envs
    return steps / passed


def main() -> None:
    """Arguments: work, side (always sb3), updates, threads, seed."""
    work, _, updates, threads, seed = sys.argv[1:]
    torch.set_num_threads(int(threads))
    model, env = build(work, int(seed))
    moments, counted = watch(model)
    steps_per_update = env.num_envs * 128 if work.startswith("ppo") else 1
    warmup = 0 if work.startswith("ppo") else WARMUP
    model.learn(warmup + int(updates) * steps_per_update)
    if len(moments) != int(updates):
        raise SystemExit(f"{len(moments)} updates instead of {updates}")
    (start, first_steps), (end, last_steps) = moments[1], moments[-1]
    result = {
        "steps_per_s": (last_steps - first_steps) / (end - start),
        "updates_per_s": (len(moments) - 2) / (end - start),
        "gradient_steps": counted[0],
        "vector": "DummyVecEnv with Monitor",
        "stepping_alone": stepping_alone(env),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
