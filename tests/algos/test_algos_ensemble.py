"""Ensembles of critics: each member is an MLP of its own, and the way back is autograd's."""

from __future__ import annotations

import pytest
import torch

from omnirl.algorithms.shared.flat_parameters import FlatParameters
from omnirl.networks.ensemble import EnsembleMLP
from omnirl.networks.ensemble_gradient import EnsemblePass
from omnirl.networks.initialization import generator


def make(activation="relu", members=3):
    network = EnsembleMLP(members, (5, 8, 7, 2), activation)
    network.init_uniform(generator(1))
    return network


def test_each_member_is_an_mlp_of_its_own():
    network, x = make(), torch.randn((6, 5), generator=generator(2))
    outputs = network(x)
    assert outputs.shape == (3, 6, 2)
    for i in range(3):
        hidden = x
        for layer in network.layers[:-1]:
            hidden = torch.relu(hidden @ layer.weight[i] + layer.bias[i])
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


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_way_back_equals_autograds(activation):
    network = make(activation)
    flat = FlatParameters(network, torch.device("cpu"))
    flat.gradient.fill_(7.0)  # what was there is written over
    single = EnsemblePass(network)
    for rows in (6, 4):  # the arrays follow the batch
        x = torch.randn((rows, 5), generator=generator(3)).requires_grad_()
        d = torch.randn((3, rows, 2), generator=generator(4))
        expected = network(x)
        gradients = torch.autograd.grad((expected * d).sum(), [*network.parameters(), x])
        torch.testing.assert_close(single.forward(x.detach()), expected.detach())
        single.backward(d)
        for parameter, gradient in zip(network.parameters(), gradients[:-1], strict=True):
            torch.testing.assert_close(parameter.grad, gradient, rtol=1e-5, atol=1e-6)
        before = flat.gradient.clone()
        found = single.input_gradient(d, 2)
        torch.testing.assert_close(found, gradients[-1][:, -2:], rtol=1e-5, atol=1e-6)
        assert torch.equal(flat.gradient, before)  # the critics do not move with the actor


def test_a_pass_sees_the_parameters_as_they_are():
    network = make()
    flat = FlatParameters(network, torch.device("cpu"))
    first = EnsemblePass(network, members=1)
    x = torch.randn((6, 5), generator=generator(3))
    assert first.forward(x).shape == (1, 6, 2)
    flat.values.mul_(0.5)
    torch.testing.assert_close(first.forward(x)[0], network(x)[0].detach())
