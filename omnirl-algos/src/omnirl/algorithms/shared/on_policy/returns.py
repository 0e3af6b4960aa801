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
    spread = _sum_of_squares(returns)
    return float("nan") if spread == 0.0 else 1.0 - _sum_of_squares(returns - values) / spread


def _sum_of_squares(array: Array) -> float:
    """About the mean. numpy's own variance takes five times as long on the few samples of a short rollout."""
    centered = array.reshape(-1) - array.sum() / array.size
    return float(np.dot(centered, centered))


def vtrace(
    log_rhos: Array,
    rewards: Array,
    values: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    gamma: float,
    vtrace_lambda: float = 1.0,
    rho_bar: float = 1.0,
    c_bar: float = 1.0,
    pg_rho_bar: float = 1.0,
) -> tuple[Array, Array]:
    """V-trace's value targets and policy-gradient advantages, each [T, B] or [T], as the inputs are.

    delta_t = min(rho_bar, rho_t) (r_t + gamma (1 - terminated_t) V(s'_t) - V(s_t));
    vs_t = V(s_t) + delta_t + gamma (1 - ended_t) lambda min(c_bar, rho_t) (vs_{t+1} - V(s_{t+1}));
    advantage_t = min(pg_rho_bar, rho_t) (r_t + gamma (1 - terminated_t) vs'_t - V(s_t)), where vs'_t is
    vs_{t+1} within an episode and V(s'_t) at its end and at the last step. Espeholt et al. 2018
    (arXiv:1802.01561), eq. 1 and section 4.2; lambda as in its remark 2.

    ``log_rhos`` is log pi - log mu of the actions taken; ``next_values`` as in :func:`gae`.
    """
    rhos = np.exp(log_rhos)
    continues = gamma * np.where(terminated, 0.0, 1.0).astype(values.dtype)
    ended = terminated | truncated
    deltas = np.minimum(rho_bar, rhos) * (rewards + continues * next_values - values)
    decay = np.where(ended, 0.0, gamma * vtrace_lambda * np.minimum(c_bar, rhos)).astype(values.dtype)
    for t in range(len(deltas) - 2, -1, -1):
        deltas[t] += decay[t] * deltas[t + 1]
    targets = values + deltas
    successors = next_values.copy()
    successors[:-1] = np.where(ended[:-1], next_values[:-1], targets[1:])
    advantages = np.minimum(pg_rho_bar, rhos) * (rewards + continues * successors - values)
    return targets, advantages
