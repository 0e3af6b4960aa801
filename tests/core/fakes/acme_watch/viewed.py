"""A backend whose environment can be filmed: the picture's colour says which step it shows."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from omnirl.api import ArraySpec, Config, DiscreteAction, EnvBackend, EnvBackendSpec, EnvSpec, Step

METRICS = ("return_mean", "return_std", "return_min", "return_max", "length_mean", "episodes")


class ViewedConfig(Config):
    length: int = Field(default=3, description="steps of an episode")
    rate: float = Field(default=7.0, description="frames per second")
    trouble: str = Field(default="", description="what goes wrong: step, float or size")


class Viewed:
    """Observes t; the picture is uint8 [15, 21, 3], all of it (50 t, 0, 200)."""

    seedable = True

    def __init__(self, config, context):
        self.num_envs, self._config, self.context = context.num_envs, config, context
        self.frames_per_second = config.rate
        self.time = np.zeros(self.num_envs, np.int64)
        self.closed = False
        self._picture = np.zeros((15, 21, 3), np.uint8)  # one array for all pictures

    def reset(self, index, seed):
        self.time[index] = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.time += 1
        if self._config.trouble == "step" and self.time[0] == 2:
            raise RuntimeError("the arm fell off")
        obs, ended = self.time.astype(np.float32)[:, None], self.time >= self._config.length
        return Step(obs, np.ones(self.num_envs, np.float32), np.zeros(self.num_envs, bool), ended, obs)

    def render(self):
        assert not self.closed
        assert (self.context.view, self.num_envs) == ("frames", 1)
        self._picture[:] = (50 * self.time[0], 0, 200)
        if self._config.trouble == "float":
            return self._picture / 255
        if self._config.trouble == "size" and self.time[0] == 2:
            return self._picture[:-1]
        return self._picture

    def close(self):
        self.closed = True


def get_env_spec(config):
    return EnvSpec(ArraySpec((1,)), DiscreteAction(2), METRICS, id="viewed")


VIEWED = EnvBackend(get_env_spec=get_env_spec, build_env=Viewed, views=("frames",))
BACKEND = EnvBackendSpec(
    name="viewed",
    summary="can be filmed",
    config="acme_watch.viewed:ViewedConfig",
    backend="acme_watch.viewed:VIEWED",
)
