"""Ensembles of critics: each member is an MLP of its own, and the way back is autograd's."""

from __future__ import annotations

import pytest
import torch

from omnirl.algorithms.shared.training.flat_parameters import FlatParameters
from omnirl.networks.ensemble import EnsembleMLP
from omnirl.networks.ensemble_gradient import ensemble_pass
from omnirl.networks.initialization import generator


def make(activation="relu", members=3, normalized=False, outputs=2):
    network = EnsembleMLP(members, (5, 8, 7, outputs), activation, normalized)
    network.init_uniform(generator(1))
    if normalized:
        with torch.no_grad():
            for parameter in network.norms.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator(5)))
    return network


@pytest.mark.parametrize("normalized", [False, True])
def test_each_member_is_an_mlp_of_its_own(normalized):
    network, x = make(normalized=normalized), torch.randn((6, 5), generator=generator(2))
    outputs = network(x)
    assert outputs.shape == (3, 6, 2)
    for i in range(3):
        hidden = x
        for index, layer in enumerate(network.layers[:-1]):
            hidden = hidden @ layer.weight[i] + layer.bias[i]
            if normalized:
                norm = network.norms[index]
                scale, shift = norm.weight[i, 0], norm.bias[i, 0]
                hidden = torch.nn.functional.layer_norm(hidden, hidden.shape[1:], scale, shift)
            hidden = torch.relu(hidden)
        last = network.layers[-1]
        torch.testing.assert_close(outputs[i], hidden @ last.weight[i] + last.bias[i])


def test_members_begin_apart_within_the_bounds_of_a_linear_layer():
    network = make()
    for layer, fan_in in zip(network.layers, (5, 8, 7)):
        for tensor in (layer.weight.detach(), layer.bias.detach()):
            assert float(tensor.abs().max()) <= fan_in**-0.5
            assert not torch.equal(tensor[0], tensor[1])
    twin = make()
    for ours, theirs in zip(network.parameters(), twin.parameters()):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("activation", ["relu", "tanh", "elu", "silu"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_way_back_equals_autograds(activation, normalized, outputs):
    network = make(activation, normalized=normalized, outputs=outputs)
    flat = FlatParameters(network, torch.device("cpu"))
    flat.gradient.fill_(7.0)  # what was there is written over
    single = ensemble_pass(network)
    for rows in (6, 4):  # the arrays follow the batch
        x = torch.randn((rows, 5), generator=generator(3)).requires_grad_()
        d = torch.randn((3, rows, outputs), generator=generator(4))
        expected = network(x)
        gradients = torch.autograd.grad((expected * d).sum(), [*network.parameters(), x])
        torch.testing.assert_close(single.forward(x.detach()), expected.detach())
        single.backward(d)
        for parameter, gradient in zip(network.parameters(), gradients[:-1], strict=True):
            torch.testing.assert_close(parameter.grad, gradient, rtol=1e-5, atol=1e-6)
        before = flat.gradient.clone()
        single.forward(x.detach())
        found = single.input_gradient(d, 2)
        torch.testing.assert_close(found, gradients[-1][:, -2:], rtol=1e-5, atol=1e-6)
        assert torch.equal(flat.gradient, before)  # the critics do not move with the actor


@pytest.mark.parametrize("normalized", [False, True])
def test_a_pass_sees_the_parameters_as_they_are(normalized):
    network = make(normalized=normalized)
    flat = FlatParameters(network, torch.device("cpu"))
    first = ensemble_pass(network, members=1)
    x = torch.randn((6, 5), generator=generator(3))
    assert first.forward(x).shape == (1, 6, 2)
    flat.values.mul_(0.5)
    torch.testing.assert_close(first.forward(x)[0], network(x)[0].detach())
