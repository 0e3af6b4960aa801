"""PPO and DQN pass the suite that third parties' algorithms are held to."""

from __future__ import annotations

import pytest
import torch

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.algorithms.shared.acting.action_masks import action_mask, legal_outputs
from omnirl.algorithms.shared.acting.observations import network_input
from omnirl.api import ArraySpec, DiscreteAction, EnvSpec
from omnirl.testing import AlgorithmSuite

SPECS = {spec.name: spec for spec in ALGORITHMS}


@pytest.mark.probe
class TestPPO(AlgorithmSuite):
    spec = SPECS["ppo"]
    num_envs = 8
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
            "lr": {"kind": "linear", "start": 1e-2, "end": 1e-3},
            "epochs": 8,
            "minibatch_size": 32,
            "vf_coef": 1.0,
        },
        "memory": {"unroll_length": 8},
        "network": {"hidden_sizes": [32, 32]},
    }
    probe_updates = 60

    def value(self, learner, obs):
        with torch.no_grad():
            return learner.network.values(torch.from_numpy(obs)).numpy()

    def greedy_action(self, learner, obs):
        with torch.no_grad():
            outputs = learner.network.policy(torch.from_numpy(learner._network_input(obs))).numpy()
        return learner._head.mode(legal_outputs(outputs, action_mask(obs)))


@pytest.mark.probe
class TestDQN(AlgorithmSuite):
    spec = SPECS["dqn"]
    modules = {  # noqa: RUF012
        "memory": {"capacity": 500, "batch_size": 16, "warmup_steps": 64, "unroll_length": 4, "n_step": 2},
        "network": {"hidden_sizes": [16]},
    }
    probe_modules = {  # noqa: RUF012
        "learner": {
            "gamma": 0.9,
            "lr": {"kind": "linear", "start": 5e-3, "end": 1e-4},
            "target_update_interval": 25,
            "steps_per_update": 2,
        },
        "memory": {"capacity": 5000, "batch_size": 32, "warmup_steps": 100, "unroll_length": 4},
        "policy": {"epsilon": 0.3},
        "network": {"hidden_sizes": [32, 32]},
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
            values = learner.network(torch.from_numpy(rows)).numpy()
        return legal_outputs(values, action_mask(obs))


class OnImages:
    """The same on small pictures, where the policy needs torch too."""

    torch_parts = ("policy", "learner", "agent_file")

    def env_specs(self):
        pictures = {
            "image": ArraySpec((2, 40, 40), "uint8", "image"),
            "stacked": ArraySpec((1, 36, 37), "uint8", "image", frame_stack=3),
            "of floats": ArraySpec((1, 36, 36), "float32", "image"),
        }
        return {name: EnvSpec(picture, DiscreteAction(3), id=name) for name, picture in pictures.items()}

    def value(self, learner, obs):
        return None  # the probes have no pictures

    def greedy_action(self, learner, obs):
        network = getattr(learner.network, "policy", learner.network)
        with torch.no_grad():
            return network(torch.from_numpy(obs)).numpy().argmax(axis=1)


@pytest.mark.probe
class TestPPOOnImages(OnImages, AlgorithmSuite):
    spec = SPECS["ppo"]
    modules = {  # noqa: RUF012
        "learner": {"epochs": 1, "minibatch_size": 16},
        "memory": {"unroll_length": 4},
    }


@pytest.mark.probe
class TestDQNOnImages(OnImages, AlgorithmSuite):
    spec = SPECS["dqn"]
    modules = {  # noqa: RUF012
        "memory": {"capacity": 100, "batch_size": 8, "warmup_steps": 32, "unroll_length": 4, "n_step": 2},
        "network": {"kind": "cnn"},
    }
