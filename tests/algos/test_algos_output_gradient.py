"""Gradients of a network's parameters by hand equal autograd's."""

from __future__ import annotations

import pytest
import torch

from omnirl.networks.backpropagation import MLPBackpropagation, mlp_gradient
from omnirl.networks.few_rows_gradient import MOST_WORK, ByRows, NumpyPass
from omnirl.networks.initialization import generator
from omnirl.networks.mlp import MLP
from omnirl.networks.output_gradient import AutogradOutputs, output_gradient


def network(activation="relu"):
    net = MLP((3, 8, 5, 4), activation)
    net.init_uniform(generator(1))
    for parameter in net.parameters():
        parameter.grad = torch.full_like(parameter, 7.0)  # to be written over
    return net


@pytest.mark.parametrize("by_hand", [MLPBackpropagation, NumpyPass, mlp_gradient])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_both_ways_give_the_same_outputs_and_gradients(activation, by_hand):
    found = []
    for way in (AutogradOutputs, by_hand):
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
    assert isinstance(output_gradient(network()), ByRows)
    assert isinstance(output_gradient(torch.nn.Sequential(network())), AutogradOutputs)
    assert isinstance(output_gradient(network("silu")), AutogradOutputs)


class Counted:
    """A pass that only counts."""

    def __init__(self):
        self.forwards = self.backwards = 0

    def forward(self, x):
        self.forwards += 1
        return x

    def backward(self, d):
        self.backwards += 1


def test_numpy_takes_the_batches_whose_products_are_small():
    net, large = network(), Counted()  # the greatest weight has 8 x 5 numbers
    way = ByRows(net, large)
    few, outputs = MOST_WORK // 40, torch.zeros(1, 4)
    for rows, forwards in ((few, 0), (few + 1, 1), (few, 1)):
        way.forward(torch.zeros(rows, 3))
        way.backward(outputs.expand(rows, 4))
        assert (large.forwards, large.backwards) == (forwards, forwards)


@torch.no_grad()
def test_autograd_makes_its_graph_where_none_is_kept():
    net = network("elu")
    way = output_gradient(net)
    way.forward(torch.ones(2, 3))
    way.backward(torch.ones(2, 4))
    assert net.layers[2].bias.grad.tolist() == [2.0] * 4
