"""Log-probabilities and entropies of actions under a policy's outputs, with their gradients, for learning.

The functions take numpy arrays or torch tensors and answer in kind. A minibatch is small, so that on the CPU what
counts is the way to each operation, and numpy's is half of torch's; on another device the arrays stay tensors there.
Gradients are written out: they take a third of the time of autograd's, and ``torch.distributions`` ten times as long.

Letters: N samples; n actions; A size of a continuous action; P positions of a multi-discrete one; O outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from omnirl.algorithms.shared.acting.distributions import LOG_SQRT_2PI

ArrayOrTensor: TypeAlias = Any
"""A numpy array or a torch tensor: the operations used here have the same names and meaning in both."""


def namespace(array: ArrayOrTensor) -> Any:
    """The module with the functions for ``array``: numpy or torch."""
    return np if isinstance(array, np.ndarray) else torch


class Likelihood(NamedTuple):
    """Of actions under a policy's outputs.

    log_prob, entropy   [N]
    gradient            ``(d_log_prob [N], d_entropy)`` -> the gradients of the outputs [N, O] and, for continuous
                        actions, of ``log_std`` [A]; ``d_entropy`` is the same number for all samples
    """

    log_prob: ArrayOrTensor
    entropy: ArrayOrTensor
    gradient: Callable[[ArrayOrTensor, float], tuple[ArrayOrTensor, ArrayOrTensor | None]]


def categorical(logits: ArrayOrTensor, action: ArrayOrTensor) -> Likelihood:
    """One choice of n; logits [N, n] need not be normalised, action [N, 1] int64.

    d log p_a / d z_j = 1[j = a] - p_j;  d H / d z_j = -p_j (log p_j + H).
    """
    xp = namespace(logits)
    # From here on the actions come first: reducing over a short last axis takes numpy ten times as long.
    by_action = logits.T.copy() if xp is np else logits.T.contiguous()
    shifted = by_action - xp.amax(by_action, 0)
    weights = xp.exp(shifted)
    total = weights.sum(0)
    probs, log_probs = weights / total, shifted - xp.log(total)
    entropy = -(probs * log_probs).sum(0)
    chosen = action[:, 0], xp.arange(len(logits), **_placed_as(logits))

    def gradient(d_log_prob: ArrayOrTensor, d_entropy: float) -> tuple[ArrayOrTensor, None]:
        d_logits = probs * -d_log_prob
        d_logits[chosen] += d_log_prob
        if d_entropy != 0.0:
            d_logits -= d_entropy * probs * (log_probs + entropy)
        return d_logits.T, None

    return Likelihood(log_probs[chosen], entropy, gradient)


def multi_categorical(logits: ArrayOrTensor, action: ArrayOrTensor, nvec: Sequence[int]) -> Likelihood:
    """P independent choices, whose terms add up; logits [N, sum(nvec)], action [N, P] int64."""
    xp = namespace(logits)
    edges = pairwise(accumulate(nvec, initial=0))
    parts = [categorical(logits[:, begin:end], action[:, i : i + 1]) for i, (begin, end) in enumerate(edges)]

    def gradient(d_log_prob: ArrayOrTensor, d_entropy: float) -> tuple[ArrayOrTensor, None]:
        return xp.concatenate([part.gradient(d_log_prob, d_entropy)[0] for part in parts], 1), None

    return Likelihood(sum(part.log_prob for part in parts), sum(part.entropy for part in parts), gradient)


def gaussian(mean: ArrayOrTensor, log_std: ArrayOrTensor, action: ArrayOrTensor) -> Likelihood:
    """Independent normals; mean and action [N, A], one ``log_std`` [A] for all.

    With z = (a - mean) / std: d log p / d mean = z / std;  d log p / d log_std = z^2 - 1;  d H / d log_std = 1.
    """
    xp = namespace(mean)
    inverse = xp.exp(-log_std)
    z = (action - mean) * inverse
    squares = z * z
    total, size = log_std.sum(), len(log_std)
    log_prob = -0.5 * squares.sum(1) - (total + LOG_SQRT_2PI * size)
    entropy = xp.zeros_like(log_prob) + (total + (LOG_SQRT_2PI + 0.5) * size)

    def gradient(d_log_prob: ArrayOrTensor, d_entropy: float) -> tuple[ArrayOrTensor, ArrayOrTensor]:
        column = d_log_prob[:, None]
        return z * inverse * column, ((squares - 1.0) * column).sum(0) + d_entropy * len(mean)

    return Likelihood(log_prob, entropy, gradient)


def _placed_as(array: ArrayOrTensor) -> dict[str, Any]:
    return {} if isinstance(array, np.ndarray) else {"device": array.device}
