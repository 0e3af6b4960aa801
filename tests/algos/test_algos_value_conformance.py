"""The value learners pass the suite that third parties' algorithms are held to."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.algorithms.shared.acting.action_masks import action_mask, legal_outputs
from omnirl.algorithms.shared.acting.observations import network_input
from omnirl.testing import AlgorithmSuite

SPECS = {spec.name: spec for spec in ALGORITHMS}


class ValueSuite(AlgorithmSuite):
    """What is common: small replays and networks, and how outputs become values."""

    __test__ = False
    modules = {  # noqa: RUF012
        "memory": {"capacity": 500, "batch_size": 16, "warmup_steps": 64, "unroll_length": 4, "n_step": 2},
        "network": {"hidden_sizes": [16]},
    }
    probe_updates = 1500

    def value(self, learner, obs):
        return self.values(learner, obs).max(axis=1)

    def greedy_action(self, learner, obs):
        return self.values(learner, obs).argmax(axis=1)

    def values(self, learner, obs):
        """Those of all actions, [N, n], those of illegal ones far below."""
        rows = network_input(obs, learner._observation)
        with torch.no_grad():
            outputs = learner.network(torch.from_numpy(rows)).numpy()
        return legal_outputs(self.worth(learner, outputs), action_mask(obs))

    def worth(self, learner, outputs):
        """[N, outputs] -> [N, n]."""
        return outputs


def probing(lr=5e-3, **learner):
    """Settings that learn the probes."""
    return {
        "learner": {
            "gamma": 0.9,
            "lr": {"kind": "linear", "start": lr, "end": 1e-4},
            "target_update_interval": 25,
            "steps_per_update": 2,
            **learner,
        },
        "memory": {"capacity": 5000, "batch_size": 32, "warmup_steps": 100, "unroll_length": 4},
        "policy": {"epsilon": 0.3},
        "network": {"hidden_sizes": [32, 32]},
    }


@pytest.mark.probe
class TestDQN(ValueSuite):
    __test__ = True
    spec = SPECS["dqn"]
    probe_modules = probing()


@pytest.mark.probe
class TestDoubleDQN(ValueSuite):
    __test__ = True
    spec = SPECS["ddqn"]
    probe_modules = probing()


@pytest.mark.probe
class TestDuelingDQN(ValueSuite):
    __test__ = True
    spec = SPECS["dueling_dqn"]
    probe_modules = probing()


@pytest.mark.probe
class TestPrioritizedDQN(ValueSuite):
    __test__ = True
    spec = SPECS["per_dqn"]
    probe_modules = probing()


@pytest.mark.probe
class TestC51(ValueSuite):
    __test__ = True
    spec = SPECS["c51"]
    modules = {**ValueSuite.modules, "learner": {"num_atoms": 7, "v_min": -3, "v_max": 3}}  # noqa: RUF012
    probe_modules = probing(num_atoms=45, v_min=-1, v_max=10)

    def worth(self, learner, outputs):
        config = self.modules["learner"]
        if outputs.shape[1] % config["num_atoms"]:
            config = self.probe_modules["learner"]
        support = np.linspace(config["v_min"], config["v_max"], config["num_atoms"], dtype=np.float32)
        logits = outputs.reshape(len(outputs), -1, config["num_atoms"])
        return torch.softmax(torch.from_numpy(logits), -1).numpy() @ support


@pytest.mark.probe
class TestQRDQN(ValueSuite):
    __test__ = True
    spec = SPECS["qr_dqn"]
    modules = {**ValueSuite.modules, "learner": {"num_quantiles": 6}}  # noqa: RUF012
    probe_modules = probing(num_quantiles=6)

    def worth(self, learner, outputs):
        return outputs.reshape(len(outputs), -1, 6).mean(-1)
