"""The dueling network: aggregation, the trunk's gradient, and acting without torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from omnirl.algorithms.dueling_dqn import Config, Learner, Policy
from omnirl.api import ActContext, ArraySpec, DiscreteAction, EnvSpec, PolicyContext
from omnirl.networks.config import DuelingNetworkConfig
from omnirl.networks.dueling import aggregated, build_dueling
from omnirl.networks.initialization import generator
from omnirl.networks.numpy_dueling import NumpyDueling


def tensor(values):
    return torch.tensor(values, dtype=torch.float32)


def test_aggregation_subtracts_the_mean(golden):
    case = golden("dueling/aggregation")
    given, expected = case["inputs"], case["expected"]
    value, advantage = (tensor(given[name]).requires_grad_() for name in ("value", "advantage"))
    q = aggregated(value, advantage)
    torch.testing.assert_close(q.detach(), tensor(expected["q"]))
    assert (q.detach() - tensor(expected["q_max_variant"])).abs().max() > 0.1
    q[0, 1].backward()
    torch.testing.assert_close(value.grad, tensor(expected["grad_value_of_q01"]))
    torch.testing.assert_close(advantage.grad, tensor(expected["grad_adv_of_q01"]))


def network(rescale, hidden_sizes=(8, 6)):
    config = DuelingNetworkConfig(hidden_sizes=hidden_sizes, rescale_gradient=rescale)
    net = build_dueling(config, ArraySpec((3,)), 4)
    net.init_uniform(generator(5))
    return net


def test_the_trunks_gradient_is_rescaled_and_the_streams_is_not():
    gradients, outputs = [], []
    for rescale in (False, True):
        net = network(rescale)
        q = net(torch.randn(10, 3, generator=generator(0)))
        q.square().sum().backward()
        gradients.append({name: parameter.grad for name, parameter in net.named_parameters()})
        outputs.append(q.detach())
    assert torch.equal(*outputs)
    plain, rescaled = gradients
    assert {name.partition(".")[0] for name in plain} == {"features", "value", "advantage"}
    for name, gradient in plain.items():
        scale = 0.5**0.5 if name.startswith("features") else 1.0
        torch.testing.assert_close(rescaled[name], scale * gradient)
        assert gradient.abs().sum() > 0


@pytest.mark.parametrize("hidden_sizes", [(8, 6), (7,), (9, 8, 5)])
def test_acting_in_numpy_is_the_same_function(hidden_sizes):
    net = network(True, hidden_sizes)
    acting = NumpyDueling(3, hidden_sizes, 4, "relu")
    weights = {name: parameter.detach().numpy() for name, parameter in net.named_parameters()}
    assert set(acting.names()) == set(weights)
    acting.set_weights(weights)
    obs = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    with torch.no_grad():
        np.testing.assert_allclose(acting(obs), net(torch.from_numpy(obs)), rtol=1e-5, atol=1e-6)
    weights["value.layers.1.weight"] = weights["value.layers.1.weight"].T
    with pytest.raises(ValueError, match=r"value.layers.1.weight: shape \(\d, 1\) does not fit"):
        acting.set_weights(weights)


def test_images_have_the_convolutions_as_trunk_and_hidden_layers_in_the_streams(learner_context):
    spec = EnvSpec(ArraySpec((1, 36, 36), "uint8", "image"), DiscreteAction(3))
    config = Config.model_validate({"network": {"kind": "cnn", "hidden_sizes": [16]}})
    learner = Learner(config, spec, learner_context)
    shapes = {name: tuple(p.shape) for name, p in learner.network.named_parameters()}
    assert shapes["value.layers.0.weight"][0] == shapes["advantage.layers.0.weight"][0] == 16
    assert not any(name.startswith("features.hidden") for name in shapes)
    policy = Policy(config, spec, PolicyContext("evaluator", 0, 1, 2))
    policy.set_weights(learner.get_weights())
    images = np.random.default_rng(0).integers(0, 256, (2, 1, 36, 36), np.uint8)
    act = ActContext(np.random.default_rng(0), 0, 1.0, np.zeros(2, bool))
    with torch.no_grad():
        expected = learner.network(torch.from_numpy(images)).argmax(1).numpy()
    np.testing.assert_array_equal(policy.choose_action(images, act), expected)
