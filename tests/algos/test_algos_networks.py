"""Networks: initialisation, shapes, and the numpy forward pass that must equal torch's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from omnirl.algorithms.shared.training.torch_network import TorchNetwork
from omnirl.api import ArraySpec, ConfigError
from omnirl.networks.actor_critic import ActorCritic
from omnirl.networks.backpropagation import (
    AutogradBackpropagation,
    TowerBackpropagation,
    backpropagation,
)
from omnirl.networks.build import build_network
from omnirl.networks.cnn import ImageFeatures, ImageNetwork
from omnirl.networks.config import ActorCriticNetworkConfig, NetworkConfig, ValueNetworkConfig
from omnirl.networks.initialization import generator
from omnirl.networks.mlp import MLP
from omnirl.networks.numpy_mlp import NumpyMLP

IMAGE = ArraySpec((2, 36, 40), "uint8", "image")


def named_arrays(net, prefix=""):
    return {f"{prefix}{name}": tensor.detach().numpy() for name, tensor in net.named_parameters()}


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu", "silu"])
@pytest.mark.parametrize("sizes", [(4, 64, 64, 2), (3, 5), (17, 256, 256, 6)])
def test_numpy_forward_equals_torch(activation, sizes):
    net = MLP(sizes, activation)
    net.init_uniform(generator(0))
    acting = NumpyMLP(sizes, activation, "policy.")
    weights = named_arrays(net, "policy.")
    assert sorted(acting.names()) == sorted(weights)
    acting.set_weights(weights)
    for rows in (8, 1, 8, 33):  # the reused arrays follow the batch
        x = np.random.default_rng(rows).standard_normal((rows, sizes[0])).astype(np.float32) * 3
        with torch.no_grad():
            expected = net(torch.tensor(x)).numpy()
        np.testing.assert_allclose(acting(x), expected, rtol=1e-5, atol=1e-5)


def test_numpy_outputs_are_not_overwritten_and_weights_are_copied():
    acting = NumpyMLP((1, 2, 1), "relu", "")
    weights = {
        name: np.ones((2, 1) if "0.w" in name else (1, 2) if "w" in name else 1) for name in acting.names()
    }
    weights["layers.0.bias"] = np.zeros(2)
    acting.set_weights(weights)
    first = acting(np.ones((1, 1), np.float32))
    acting(np.full((1, 1), 5.0, np.float32))
    weights["layers.1.bias"][:] = 100.0
    assert first.tolist() == [[3.0]]  # 1 + 1 + bias 1
    assert acting(np.ones((1, 1), np.float32)).tolist() == [[3.0]]
    with pytest.raises(
        ValueError, match=r"layers.0: shapes \(3, 1\) and \(2,\) do not fit 1 inputs and 2 outputs"
    ):
        acting.set_weights({**weights, "layers.0.weight": np.ones((3, 1))})


def test_orthogonal_initialisation_has_the_gains_of_the_references():
    net = ActorCritic(ActorCriticNetworkConfig(), ArraySpec((4,)), 2, -0.5, generator(0))
    wide = net.policy.layers[1].weight.detach()
    torch.testing.assert_close(wide @ wide.T, 2.0 * torch.eye(64), rtol=1e-4, atol=1e-4)
    tall = net.policy.layers[0].weight.detach()  # 64 x 4: the columns are orthogonal
    torch.testing.assert_close(tall.T @ tall, 2.0 * torch.eye(4), rtol=1e-4, atol=1e-4)
    head, value = net.policy.layers[2].weight.detach(), net.value.layers[2].weight.detach()
    torch.testing.assert_close(head @ head.T, 1e-4 * torch.eye(2), rtol=1e-4, atol=1e-8)
    assert float(value.norm()) == pytest.approx(1.0, rel=1e-4)
    assert all(not p.any() for name, p in net.named_parameters() if name.endswith("bias"))
    assert net.log_std.tolist() == [-0.5, -0.5]
    assert not any(name.startswith("value.") for name in net.acting_names())
    assert len(net.acting_names()) == 7


def test_uniform_initialisation_has_torchs_own_bounds():
    net = MLP((16, 400, 2), "relu")
    net.init_uniform(generator(0))
    for layer, fan_in in zip(net.layers, (16, 400), strict=True):
        bound = fan_in**-0.5
        for tensor in (layer.weight, layer.bias):
            assert float(tensor.detach().abs().max()) <= bound
        assert float(layer.weight.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.1)


@pytest.mark.parametrize("observation", [ArraySpec((4,)), IMAGE])
def test_a_seed_determines_the_network_and_nothing_else_is_touched(observation):
    config = ActorCriticNetworkConfig(kind="cnn" if observation is IMAGE else "mlp")
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, same, other = (ActorCritic(config, observation, 2, None, generator(seed)) for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), before)
    for a, b in zip(first.parameters(), same.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(next(first.parameters()), next(other.parameters()))


def test_pixels_are_scaled_once():
    """The first convolution sees 1 for 255: a kernel of ones over 2 x 8 x 8 pixels gives 128."""
    features = ImageFeatures(IMAGE.shape, (8,), "relu")
    seen = []
    original = torch.relu
    features.init_uniform(generator(0))
    features.convolutions.layers[0].weight.data.fill_(1.0)
    features.convolutions.layers[0].bias.data.zero_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "relu", lambda x: seen.append(x) or original(x))
        features(torch.full((1, *IMAGE.shape), 255, dtype=torch.uint8))
    torch.testing.assert_close(seen[0], torch.full_like(seen[0], 128.0))


def test_nature_cnn_has_the_published_sizes():
    net = ImageNetwork((4, 84, 84), (512,), 6, "relu")
    shapes = [tuple(layer.weight.shape) for layer in net.features.convolutions.layers]
    assert shapes == [(32, 4, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3)]
    assert net.features.hidden.layers[0].weight.shape == (512, 3136)


def test_an_image_too_small_is_refused_in_one_line():
    with pytest.raises(ConfigError, match="at least 36 x 36 pixels, not 20 x 40"):
        ImageFeatures((3, 20, 40), (512,), "relu")


def test_image_network_acts_as_it_learns():
    config = NetworkConfig(kind="cnn", hidden_sizes=(16,))
    net = build_network(config, IMAGE, 3)
    net.init_uniform(generator(0))
    acting = TorchNetwork(config, IMAGE, 3, "policy.")
    weights = named_arrays(net, "policy.")
    assert acting.names() == list(weights)
    acting.set_weights(weights)
    images = np.random.default_rng(0).integers(0, 256, (2, *IMAGE.shape), np.uint8)
    with torch.no_grad():
        expected = net(torch.tensor(images)).numpy()
    np.testing.assert_allclose(acting(images), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="head"):
        acting.set_weights({**weights, "policy.head.layers.0.bias": np.zeros(9, np.float32)})


def test_kind_sets_the_defaults_of_the_other_keys():
    assert NetworkConfig().hidden_sizes == (64, 64)
    assert (NetworkConfig().activation, ValueNetworkConfig().activation) == ("tanh", "relu")
    cnn = NetworkConfig.model_validate({"kind": "cnn"})
    assert (cnn.hidden_sizes, cnn.activation) == ((512,), "relu")
    own = NetworkConfig.model_validate({"kind": "cnn", "hidden_sizes": [32], "activation": "tanh"})
    assert (own.hidden_sizes, own.activation) == ((32,), "tanh")


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("sizes", [(8, 8), (64, 3), ()])
def test_gradients_by_hand_equal_autograds(activation, sizes):
    """Also after a batch of another size, and over whatever the gradients held before."""
    config = ActorCriticNetworkConfig(hidden_sizes=sizes, activation=activation)
    net = ActorCritic(config, ArraySpec((5,)), 3, None, generator(0))
    for parameter in net.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=generator(1))
        parameter.grad = torch.full_like(parameter, 7.0)
    ways = TowerBackpropagation(net), AutogradBackpropagation(net)
    for rows in (16, 5, 16):
        obs, d_outputs, d_values = (
            torch.randn(shape, generator=generator(rows)) for shape in ((rows, 5), (rows, 3), (rows,))
        )
        results = []
        for way in ways:
            outputs, values = way.forward(obs)
            way.backward(d_outputs, d_values)
            results.append([outputs, values, *(p.grad.clone() for p in net.parameters())])
        for by_hand, expected in zip(*results, strict=True):
            torch.testing.assert_close(by_hand, expected, rtol=1e-4, atol=1e-5)


def test_only_two_plain_towers_are_differentiated_by_hand():
    ways = []
    cases = (
        (ActorCriticNetworkConfig(), ArraySpec((4,))),
        (ActorCriticNetworkConfig(activation="elu"), ArraySpec((4,))),
        (ActorCriticNetworkConfig(kind="cnn"), IMAGE),
    )
    for config, observation in cases:
        net = ActorCritic(config, observation, 2, None, generator(0))
        for parameter in net.parameters():
            parameter.grad = torch.zeros_like(parameter)
        ways.append(type(backpropagation(net)))
    assert ways == [TowerBackpropagation, AutogradBackpropagation, AutogradBackpropagation]


def test_values_without_a_graph_equal_those_with_one():
    net = MLP((4, 64, 1), "tanh")
    net.init_uniform(generator(0))
    x = torch.randn(33, 4, generator=generator(1)) * 3
    with torch.no_grad():
        without = net(x)
    torch.testing.assert_close(without, net(x).detach(), rtol=1e-5, atol=1e-6)
