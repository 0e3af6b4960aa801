"""PPO, A2C and IMPALA pass the suite that third parties' algorithms are held to."""

from __future__ import annotations

import pytest
import torch

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.algorithms.shared.acting.action_masks import action_mask, legal_outputs
from omnirl.testing import AlgorithmSuite

SPECS = {spec.name: spec for spec in ALGORITHMS}
PROBING = {
    "gamma": 0.9,
    "lr": {"kind": "linear", "start": 1e-2, "end": 1e-3},
    "optimizer": "adam",
    "ent_coef": 0.0,
}


class ActorCriticSuite(AlgorithmSuite):
    """What is common."""

    __test__ = False
    num_envs = 8
    probe_updates = 400

    def value(self, learner, obs):
        with torch.no_grad():
            return learner.network.values(torch.from_numpy(obs)).numpy()

    def greedy_action(self, learner, obs):
        with torch.no_grad():
            outputs = learner.network.policy(torch.from_numpy(learner._network_input(obs))).numpy()
        return learner._head.mode(legal_outputs(outputs, action_mask(obs)))


@pytest.mark.probe
class TestPPO(ActorCriticSuite):
    __test__ = True
    spec = SPECS["ppo"]
    modules = {  # noqa: RUF012
        "learner": {
            "normalize_observations": True,
            "normalize_returns": True,
            "epochs": 2,
            "minibatch_size": 16,
        },
        "memory": {"unroll_length": 8},
        "network": {"hidden_sizes": [16]},
    }
    probe_modules = {  # noqa: RUF012
        "learner": {
            "gamma": 0.9,
            "gae_lambda": 0.9,
            "lr": PROBING["lr"],
            "epochs": 8,
            "minibatch_size": 32,
            "vf_coef": 1.0,
        },
        "memory": {"unroll_length": 8},
        "network": {"hidden_sizes": [32, 32]},
    }
    probe_updates = 60


@pytest.mark.probe
class TestA2C(ActorCriticSuite):
    __test__ = True
    spec = SPECS["a2c"]
    modules = {  # noqa: RUF012
        "learner": {
            "normalize_observations": True,
            "normalize_returns": True,
            "normalize_advantages": True,
        },
        "network": {"hidden_sizes": [16]},
    }
    probe_modules = {  # noqa: RUF012
        "learner": {**PROBING, "gae_lambda": 0.9},
        "memory": {"unroll_length": 4},
        "network": {"hidden_sizes": [32, 32]},
    }


@pytest.mark.probe
class TestIMPALA(ActorCriticSuite):
    __test__ = True
    spec = SPECS["impala"]
    modules = {  # noqa: RUF012
        "learner": {"normalize_observations": True, "normalize_returns": True},
        "memory": {"unroll_length": 5, "rollouts_per_update": 2},
        "network": {"hidden_sizes": [16]},
    }
    probe_modules = {  # noqa: RUF012
        "learner": {**PROBING, "vtrace_lambda": 0.9},
        "memory": {"unroll_length": 4, "rollouts_per_update": 1},
        "network": {"hidden_sizes": [32, 32]},
    }
