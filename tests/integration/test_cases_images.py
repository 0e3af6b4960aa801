"""K24 through every part: what an environment shows in its brightest pixels is 1 for every network, once scaled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.api import ArraySpec, EnvContext
from omnirl.envs.gymnasium.backend import build_env, get_env_spec
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.testing.miniature import Miniature

SPECS = {spec.name: spec for spec in ALGORITHMS}
MODULES: dict[str, dict[str, Any]] = {
    "ppo": {"learner": {"epochs": 1, "minibatch_size": 16}, "memory": {"unroll_length": 8}},
    "dqn": {
        "memory": {"capacity": 60, "batch_size": 8, "warmup_steps": 24, "unroll_length": 4, "n_step": 2},
        "policy": {"epsilon": 0.0},
    },
}


class Bright(gymnasium.Env[Any, Any]):
    """All pixels at their brightest; episodes of three steps, so that final observations are among them."""

    action_space = spaces.Discrete(2)

    def __init__(self, dtype: str) -> None:
        self.observation_space = spaces.Box(
            0, 255 if dtype == "uint8" else 1, (84, 84, 3), np.dtype(dtype).type
        )
        self.picture = np.full((84, 84, 3), self.observation_space.high.max(), dtype)
        self.t = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.t = 0
        return self.picture, {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return self.picture, 1.0, False, self.t == 3, {}


@pytest.fixture(autouse=True)
def bright() -> Iterator[None]:
    gymnasium.register("cases/Bright-v0", Bright)
    yield
    del gymnasium.registry["cases/Bright-v0"]


def watched(network: Any, seen: list[tuple[tuple[int, ...], float, float]]) -> None:
    """Note shape, least and greatest number of whatever goes into the network's convolutions."""
    features = getattr(network, "policy", network).features

    def note(module: Any, given: Any) -> None:
        pixels = given[0].detach()
        seen.append((tuple(pixels.shape[1:]), float(pixels.min()), float(pixels.max())))

    features.convolutions.register_forward_pre_hook(note)


@pytest.mark.parametrize("algorithm", MODULES)
@pytest.mark.parametrize(("dtype", "layout"), [("uint8", "auto"), ("float32", "hwc"), ("bool", "hwc")])
def test_k24_pixels_are_scaled_exactly_once(algorithm: str, dtype: str, layout: Any) -> None:
    config = GymnasiumConfig(
        id="cases/Bright-v0", kwargs={"dtype": dtype}, layout=layout, vectorization="inline"
    )
    spec = get_env_spec(config)
    assert spec.observation == ArraySpec((3, 84, 84), dtype, "image")
    run = Miniature(
        SPECS[algorithm], MODULES[algorithm], spec, build_env(config, EnvContext("sampler", 0, 2))
    )
    seen: list[tuple[tuple[int, ...], float, float]] = []
    watched(run.learner.network, seen)
    watched(getattr(run.learner, "target_network", run.learner.network), seen)
    watched(run.policy._network._network, seen)
    run.run(2)
    assert len(run.rollouts[0].final_at) > 0
    assert len(seen) > 10
    assert set(seen) == {((3, 84, 84), 1.0, 1.0)}
    assert all(np.asarray(rollout.obs).dtype == np.dtype(dtype) for rollout in run.rollouts)
