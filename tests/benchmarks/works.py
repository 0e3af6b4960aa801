"""What the throughput benchmark compares: the same work for both sides. Imports nothing but the standard library, as
each side runs in an environment of its own.

================  =============================================================================================
work              both sides
================  =============================================================================================
ppo-8, ppo-16     PPO, CartPole, 8 or 16 environments x 128 steps, 4 epochs of 4 minibatches, [64, 64]
a2c               A2C, CartPole, 8 environments x 5 steps, RMSprop, [64, 64]: the zoo's settings
impala-1x8        IMPALA, CartPole, 1 sampler x 8 environments x 50 steps, an update per rollout, [64, 64]
impala-2x5        the same with 2 samplers x 5 environments, an update per two rollouts: the preset's settings
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

    title          what the page of results calls it
    algorithm      OmniRL's name
    env            Gymnasium's id
    figure         the rate that is compared
    sides          who takes part, the one compared with first, see throughput.py
    updates        how many by default
    samplers       processes that collect
    envs           environments of each
    unroll         steps of each environment in a rollout
    warmup         environment steps before the first update
    steps          environment steps per update
    peer_updates   how many the side compared with makes, where it would take minutes for as many
    max_lag        updates that a rollout may be old, where samplers run ahead
    """

    title: str
    algorithm: str
    env: str
    figure: str
    sides: tuple[str, ...]
    updates: int
    samplers: int = 1
    envs: int = 1
    unroll: int = 1
    warmup: int = 0
    steps: int = 1
    peer_updates: int | None = None
    max_lag: int | None = None

    def updates_of(self, side: str) -> int:
        """How many updates ``side`` makes by default."""
        return self.peer_updates if self.peer_updates and side == self.sides[0] else self.updates


_RAY = ("sb3", "local", "ray")
_PPO = "PPO, CartPole-v1, {} environments x 128 steps, 4 epochs of 4 minibatches, [64, 64]: steps/s"
_IMPALA = (
    "IMPALA, CartPole-v1, {} sampler{} x {} environments x 50 steps, {} steps per update, [64, 64]: steps/s"
)
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
            unroll=128,
            steps=128 * count,
        )
        for count in (8, 16)
    },
    "a2c": Work(
        title="A2C, CartPole-v1, 8 environments x 5 steps, RMSprop, [64, 64]: steps/s",
        algorithm="a2c",
        env="CartPole-v1",
        figure="steps_per_s",
        sides=_RAY,
        updates=1400,
        envs=8,
        unroll=5,
        steps=40,
    ),
    **{
        f"impala-{samplers}x{envs}": Work(
            title=_IMPALA.format(samplers, "s" if samplers > 1 else "", envs, samplers * envs * 50),
            algorithm="impala",
            env="CartPole-v1",
            figure="steps_per_s",
            sides=("rllib", "local", "ray") if samplers == 1 else ("rllib", "ray"),
            updates=300,
            samplers=samplers,
            envs=envs,
            unroll=50,
            steps=samplers * envs * 50,
            peer_updates=60,
            max_lag=2,
        )
        for samplers, envs in ((1, 8), (2, 5))
    },
    **{
        name: Work(
            title=_VALUES.format(title, detail),
            algorithm=name,
            env="CartPole-v1",
            figure="updates_per_s",
            sides=_RAY,
            updates=updates,
            unroll=256,
            warmup=1000,
        )
        for name, title, detail, updates in (
            ("dqn", "DQN", "", 8000),
            ("qr_dqn", "QR-DQN", ", 50 quantiles", 2000),
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
            unroll=64,
            warmup=300,
        )
        for name, detail, updates in (
            ("sac", "", 300),
            ("td3", "", 400),
            ("tqc", ", 2 critics of 25 quantiles", 150),
        )
    },
}
