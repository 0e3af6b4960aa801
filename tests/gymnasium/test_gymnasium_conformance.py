"""The Gymnasium backend passes the conformance suite: discrete and continuous, terminated and truncated."""

from __future__ import annotations

import gymnasium
import numpy as np

from omnirl.envs.gymnasium.plugin import omnirl_env_backends
from omnirl.testing import BackendSuite

CARTPOLE = {"id": "CartPole-v1", "kwargs": {"max_episode_steps": 30}}


class TestGymnasium(BackendSuite):
    spec = next(iter(omnirl_env_backends()))
    simulators = ("gymnasium",)
    environments = {  # noqa: RUF012
        "terminated or truncated": CARTPOLE,
        "continuous and truncated": {"id": "Pendulum-v1", "kwargs": {"max_episode_steps": 40}},
        "discrete observations": {"id": "FrozenLake-v1"},
        "in processes of their own": {**CARTPOLE, "vectorization": "process"},
    }

    def reference(self, env):
        """Gymnasium itself, where neither an observation nor an action is translated."""
        if env is not CARTPOLE:
            return None
        return Plain(gymnasium.make(env["id"], **env["kwargs"]))


class Plain:
    def __init__(self, env):
        self._env = env

    def reset(self, seed):
        return self._env.reset(seed=seed)[0]

    def step(self, action):
        return self._env.step(np.int64(action))[:4]
