"""PPO and DQN learn small pictures whose best return is known; what one frame does not tell they learn from two."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.api import EnvContext
from omnirl.loops.evaluation import evaluation_loop
from omnirl.testing.environments import PropConfig, build_env, get_env_spec
from omnirl.testing.fakes import FakeStreams
from omnirl.testing.miniature import Miniature

pytestmark = pytest.mark.probe

SPECS = {spec.name: spec for spec in ALGORITHMS}
PPO = {
    "learner": {"gamma": 0.0, "lr": 1e-3, "minibatch_size": 256, "ent_coef": 0.01},
    "memory": {"unroll_length": 64},
}
DQN = {
    "learner": {"gamma": 0.0, "lr": 1e-3, "steps_per_update": 4},
    "memory": {"capacity": 3000, "batch_size": 32, "warmup_steps": 500},
    "policy": {"epsilon": 0.2},
}
SETTINGS = {"ppo": (PPO, 30), "dqn": (DQN, 1500)}


@pytest.mark.parametrize("algorithm", SETTINGS)
@pytest.mark.parametrize(
    ("environment", "least"), [({"id": "pixels"}, 7.9), ({"id": "motion", "frame_stack": 2}, 6.9)]
)
def test_the_best_return_is_learned(algorithm, environment, least):
    modules, updates = SETTINGS[algorithm]
    config = PropConfig(**environment)
    spec = get_env_spec(config)
    run = Miniature(
        SPECS[algorithm], modules, spec, build_env(config, EnvContext("sampler", 0, 8)), total_updates=updates
    ).run(updates)
    env = build_env(config, EnvContext("evaluator", 0, 8))
    episodes = evaluation_loop(env, run.policy, 40, FakeStreams(seed=9), spec.observation)
    assert np.mean([episode.total_reward for episode in episodes]) >= least


def test_a_single_frame_of_the_motion_is_worth_chance():
    """What the stack is for: without it PPO gets half of the seven rewards."""
    config = PropConfig(id="motion")
    spec = get_env_spec(config)
    run = Miniature(
        SPECS["ppo"], PPO, spec, build_env(config, EnvContext("sampler", 0, 8)), total_updates=30
    ).run(30)
    env = build_env(config, EnvContext("evaluator", 0, 8))
    episodes = evaluation_loop(env, run.policy, 200, FakeStreams(seed=9), spec.observation)
    assert np.mean([episode.total_reward for episode in episodes]) == pytest.approx(3.5, abs=0.8)
