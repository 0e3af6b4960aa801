"""Losses of the value learners: of the taken action's estimate, with their derivatives written out.

A network's outputs have a row [Z] per action, or one number; ``taken`` are those of the actions in the batch. A
loss gives its slope by ``taken`` itself, so that one backward pass through the network is all that is left to do. Those
of one number per action take numpy arrays or torch tensors, see :mod:`omnirl.algorithms.shared.training.likelihoods`.

Letters: N transitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from torch import Tensor

from omnirl.algorithms.shared.off_policy.targets import NextValue, Values, bootstrapped
from omnirl.algorithms.shared.off_policy.transition_tensors import TransitionTensors
from omnirl.algorithms.shared.training.likelihoods import ArrayOrTensor
from omnirl.algorithms.shared.training.torch_masks import legal_values
from omnirl.api import Feedback, Transitions

ErrorLoss = Callable[[ArrayOrTensor], tuple[ArrayOrTensor, ArrayOrTensor]]
"""``error [N] -> (loss [N], its derivative by the error [N])``"""


class ValueLoss(NamedTuple):
    """What a batch amounts to, per transition, without a graph: its loss [N], the derivative of that by the taken
    action's outputs (their shape), its temporal-difference error [N], its estimated value [N]."""

    loss: ArrayOrTensor
    slope: ArrayOrTensor
    error: ArrayOrTensor
    value: ArrayOrTensor


NO_LOSS = ValueLoss(*(np.empty(0, np.float32) for _ in ValueLoss._fields))
"""Of no transition at all: what a learner has whose part of a batch is empty."""
LossFunction = Callable[[TransitionTensors, ArrayOrTensor, Values, Values], ValueLoss]
"""``(batch, taken, online network, target network) -> ValueLoss``; ``taken`` [N, Z] or [N] has no graph."""


def huber_loss(error: ArrayOrTensor) -> tuple[ArrayOrTensor, ArrayOrTensor]:
    """0.5 e^2 where |e| <= 1, |e| - 0.5 elsewhere [N], and its derivative: the error clipped to [-1, 1]
    (Mnih et al. 2015, Nature 518, "Training algorithm")."""
    slope = error.clip(-1.0, 1.0)
    return slope * (error - 0.5 * slope), slope


def squared_loss(error: ArrayOrTensor) -> tuple[ArrayOrTensor, ArrayOrTensor]:
    """e^2 [N] and its derivative 2 e."""
    slope = 2.0 * error
    return 0.5 * slope * error, slope


ERROR_LOSSES: dict[str, ErrorLoss] = {"huber": huber_loss, "mse": squared_loss}
"""By the name that the configuration has for it."""


def absolute_errors(batch: Transitions, result: ValueLoss) -> Feedback:
    """|error| of every transition: what its priority in the replay is to be made of."""
    error = abs(result.error)
    return Feedback(batch.index, error.cpu().numpy() if isinstance(error, Tensor) else error)


def temporal_difference_loss(next_value: NextValue, error_loss: ErrorLoss) -> LossFunction:
    """``error_loss`` of target - Q(s, a), with the target reward + discount ``next_value`` over legal actions."""

    def loss(batch: TransitionTensors, taken: ArrayOrTensor, online: Values, target: Values) -> ValueLoss:
        legal_online, legal_target = (legal_values(values, batch.next_mask) for values in (online, target))
        next_values = next_value(batch.next_obs, legal_online, legal_target)
        error = bootstrapped(batch.reward, batch.discount, next_values) - taken
        value, slope = error_loss(error)
        return ValueLoss(value, -slope, error, taken)

    return loss
