"""A backend whose environments are unsound, each in the way that its id says."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import time

import numpy as np
from pydantic import Field

from omnirl.api import (
    ArraySpec,
    Config,
    ConfigError,
    DiscreteAction,
    EnvBackend,
    EnvBackendSpec,
    EnvFinding,
    EnvSpec,
    Step,
)

BUILT_HERE = []  # what another process has not


class UnsoundConfig(Config):
    id: str = Field(description="what is wrong with it")


class Unsound:
    """Observes [t, a random number of the seed]; episodes of 5 steps."""

    seedable = True
    frames_per_second = 5.0

    def __init__(self, config, context):
        self.num_envs, self.kind = context.num_envs, config.id
        if self.kind == "no constructor":
            raise ZeroDivisionError("no room")
        if self.kind == "refused":
            raise ConfigError("env.id: refused by its backend")
        if self.kind == "local" and not BUILT_HERE:
            raise LookupError("only where it was registered")

    def reset(self, index, seed):
        if self.kind == "hangs at the reset":
            subprocess.Popen(["sleep", "1000.25"])  # what such an environment started is ended with it
            time.sleep(1000)
        self.t = 0
        self.rng = np.random.default_rng() if self.kind == "unseeded" else np.random.default_rng(seed)
        return self.observe()[0]

    def observe(self):
        obs = np.array([[self.t, self.rng.random()]], np.float32)
        if self.kind == "nan at the reset" or (self.kind == "nan" and self.t == 3):
            obs[0, 1] = np.nan
        return obs.astype(np.float64) if self.kind == "float64" and self.t == 3 else obs

    def step(self, action):
        self.t += 1
        if self.kind == "slow":
            time.sleep(0.004)
        while self.kind == "hangs" and self.t == 3:
            pass
        if self.kind == "ends" and self.t == 3:
            os._exit(0)
        if self.kind == "crashes" and self.t == 3:
            os.abort()
        if self.kind == "exits" and self.t == 3:
            raise SystemExit(7)
        if self.kind == "talks":
            print("said by the environment", flush=True)
        if self.kind == "raises" and self.t == 3:
            raise RuntimeError("fell\nover")
        noise = np.random.default_rng().random() if self.kind == "unseeded reward" and self.t == 4 else 0.0
        reward = np.full(1, np.inf if self.kind == "inf" else noise, np.float32)
        ended = np.array([self.t >= 5 and self.kind != "endless"])
        obs = self.observe()
        return Step(obs, reward, np.zeros(1, bool), ended, obs)

    def render(self):
        if self.kind == "bad picture":
            return np.zeros((4, 4), np.uint8)
        if self.kind == "no picture":
            raise OSError("no screen")
        return np.zeros((4, 4, 3), np.uint8)

    def close(self):
        pass


def get_env_spec(config):
    if config.id == "no spec":
        raise AttributeError("no observation_space")
    return EnvSpec(ArraySpec((2,)), DiscreteAction(2), id=config.id)


def check(config, steps):
    return [EnvFinding("slow", "warning", f"of the backend's own, in {steps} steps", "be faster")]


UNSOUND = EnvBackend(get_env_spec=get_env_spec, build_env=Unsound, views=("frames",))
CHECKED = dataclasses.replace(UNSOUND, check=check)
BACKEND = EnvBackendSpec(
    name="unsound",
    summary="unsound environments",
    config="acme_watch.unsound:UnsoundConfig",
    backend="acme_watch.unsound:UNSOUND",
)
