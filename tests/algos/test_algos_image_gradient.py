"""A small image network's gradients by hand equal autograd's, and the windows of a convolution are those it sees."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from omnirl.networks.cnn import ImageNetwork
from omnirl.networks.convolutions import windows
from omnirl.networks.image_gradient import ImageBackpropagation
from omnirl.networks.initialization import generator
from omnirl.networks.output_gradient import AutogradOutputs, output_gradient


def network(
    hidden: tuple[int, ...] = (8, 5), activation: str = "relu", kind: str = "minatar", **more: object
) -> ImageNetwork:
    side = 36 if kind == "cnn" else 10
    net = ImageNetwork((4, side, side), hidden, 3, activation, kind=kind, **{"dtype": "bool", **more})
    net.init_uniform(generator(1))
    for parameter in net.parameters():
        parameter.grad = torch.full_like(parameter, 7.0)  # to be written over
    return net


def pictures(rows: int, dtype: str) -> Tensor:
    rng = torch.Generator().manual_seed(rows)
    if dtype == "bool":
        return torch.rand(rows, 4, 10, 10, generator=rng) < 0.3
    return torch.randint(256, (rows, 4, 10, 10), generator=rng, dtype=torch.uint8)


@pytest.mark.parametrize("hidden", [(), (8, 5)])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("dtype", ["bool", "uint8"])
def test_both_ways_give_the_same_outputs_and_gradients(
    hidden: tuple[int, ...], activation: str, dtype: str
) -> None:
    found = []
    for way in (AutogradOutputs, ImageBackpropagation):
        net = network(hidden, activation, dtype=dtype)
        gradients = [parameter.grad for parameter in net.parameters()]
        gradient = way(net)
        for rows in (6, 2, 6):  # the last counts, whatever was before
            outputs = gradient.forward(pictures(rows, dtype))
            assert not outputs.requires_grad
            gradient.backward(torch.randn(rows, 3, generator=torch.Generator().manual_seed(rows)))
        found.append([outputs, *gradients])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_networks_of_one_convolution_alone_are_differentiated_by_hand() -> None:
    assert isinstance(output_gradient(network()), ImageBackpropagation)
    assert isinstance(output_gradient(network(activation="silu")), AutogradOutputs)
    assert isinstance(output_gradient(network(kind="cnn")), AutogradOutputs)
    assert isinstance(output_gradient(network(kind="resnet")), AutogradOutputs)
    assert isinstance(output_gradient(network(normalized=True)), AutogradOutputs)


def test_what_the_places_of_a_convolution_see() -> None:
    x = torch.arange(9.0).reshape(1, 1, 3, 3)
    assert windows(x, 2, 1)[0].t().tolist() == [[0, 1, 3, 4], [1, 2, 4, 5], [3, 4, 6, 7], [4, 5, 7, 8]]
    assert windows(torch.arange(16.0).reshape(1, 1, 4, 4), 2, 2)[0, 0].tolist() == [0, 2, 8, 10]


def test_weights_times_windows_are_the_convolution() -> None:
    rng = torch.Generator().manual_seed(0)
    x, weight = torch.randn(2, 3, 7, 9, generator=rng), torch.randn(5, 3, 3, 3, generator=rng)
    for stride in (1, 2):
        for given in (x, x.transpose(2, 3)):  # one in another order in memory
            expected = torch.nn.functional.conv2d(given, weight, stride=stride).flatten(2)
            torch.testing.assert_close(weight.flatten(1) @ windows(given, 3, stride), expected)
