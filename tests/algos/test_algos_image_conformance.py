"""Algorithms on small pictures, where the policy needs torch too, pass the suite of third parties' algorithms."""

from __future__ import annotations

import pytest
import torch

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.api import ArraySpec, DiscreteAction, EnvSpec
from omnirl.testing import AlgorithmSuite

SPECS = {spec.name: spec for spec in ALGORITHMS}
PICTURES = {
    "image": ArraySpec((2, 40, 40), "uint8", "image"),
    "stacked": ArraySpec((1, 36, 37), "uint8", "image", frame_stack=3),
    "of floats": ArraySpec((1, 36, 36), "float32", "image"),
}
REPLAY = {"capacity": 100, "batch_size": 8, "warmup_steps": 32, "unroll_length": 4}


class OnImages(AlgorithmSuite):
    """What is common."""

    __test__ = False
    torch_parts = ("policy", "learner", "agent_file")

    def env_specs(self):
        return {name: EnvSpec(picture, DiscreteAction(3), id=name) for name, picture in PICTURES.items()}

    def value(self, learner, obs):
        return None  # the probes have no pictures

    def greedy_action(self, learner, obs):
        network = getattr(learner.network, "policy", learner.network)
        with torch.no_grad():
            return network(torch.from_numpy(obs)).numpy().argmax(axis=1)


@pytest.mark.probe
class TestPPOOnImages(OnImages):
    __test__ = True
    spec = SPECS["ppo"]
    modules = {  # noqa: RUF012
        "learner": {"epochs": 1, "minibatch_size": 16},
        "memory": {"unroll_length": 4},
    }


@pytest.mark.probe
class TestDQNOnImages(OnImages):
    __test__ = True
    spec = SPECS["dqn"]
    modules = {"memory": {**REPLAY, "n_step": 2}, "network": {"kind": "cnn"}}  # noqa: RUF012


@pytest.mark.probe
class TestDuelingDQNOnImages(OnImages):
    __test__ = True
    spec = SPECS["dueling_dqn"]
    modules = {"memory": REPLAY, "network": {"kind": "minatar", "hidden_sizes": [16]}}  # noqa: RUF012

    def env_specs(self):
        return {"image": EnvSpec(ArraySpec((2, 10, 10), "uint8", "image"), DiscreteAction(3), id="image")}
