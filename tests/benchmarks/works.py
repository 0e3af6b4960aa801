"""What the throughput benchmark compares: the same work for both sides. Imports nothing but the standard library, as
each side runs in an environment of its own.

================  =============================================================================================
work              both sides
================  =============================================================================================
ppo-8, ppo-16     PPO, CartPole, 8 or 16 environments x 128 steps, 4 epochs of 4 minibatches, [64, 64]
dqn               DQN, CartPole, one update per step, batches of 64, [64, 64]
qr_dqn            the same with 50 quantiles per action
sac, td3          Pendulum, one update per step, batches of 256, [256, 256]
tqc               the same with 2 critics of 25 quantiles
================  =============================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """One work.

    title        what the page of results calls it
    algorithm    OmniRL's name
    env          Gymnasium's id
    figure       the rate that is compared
    sides        who takes part, see throughput_vs_sb3.py
    updates      how many by default
    envs         environments
    warmup       environment steps before the first update
    steps        environment steps per update
    """

    title: str
    algorithm: str
    env: str
    figure: str
    sides: tuple[str, ...]
    updates: int
    envs: int = 1
    warmup: int = 0
    steps: int = 1


_RAY = ("sb3", "local", "ray")
_PPO = "PPO, CartPole-v1, {} environments x 128 steps, 4 epochs of 4 minibatches, [64, 64]: steps/s"
_VALUES = "{}, CartPole-v1, one update per step, batches of 64, [64, 64]{}: updates/s"
_CONTINUOUS = "{}, Pendulum-v1, one update per step, batches of 256, [256, 256]{}: updates/s"

WORKS = {
    **{
        f"ppo-{count}": Work(
            title=_PPO.format(count),
            algorithm="ppo",
            env="CartPole-v1",
            figure="steps_per_s",
            sides=(*_RAY, "ray-lead1"),
            updates=40,
            envs=count,
            steps=128 * count,
        )
        for count in (8, 16)
    },
    **{
        name: Work(
            title=_VALUES.format(title, detail),
            algorithm=name,
            env="CartPole-v1",
            figure="updates_per_s",
            sides=_RAY,
            updates=updates,
            warmup=1000,
        )
        for name, title, detail, updates in (
            ("dqn", "DQN", "", 8000),
            ("qr_dqn", "QR-DQN", ", 50 quantiles", 3000),
        )
    },
    **{
        name: Work(
            title=_CONTINUOUS.format(name.upper(), detail),
            algorithm=name,
            env="Pendulum-v1",
            figure="updates_per_s",
            sides=_RAY,
            updates=updates,
            warmup=300,
        )
        for name, detail, updates in (
            ("sac", "", 600),
            ("td3", "", 800),
            ("tqc", ", 2 critics of 25 quantiles", 300),
        )
    },
}
