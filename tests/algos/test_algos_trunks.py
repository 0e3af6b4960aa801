"""Layer norm in every kind of network, acted with in numpy; one trunk under policy and value, or one each."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import layer_norm

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.algorithms.shared.acting.acting_network import acting_dueling_network, acting_network
from omnirl.api import ArraySpec, ContinuousAction, DiscreteAction, EnvSpec
from omnirl.networks.actor_critic import ActorCritic
from omnirl.networks.actor_critics import build_actor_critics
from omnirl.networks.backpropagation import AutogradBackpropagation, TowerBackpropagation, backpropagation
from omnirl.networks.build import build_network
from omnirl.networks.config import (
    ActorCriticNetworkConfig,
    CriticsNetworkConfig,
    DuelingNetworkConfig,
    NetworkConfig,
)
from omnirl.networks.dueling import build_dueling
from omnirl.networks.initialization import generator
from omnirl.networks.joined import joined
from omnirl.networks.mlp import MLP
from omnirl.networks.numpy_mlp import NumpyMLP
from omnirl.networks.output_gradient import output_gradient
from omnirl.testing.miniature import Miniature
from omnirl.testing.noise import NoiseEnvironment

SPECS = {spec.name: spec for spec in ALGORITHMS}
VECTOR = ArraySpec((5,))
IMAGE = ArraySpec((2, 10, 10), "uint8", "image")


def shaken(network, seed=5):
    """``network`` with scales and shifts that are not 1 and 0."""
    network.init_uniform(generator(seed))
    rng = generator(seed + 1)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if ".norms." in f".{name}":
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=rng))
    return network


def arrays(network, prefix=""):
    return {f"{prefix}{name}": p.detach().numpy() for name, p in network.named_parameters()}


# ------------------------------------------------------------------------------ layer norm


def test_layer_norm_by_hand():
    """Units of 3 and 1: mean 2, deviation 1, so +1 and -1, but for the 1e-5 in the root; then scale, shift and relu."""
    net = MLP((1, 2, 1), "relu", normalized=True)
    values = {
        "layers.0.weight": [[3.0], [1.0]],
        "layers.0.bias": [0.0, 0.0],
        "layers.1.weight": [[1.0, 10.0]],
        "layers.1.bias": [0.5],
        "norms.0.weight": [2.0, 2.0],
        "norms.0.bias": [1.0, 3.0],
    }
    for name, parameter in net.named_parameters():
        parameter.data = torch.tensor(values[name])
    acting = NumpyMLP((1, 2, 1), "relu", "", [1])
    acting.set_weights(arrays(net))
    unit = 1.0 / (1.0 + 1e-5) ** 0.5
    expected = (2 * unit + 1) + 10 * (-2 * unit + 3) + 0.5
    assert net(torch.ones(1, 1)).item() == pytest.approx(expected, rel=1e-6)
    assert acting(np.ones((1, 1), np.float32)).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu", "silu"])
@pytest.mark.parametrize("hidden", [(64, 64), (7,), ()])
@pytest.mark.parametrize("normalized", [False, True])
def test_numpy_acts_as_torch_learns(activation, hidden, normalized):
    config = NetworkConfig(hidden_sizes=hidden or (3,), activation=activation, layer_norm=normalized)
    if not hidden:
        config = NetworkConfig(hidden_sizes=(), activation=activation)
    net = shaken(build_network(config, VECTOR, 3))
    acting = acting_network(config, VECTOR, 3, "policy.")
    assert isinstance(acting, NumpyMLP)
    assert sorted(acting.names()) == sorted(arrays(net, "policy."))
    acting.set_weights(arrays(net, "policy."))
    for rows in (8, 1, 33):
        x = torch.randn((rows, 5), generator=generator(rows)) * 2
        with torch.no_grad():
            expected = net(x).numpy()
        np.testing.assert_allclose(acting(x.numpy()), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("hidden", [(8, 6), (7,), (9, 8, 5)])
@pytest.mark.parametrize("normalized", [False, True])
def test_numpy_acts_as_the_dueling_network_learns(hidden, normalized):
    config = DuelingNetworkConfig(hidden_sizes=hidden, layer_norm=normalized)
    net = shaken(build_dueling(config, VECTOR, 4))
    acting = acting_dueling_network(config, VECTOR, 4)
    assert set(acting.names()) == set(arrays(net))
    acting.set_weights(arrays(net))
    x = torch.randn((6, 5), generator=generator(1))
    with torch.no_grad():
        np.testing.assert_allclose(acting(x.numpy()), net(x).numpy(), rtol=1e-6, atol=1e-6)
    norms = [name for name in arrays(net) if ".norms." in name]
    assert len(norms) == (2 * (len(hidden) + 1) if normalized else 0)


def test_wrong_shapes_of_norms_are_refused():
    acting = NumpyMLP((2, 3, 1), "relu", "", [1])
    weights = arrays(MLP((2, 3, 1), "relu", normalized=True))
    weights["norms.0.bias"] = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match=r"norms\.0: shapes \(3,\) and \(4,\) do not fit 3 units"):
        acting.set_weights(weights)


def test_hidden_layers_behind_convolutions_are_normalised_too():
    config = NetworkConfig.model_validate({"kind": "minatar", "hidden_sizes": [6, 5], "layer_norm": True})
    net = build_network(config, IMAGE, 3)
    shapes = {name: tuple(p.shape) for name, p in net.named_parameters() if "norms" in name}
    assert shapes == {
        f"features.hidden.norms.{i}.{part}": (n,) for i, n in ((0, 6), (1, 5)) for part in ("weight", "bias")
    }
    pixels = torch.randint(0, 256, (4, *IMAGE.shape), generator=generator(0), dtype=torch.uint8)
    shaken(net)
    hidden = net.features.hidden
    x = net.features.convolutions(pixels / 255.0)
    for (weight, bias), norm in zip(hidden.pairs, hidden.norms, strict=True):
        x = torch.relu(layer_norm(x @ weight.T + bias, (len(bias),), norm.weight, norm.bias))
    torch.testing.assert_close(net.features(pixels), x)


@pytest.mark.parametrize("activation", ["tanh", "relu", "silu"])
def test_the_gradient_is_the_slope(activation):
    """Against differences of a double-precision copy, in every parameter."""
    net = shaken(MLP((3, 6, 5, 2), activation, normalized=True))
    for parameter in net.parameters():
        parameter.grad = torch.full_like(parameter, 7.0)
    x, d = torch.randn((4, 3), generator=generator(1)), torch.randn((4, 2), generator=generator(2))
    way = output_gradient(net)
    way.forward(x)
    way.backward(d)
    copy = MLP((3, 6, 5, 2), activation, normalized=True).double()
    copy.load_state_dict({name: p.double() for name, p in net.state_dict().items()})
    with torch.no_grad():
        for (name, parameter), mine in zip(copy.named_parameters(), net.parameters(), strict=True):
            flat = parameter.view(-1)
            for index in range(0, len(flat), 5):
                kept, ends = float(flat[index]), []
                for step in (1e-6, -1e-6):
                    flat[index] = kept + step
                    ends.append(float((copy(x.double()) * d.double()).sum()))
                flat[index] = kept
                slope = (ends[0] - ends[1]) / 2e-6
                assert float(mine.grad.view(-1)[index]) == pytest.approx(slope, rel=1e-3, abs=1e-4), name


@pytest.mark.parametrize(
    ("keys", "actor", "critics"),
    [
        ({}, False, False),
        ({"layer_norm": True}, True, True),
        ({"critic_layer_norm": True}, False, True),
        ({"layer_norm": True, "critic_layer_norm": False}, True, False),
    ],
)
def test_actor_and_critics_are_normalised_by_choice(keys, actor, critics):
    networks = build_actor_critics(
        CriticsNetworkConfig(hidden_sizes=(6,), **keys),
        VECTOR,
        generator(0),
        actor_outputs=2,
        action_size=1,
        num_critics=2,
        critic_outputs=1,
    )
    assert (len(networks.actor.norms), len(networks.critics.norms)) == (int(actor), int(critics))
    assert len(networks.target_critics.norms) == int(critics)


# ------------------------------------------------------------------------------ trunks


@pytest.mark.parametrize(
    ("observation", "wanted", "shared"),
    [
        (VECTOR, None, False),
        (VECTOR, True, True),
        (IMAGE, None, True),
        (IMAGE, False, False),
        (IMAGE, True, True),
    ],
)
def test_who_shares_a_trunk(observation, wanted, shared):
    """What is shared moves the values too; what is not does not."""
    config = ActorCriticNetworkConfig(hidden_sizes=(6,), shared_trunk=wanted)
    net = ActorCritic(config, observation, 3, None, generator(0))
    assert net.shared is shared
    obs = torch.ones((2, *observation.shape), dtype=torch.uint8 if observation is IMAGE else torch.float32)
    values = net.values(obs)
    torch.testing.assert_close(values, net(obs)[1])
    torch.testing.assert_close(net(obs)[0], net.policy(obs))
    policy_trunk = {name for name, _ in net.policy.named_parameters()}
    last = {name for name in policy_trunk if name.startswith(("head", "layers.1"))}
    with torch.no_grad():
        for name, parameter in net.policy.named_parameters():
            parameter.add_(0.1 if name not in last else 0.0)
    assert torch.equal(net.values(obs), values) is not shared
    assert not any(name.startswith("value.") for name in net.acting_names())


def test_a_shared_trunk_has_one_layer_for_the_value():
    net = ActorCritic(ActorCriticNetworkConfig(shared_trunk=True), VECTOR, 3, None, generator(0))
    shapes = {name: tuple(p.shape) for name, p in net.named_parameters()}
    assert {name: shape for name, shape in shapes.items() if name.startswith("value.")} == {
        "value.layers.0.weight": (1, 64),
        "value.layers.0.bias": (1,),
    }
    # Huang et al. 2022: 0.01 in the policy's head, 1 in the value's.
    head = net.policy.pairs[-1][0].detach()
    torch.testing.assert_close(head @ head.T, 1e-4 * torch.eye(3), rtol=1e-4, atol=1e-8)
    assert float(net.value.pairs[0][0].detach().norm()) == pytest.approx(1.0, rel=1e-4)


def test_trunks_of_their_own_begin_apart():
    config = ActorCriticNetworkConfig(hidden_sizes=(6,), shared_trunk=False)
    net = ActorCritic(config, IMAGE, 3, None, generator(0))
    ours, theirs = (part.features.convolutions.layers[0].weight for part in (net.policy, net.value))
    assert not torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("keys", "way"),
    [
        ({}, TowerBackpropagation),
        ({"shared_trunk": True}, AutogradBackpropagation),
        ({"layer_norm": True}, AutogradBackpropagation),
    ],
)
def test_gradients_are_the_same_by_every_way(keys, way):
    net = ActorCritic(ActorCriticNetworkConfig(hidden_sizes=(8, 7), **keys), VECTOR, 3, None, generator(0))
    for parameter in net.parameters():
        parameter.grad = torch.full_like(parameter, 7.0)
    x, d, dv = (torch.randn(shape, generator=generator(i)) for i, shape in enumerate([(9, 5), (9, 3), (9,)]))
    outputs, values = net(x)
    expected = torch.autograd.grad((outputs * d).sum() + (values * dv).sum(), list(net.parameters()))
    found = backpropagation(net)
    assert isinstance(found, way)
    found.forward(x)
    found.backward(d, dv)
    for parameter, gradient in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-5, atol=1e-6)


def test_joined_vectors_may_share_a_trunk():
    from omnirl.api import DictSpec

    spec = joined(DictSpec((("a", ArraySpec((2,))), ("b", ArraySpec((3,))))))
    net = ActorCritic(ActorCriticNetworkConfig(shared_trunk=True), spec, 3, None, generator(0))
    assert net.values(torch.ones(2, 5)).shape == (2,)


# ------------------------------------------------------------------------------ in every algorithm


NORMALIZED = [(name, {"layer_norm": True, "activation": "silu"}) for name in SPECS]
SHARED = [(name, {"shared_trunk": True}) for name in ("ppo", "a2c", "impala")]


@pytest.mark.parametrize(("name", "keys"), NORMALIZED + SHARED)
def test_every_algorithm_learns_with_it(name, keys):
    policy_gradient = SPECS[name].family == "policy gradient"
    discrete = "discrete" in SPECS[name].supports.actions
    action = DiscreteAction(2) if discrete else ContinuousAction((-1.0,), (1.0,))
    spec = EnvSpec(ArraySpec((3,)), action)
    replay = {"capacity": 200, "batch_size": 8, "warmup_steps": 32, "unroll_length": 4}
    modules = {
        "memory": {"unroll_length": 4} if policy_gradient else replay,
        "network": {"hidden_sizes": [8, 6], **keys},
        **({"learner": {"minibatch_size": 8}} if name == "ppo" else {}),
    }
    run = Miniature(SPECS[name], modules, spec, NoiseEnvironment(spec, 2))
    before = {key: array.copy() for key, array in run.weights().items()}
    run.run(2)
    assert len(before) >= (10 if "layer_norm" in keys else 6)
    for key, array in run.weights().items():
        assert not np.array_equal(array, before[key]), key
        assert np.isfinite(array).all()
