"""The backward pass of an actor-critic network, from the gradients of its two outputs to those of its parameters.

On networks of [64, 64] a third of an update is not arithmetic but autograd's own work around it. Two plain MLPs
are therefore differentiated by hand, operation for operation what autograd does; all else by autograd. Gradients
are written into each parameter's ``grad``, over what was there: nothing needs to be zeroed before.

Letters: N batch rows, D input size, O outputs of the policy's head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from omnirl.networks.actor_critic import ActorCritic
from omnirl.networks.config import Activation
from omnirl.networks.few_rows_gradient import ByRows, MLPPass
from omnirl.networks.hidden_arrays import HiddenArrays
from omnirl.networks.mlp import MLP


class Backpropagation(Protocol):
    """One forward pass, then at most one backward pass of the same batch."""

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Policy outputs [N, O] and values [N], without a graph."""

    def backward(self, d_outputs: Tensor, d_values: Tensor) -> None:
        """From the gradients of the outputs [N, O] and values [N] to those of the parameters but ``log_std``."""


def backpropagation(network: ActorCritic) -> Backpropagation:
    """The way to differentiate ``network``, whose parameters must have their ``grad`` by now, and keep it."""
    if isinstance(network.policy, MLP) and network.policy.plain and not network.shared:
        return TowerBackpropagation(network)
    return AutogradBackpropagation(network)


def gradient_of(parameter: Tensor) -> Tensor:
    """The tensor that a parameter's gradient is written into."""
    assert parameter.grad is not None
    return parameter.grad


class LinearLayers(Protocol):
    """Linear layers with a non-linearity between them, such as an MLP's."""

    @property
    def pairs(self) -> Sequence[tuple[Tensor, Tensor]]:
        """The weight and the bias of each."""

    @property
    def activation(self) -> Activation:
        """The non-linearity, one of those that are ``WRITTEN_OUT``."""


class MLPBackpropagation:
    """Forward and backward pass of one MLP with a linear output, in arrays that are reused."""

    def __init__(self, network: LinearLayers) -> None:
        # Plain tensors that share the parameters' memory: autograd sees nothing of what is done here.
        self._weights = [weight.detach() for weight, _ in network.pairs]
        self._transposed = [weight.t() for weight in self._weights]
        self._biases = [bias.detach() for _, bias in network.pairs]
        self._gradients = [(gradient_of(weight), gradient_of(bias)) for weight, bias in network.pairs]
        self._hidden = HiddenArrays(self._biases[:-1], network.activation)
        self._x: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """[N, D] -> [N, outputs], a new tensor. ``x`` is kept for the backward pass."""
        self._hidden.fit(len(x))
        self._x = x
        for bias, weight, sums in zip(self._biases, self._transposed, self._hidden.values):
            torch.addmm(bias, x, weight, out=sums)
            x = self._hidden.activate_(sums)
        return torch.addmm(self._biases[-1], x, self._transposed[-1])

    def backward(self, d: Tensor) -> None:
        """From the gradient of the outputs [N, outputs] to those of all parameters."""
        self._to_the_first_layer(d)

    def backward_to_input(self, d: Tensor) -> Tensor:
        """The same, and on to the gradient of the input [N, D], a new tensor."""
        return torch.mm(self._to_the_first_layer(d), self._weights[0])

    def _to_the_first_layer(self, d: Tensor) -> Tensor:
        """To the gradients of all parameters; that of the first layer's outputs."""
        inputs = [self._x, *self._hidden.values]
        for layer in range(len(inputs) - 1, -1, -1):
            d_weight, d_bias = self._gradients[layer]
            if inputs[layer].shape[1] < d.shape[1]:
                # A product with few columns takes four times as long as its transpose.
                d_weight.copy_(torch.mm(inputs[layer].t(), d).t())
            else:
                torch.mm(d.t(), inputs[layer], out=d_weight)
            torch.sum(d, 0, out=d_bias)
            if layer == 0:
                break
            torch.mm(d, self._weights[layer], out=self._hidden.gradients[layer - 1])
            d = self._hidden.slope_(layer - 1)
        return d


def mlp_gradient(network: MLP) -> MLPPass:
    """The way to differentiate a plain MLP: on the CPU it depends on the rows of a batch."""
    large = MLPBackpropagation(network)
    return ByRows(network, large) if network.pairs[0][0].device.type == "cpu" else large


class TowerBackpropagation:
    """Policy and value as two MLPs."""

    def __init__(self, network: ActorCritic) -> None:
        assert isinstance(network.policy, MLP)
        assert isinstance(network.value, MLP)
        self._policy, self._value = mlp_gradient(network.policy), mlp_gradient(network.value)

    @torch.no_grad()
    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Policy outputs [N, O] and values [N]."""
        return self._policy.forward(obs), self._value.forward(obs).squeeze(1)

    @torch.no_grad()
    def backward(self, d_outputs: Tensor, d_values: Tensor) -> None:
        """To the gradients of both towers."""
        self._policy.backward(d_outputs)
        self._value.backward(d_values.unsqueeze(1))


class AutogradBackpropagation:
    """Any network, through autograd's graph."""

    def __init__(self, network: ActorCritic) -> None:
        self._network = network
        self._parameters = list(network.parameters())
        self._outputs: tuple[Tensor, Tensor]

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Policy outputs [N, O] and values [N]."""
        self._outputs = self._network(obs)
        outputs, values = self._outputs
        return outputs.detach(), values.detach()

    def backward(self, d_outputs: Tensor, d_values: Tensor) -> None:
        """To the gradients of all parameters that the graph holds; those of the others become 0."""
        for parameter in self._parameters:
            gradient_of(parameter).zero_()
        torch.autograd.backward(self._outputs, (d_outputs, d_values))
