"""K26: running statistics over real environments and runs: every step once, in every way of resetting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import omnirl.run
from omnirl.algorithms.shared.acting.normalization import ReturnNormalizer
from omnirl.api import DiscreteAction, EnvContext
from omnirl.envs.gymnasium.backend import build_env
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.loops.collection import collect_loop
from omnirl.runtime import checkpoint
from omnirl.testing.fakes import FakePolicy, FakeStreams, vector_spec


class CountVector(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Count(3): reward 1, truncated at the third step, reset in the way of its mode."""

    def __init__(self, num_envs: int, mode: AutoresetMode, render_mode: str | None = None) -> None:
        self.num_envs, self.mode, self.render_mode = num_envs, mode, render_mode
        self.metadata = {"autoreset_mode": mode}
        self.single_observation_space = spaces.Box(0, 3, (1,), np.float32)
        self.single_action_space = spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.k = np.zeros((self.num_envs, 1), np.float32)
        self.ended = np.zeros(self.num_envs, bool)
        return self.k.copy(), {}

    def step(self, actions: Any) -> Any:
        none = np.zeros(self.num_envs, bool)
        if self.ended.any() and self.mode is AutoresetMode.NEXT_STEP:  # a dummy step, which must not count
            self.reset()
            return self.k.copy(), np.full(self.num_envs, 100.0), none, none, {}
        self.k += 1
        self.ended = self.k[:, 0] >= 3
        observation, ended, info = self.k.copy(), self.ended.copy(), {}
        if ended.any() and self.mode is AutoresetMode.SAME_STEP:
            info = {"final_obs": np.array([*observation, None], dtype=object)[:-1]}
            observation, _ = self.reset()
        return observation, np.ones(self.num_envs), none, ended, info


@pytest.fixture
def register() -> Iterator[Callable[[AutoresetMode], str]]:
    names = []

    def add(mode: AutoresetMode) -> str:
        name = f"cases/Count{mode.value}-v0"
        gymnasium.register(name, vector_entry_point=CountVector, kwargs={"mode": mode})
        names.append(name)
        return name

    yield add
    for name in names:
        del gymnasium.registry[name]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_k26_discounted_returns_are_the_same_in_both_autoreset_modes(
    mode: AutoresetMode, register: Callable[[AutoresetMode], str]
) -> None:
    """gamma 1, two episodes of three steps: 1, 2, 3, 1, 2, 3 has mean 2, variance 0.666667, count 6."""
    environment = build_env(GymnasiumConfig(id=register(mode)), EnvContext("sampler", 0, 1))
    spec = vector_spec(1, DiscreteAction(2))
    collector = collect_loop(environment, FakePolicy(spec, 1), 3, FakeStreams())
    normalizer = ReturnNormalizer(1.0)
    for _ in range(2):
        normalizer.observe(collector.collect(0, 0))
    environment.close()
    assert normalizer.pending.count == 6
    assert float(normalizer.pending.mean) == pytest.approx(2.0)
    assert float(normalizer.pending.var) == pytest.approx(0.666667, abs=1e-6)


def normalizers(folder: Path) -> dict[str, float]:
    """The counts of both statistics in a run's checkpoint."""
    _, tree = checkpoint.read(folder / checkpoint.CURRENT)
    found: dict[str, float] = {}

    def walk(name: str, value: Any) -> None:
        if isinstance(value, dict):
            if "pending" in value:
                found[name] = float(value["pending"]["count"])
            for key, item in value.items():
                walk(key, item)

    walk("", tree["learner"])
    return found


@pytest.mark.parametrize("samplers", [1, 2])
def test_k26_every_step_of_a_run_is_counted_once_also_across_a_resume(samplers: int, tmp_path: Path) -> None:
    """Rollouts of 5 steps x 2 environments: after n updates each statistic has seen 10 n steps per sampler."""
    config = {
        "runner": {
            **{"num_samplers": samplers, "num_envs_per_sampler": 2, "num_evaluators": 0},
            **{"max_updates": 3, "ckpt_dir": str(tmp_path / "run")},
        },
        "device": {"threads": 1},
        "env": {"module": "gymnasium", "id": "Pendulum-v1"},
        "agent": {"module": "ppo"},
        "modules": {
            "memory": {"unroll_length": 5},
            "learner": {
                **{"minibatch_size": 10, "epochs": 1},
                **{"normalize_observations": True, "normalize_returns": True},
            },
            "network": {"hidden_sizes": [8]},
        },
    }
    omnirl.run.train(config, local=True)
    counts = normalizers(tmp_path / "run")
    assert len(counts) == 2
    assert set(counts.values()) == {30.0 * samplers}
    again = str(tmp_path / "run" / "run_config.yaml")
    omnirl.run.train(again, overrides=["runner.max_updates=5"], local=True, resume="must")
    assert set(normalizers(tmp_path / "run").values()) == {50.0 * samplers}
