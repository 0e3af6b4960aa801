"""One run of Stable-Baselines3 for throughput.py: trains, then prints one line of JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv
from works import WORKS


def build(name: str, seed: int) -> tuple[BaseAlgorithm, VecEnv]:
    """The algorithm and its environments, with the hyperparameters of side_omnirl.py."""
    work = WORKS[name]
    env = make_vec_env(work.env, n_envs=work.envs, seed=seed, vec_env_cls=DummyVecEnv)
    shared: dict[str, Any] = {"seed": seed, "device": "cpu", "gamma": 0.99}
    if work.algorithm == "ppo":
        network = {"net_arch": {"pi": [64, 64], "vf": [64, 64]}}
        return (
            PPO(
                "MlpPolicy", env, learning_rate=3e-4, n_steps=work.unroll, batch_size=work.steps // 4, n_epochs=4,
                gae_lambda=0.95, clip_range=0.2, ent_coef=0.0, vf_coef=0.5, max_grad_norm=0.5,
                policy_kwargs=network, **shared,
            ),
            env,
        )  # fmt: skip
    if work.algorithm == "a2c":
        return (
            A2C(
                "MlpPolicy", env, learning_rate=7e-4, n_steps=work.unroll, gae_lambda=1.0, ent_coef=0.0, vf_coef=0.5,
                max_grad_norm=0.5, rms_prop_eps=1e-5, policy_kwargs={"net_arch": {"pi": [64, 64], "vf": [64, 64]}},
                **shared,
            ),
            env,
        )  # fmt: skip
    shared.update(buffer_size=50_000, learning_starts=work.warmup, train_freq=1, gradient_steps=1)
    if work.algorithm in ("dqn", "qr_dqn"):
        network = {"net_arch": [64, 64]}
        if work.algorithm == "qr_dqn":
            network["n_quantiles"] = 50
        return (
            algorithm_class(work.algorithm)(
                "MlpPolicy", env, learning_rate=1e-3, batch_size=64, target_update_interval=500,
                exploration_fraction=0.5, exploration_final_eps=0.05, max_grad_norm=10,
                policy_kwargs=network, **shared,
            ),
            env,
        )  # fmt: skip
    return (
        algorithm_class(work.algorithm)(
            "MlpPolicy", env, learning_rate=3e-4, batch_size=256, tau=0.005,
            policy_kwargs={"net_arch": [256, 256]}, **shared,
        ),
        env,
    )  # fmt: skip


def algorithm_class(algorithm: str) -> Any:
    """The class of an algorithm with replay; sb3-contrib is needed for its own alone."""
    if algorithm in ("tqc", "qr_dqn"):
        import sb3_contrib

        return {"tqc": sb3_contrib.TQC, "qr_dqn": sb3_contrib.QRDQN}[algorithm]
    return {"dqn": DQN, "sac": SAC, "td3": TD3}[algorithm]


def watch(model: Any) -> tuple[list[tuple[float, int]], list[int]]:
    """Note (time, environment steps) after each update, and count the optimizer's steps (of several, the critics')."""
    moments: list[tuple[float, int]] = []
    counted = [0]
    critics = getattr(model, "critic", None)
    optimizer = model.policy.optimizer if critics is None else critics.optimizer
    train, step = model.train, optimizer.step

    def timed_train(*args: Any, **kwargs: Any) -> None:
        train(*args, **kwargs)
        moments.append((time.perf_counter(), model.num_timesteps))

    def counted_step(*args: Any, **kwargs: Any) -> Any:
        counted[0] += 1
        return step(*args, **kwargs)

    model.train, optimizer.step = timed_train, counted_step
    return moments, counted


def stepping_alone(env: VecEnv, seconds: float = 0.5) -> float:
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
    model.learn(WORKS[work].warmup + int(updates) * WORKS[work].steps)
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
