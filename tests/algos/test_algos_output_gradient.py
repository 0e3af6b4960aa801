"""Gradients of a network's parameters by hand equal autograd's."""

from __future__ import annotations

import pytest
import torch

from omnirl.networks.backpropagation import MLPBackpropagation
from omnirl.networks.initialization import generator
from omnirl.networks.mlp import MLP
from omnirl.networks.output_gradient import AutogradOutputs, output_gradient


def network(activation="relu"):
    net = MLP((3, 8, 5, 4), activation)
    net.init_uniform(generator(1))
    for parameter in net.parameters():
        parameter.grad = torch.full_like(parameter, 7.0)  # to be written over
    return net


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_both_ways_give_the_same_outputs_and_gradients(activation):
    found = []
    for way in (AutogradOutputs, MLPBackpropagation):
        net = network(activation)
        gradients = [parameter.grad for parameter in net.parameters()]
        way = way(net)
        for rows in (6, 2, 6):  # the last counts, whatever was before
            rng = torch.Generator().manual_seed(rows)
            outputs = way.forward(torch.randn(rows, 3, generator=rng))
            assert not outputs.requires_grad
            way.backward(torch.randn(rows, 4, generator=rng))
        found.append([outputs, *gradients])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_plain_mlps_alone_are_differentiated_by_hand():
    assert isinstance(output_gradient(network()), MLPBackpropagation)
    assert isinstance(output_gradient(torch.nn.Sequential(network())), AutogradOutputs)
    assert isinstance(output_gradient(network("silu")), AutogradOutputs)


@torch.no_grad()
def test_autograd_makes_its_graph_where_none_is_kept():
    net = network("elu")
    way = output_gradient(net)
    way.forward(torch.ones(2, 3))
    way.backward(torch.ones(2, 4))
    assert net.layers[2].bias.grad.tolist() == [2.0] * 4
