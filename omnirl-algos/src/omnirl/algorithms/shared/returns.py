"""Advantages and returns of on-policy rollouts. Imports no torch.

Letters: T steps, B environments.
"""

from __future__ import annotations

import numpy as np

from omnirl.api import Array


def gae(
    rewards: Array,
    values: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    gamma: float,
    gae_lambda: float,
) -> tuple[Array, Array]:
    """Advantages and value targets, each [T, B] or [T], as the inputs are.

    delta_t = r_t + gamma (1 - terminated_t) V(s'_t) - V(s_t);
    A_t = delta_t + gamma lambda (1 - ended_t) A_{t+1}, with ended = terminated or truncated;
    returns = A + V. Schulman et al. 2016 (arXiv:1506.02438), eq. 16; truncation as in Pardo et al. 2018
    (arXiv:1712.00378).

    ``next_values_t`` is the value of the true successor: of the episode's final observation where it ended
    at t.
    """
    advantages = rewards + gamma * np.where(terminated, 0.0, next_values).astype(values.dtype) - values
    decay = np.where(terminated | truncated, 0.0, gamma * gae_lambda).astype(values.dtype)
    for t in range(len(advantages) - 2, -1, -1):
        advantages[t] += decay[t] * advantages[t + 1]
    return advantages, advantages + values


def explained_variance(returns: Array, values: Array) -> float:
    """1 - Var(returns - values) / Var(returns): 1 is perfect, 0 no better than a constant; NaN for constant
    returns."""
    variance = float(np.var(returns))
    return float("nan") if variance == 0.0 else 1.0 - float(np.var(returns - values)) / variance
