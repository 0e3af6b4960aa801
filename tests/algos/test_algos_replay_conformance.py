"""The actor-critic algorithms with replay pass the suite that third parties' algorithms are held to."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.algorithms.shared.acting.bounded_heads import bounded_scale
from omnirl.algorithms.shared.acting.observations import network_input
from omnirl.testing import AlgorithmSuite

SPECS = {spec.name: spec for spec in ALGORITHMS}


class WithReplay(AlgorithmSuite):
    """What is common: small replays and networks."""

    __test__ = False
    modules = {  # noqa: RUF012
        "memory": {"capacity": 500, "batch_size": 16, "warmup_steps": 64, "unroll_length": 4, "n_step": 2},
        "network": {"hidden_sizes": [16]},
    }
    probe_updates = 800

    def value(self, learner, obs):
        """Of the best action, by the mean of the critics."""
        rows = torch.from_numpy(obs)
        with torch.no_grad():
            outputs = learner.networks.actor(rows)
            if self.inputs(learner) > rows.shape[1]:
                rows = torch.cat((rows, outputs[:, : self.inputs(learner) - rows.shape[1]].tanh()), 1)
                return learner.networks.critics(rows).mean((0, 2)).numpy()
            return learner.networks.critics(rows).mean(0).amax(1).numpy()

    def greedy_action(self, learner, obs):
        rows = network_input(obs, learner._observation)
        outputs = learner.networks.actor(torch.from_numpy(rows)).detach().numpy()
        if self.inputs(learner) == rows.shape[1]:
            return outputs.argmax(axis=1)
        center, half_range = bounded_scale(self.env_specs()["bounded_continuous"].action)
        return center + half_range * np.tanh(outputs[:, : len(center)])

    @staticmethod
    def inputs(learner):
        """How many numbers a critic takes."""
        return learner.networks.critics.layers[0].weight.shape[1]


def probing(**learner):
    """Settings that learn the probes."""
    return {
        "learner": {
            "gamma": 0.9,
            "tau": 0.05,
            "lr": {"kind": "linear", "start": 5e-3, "end": 1e-4},
            "steps_per_update": 2,
            **learner,
        },
        "memory": {"capacity": 5000, "batch_size": 32, "warmup_steps": 100, "unroll_length": 4},
        "network": {"hidden_sizes": [32, 32]},
    }


@pytest.mark.probe
class TestSAC(WithReplay):
    __test__ = True
    spec = SPECS["sac"]
    probe_modules = probing(temperature=1e-3)


@pytest.mark.probe
class TestDDPG(WithReplay):
    __test__ = True
    spec = SPECS["ddpg"]
    probe_modules = probing()


@pytest.mark.probe
class TestTD3(WithReplay):
    __test__ = True
    spec = SPECS["td3"]
    probe_modules = probing()

    def test_the_metrics_are_those_that_were_announced(self, env_spec):
        """The actor has a loss in every second update alone; in the others its cell stays empty."""
        first, second = self.miniature(env_spec).run(2).metrics
        assert set(second) == set(self.spec.metric_names)
        assert set(second) - set(first) == {"actor_loss"}


@pytest.mark.probe
class TestTQC(WithReplay):
    __test__ = True
    spec = SPECS["tqc"]
    probe_modules = {  # noqa: RUF012
        **probing(temperature=1e-3, dropped_quantiles=0),
        "network": {"hidden_sizes": [32, 32], "num_quantiles": 8},
    }
