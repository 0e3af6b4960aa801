"""What ``nox -s environments`` runs: the suites for 20,000 steps on Ray, and real environments for 2,000."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Suite:
    """A preset, what is changed for a short run, and whether its return must be above the random policy's."""

    name: str
    preset: str
    overrides: tuple[str, ...]
    better_than_random: dict[str, Any] | None = None


@dataclass(frozen=True)
class Real:
    """An environment of anybody's: its package, its id and further keys of ``env``, and whether it can be used."""

    package: str
    env: str
    keys: tuple[str, ...] = ()
    algorithm: str = "ppo"
    overrides: tuple[str, ...] = field(default=())


STEPS = "runner.max_steps=20000"
SHORT_ROLLOUTS = (
    "runner.num_envs_per_sampler=8",
    "modules.memory.unroll_length=64",
    "modules.learner.minibatch_size=64",
)
SUITES = (
    Suite(
        "CarRacing, PPO, CNN",
        "carracing-ppo",
        (STEPS, "runner.num_episodes=2", "modules.memory.unroll_length=256", "modules.learner.epochs=4"),
    ),
    Suite(
        "Pong, DQN",
        "pong-dqn",
        (STEPS, "runner.num_episodes=2", "modules.memory.capacity=20000", "modules.memory.warmup_steps=2000"),
    ),
    Suite("Pong, PPO", "pong-ppo", (STEPS, "runner.num_episodes=2")),
    Suite("HalfCheetah, PPO", "halfcheetah-ppo", (STEPS,), {"id": "HalfCheetah-v5"}),
    Suite(
        "MinAtar Breakout, PPO",
        "minatar-breakout-ppo",
        (STEPS, *SHORT_ROLLOUTS, "modules.learner.lr=1e-3", "modules.learner.epochs=4"),
        {"id": "MinAtar/Breakout-v1", "layout": "hwc", "wrappers": [{"time_limit": {"steps": 5000}}]},
    ),
)

SMALL = ("env.kwargs.max_episode_steps=200",)
GREY = "env.wrappers=[{resize: {height: 64, width: 64}}, grey]"
REAL = (
    Real("gymnasium[box2d]", "LunarLander-v3"),
    Real("gymnasium[box2d]", "BipedalWalker-v3"),
    Real("gymnasium[box2d]", "CarRacing-v3", (GREY, *SMALL)),
    Real("gymnasium[mujoco]", "HalfCheetah-v5"),
    Real("ale-py", "ALE/Pong-v5", ("env.wrappers=[atari]", "env.frame_stack=4"), "dqn"),
    Real("minatar", "MinAtar/Breakout-v1", ("env.layout=hwc",)),
    Real(
        "minigrid",
        "MiniGrid-Empty-5x5-v0",
        ("env.imports=[minigrid]", 'env.wrappers=[{class: "minigrid.wrappers:ImgObsWrapper"}, flatten]'),
    ),
    Real("minigrid", "BabyAI-GoToRedBall-v0", ("env.imports=[minigrid]",)),
    Real("highway-env", "highway-fast-v0", ("env.imports=[highway_env]",), "dqn"),
    Real("highway-env", "parking-v0", ("env.imports=[highway_env]",)),
    Real("flappy-bird-gymnasium", "FlappyBird-v0", ("env.imports=[flappy_bird_gymnasium]",), "dqn"),
    Real("gym-simplegrid", "SimpleGrid-8x8-v0", ("env.imports=[gym_simplegrid]", *SMALL)),
    Real("gym-pusht", "gym_pusht/PushT-v0", ("env.imports=[gym_pusht]",)),
    Real("gymnasium-robotics", "FetchReach-v4", ("env.imports=[gymnasium_robotics]",)),
    Real("gymnasium-robotics", "PointMaze_UMaze-v3", ("env.imports=[gymnasium_robotics]",)),
    Real("mo-gymnasium", "minecart-v0", ("env.imports=[mo_gymnasium]",)),
    Real("miniworld", "MiniWorld-Hallway-v0", ("env.imports=[miniworld]",)),
)
TRAINED = {
    "ppo": (
        "runner.num_envs_per_sampler=4",
        "modules.memory.unroll_length=64",
        "modules.learner.minibatch_size=64",
    ),
    "dqn": (
        *("modules.memory.capacity=2000", "modules.memory.warmup_steps=500", "modules.memory.batch_size=32"),
        "modules.memory.unroll_length=16",
    ),
}
