"""REINFORCE passes OmniRL's suite for algorithms; and its returns are those that one can compute by hand."""

from __future__ import annotations

import numpy as np

from acme_reinforce.config import ReinforceConfig
from acme_reinforce.learner import Learner
from acme_reinforce.plugin import REINFORCE
from omnirl.api import ArraySpec, DiscreteAction, EnvSpec, LearnerContext
from omnirl.testing import AlgorithmSuite
from omnirl.testing.rollouts import make_rollout


class TestReinforce(AlgorithmSuite):
    spec = REINFORCE
    modules = {"memory": {"unroll_length": 8}}
    torch_parts = ()  # not even the learner needs it
    probe_modules = {"learner": {"gamma": 0.9, "baseline_lr": 0.05}, "memory": {"unroll_length": 6}}
    probe_updates = 400

    def value(self, learner, obs):
        return learner.values(obs)

    def greedy_action(self, learner, obs):
        scores = np.column_stack([obs, np.ones(len(obs))]) @ learner.get_weights()["policy"]
        return scores.argmax(axis=1)


def test_returns_by_hand():
    """gamma 0.5 and a baseline that expects 8 everywhere."""
    config = ReinforceConfig.model_validate({"learner": {"gamma": 0.5}})
    context = LearnerContext(rank=0, world_size=1, rendezvous=None, device="cpu", threads=1, seed=0)
    learner = Learner(config, EnvSpec(ArraySpec((1,)), DiscreteAction(2)), context)
    state = learner.state_dict()
    state["arrays"]["baseline/value"] = np.array([0.0, 8.0], np.float32)
    learner.load_state_dict(state)
    rollout = make_rollout([1.0, 2.0, 3.0, 4.0, 5.0], terminated=[(1, 0)], truncated=[(3, 0)])
    # 5 + 4 = 9 where the rollout ends; 4 + 4 = 8 where it is cut, 3 + 4 before; 2 at the end, 1 + 1 before
    assert learner.returns(rollout)[:, 0].tolist() == [2.0, 2.0, 7.0, 8.0, 9.0]
