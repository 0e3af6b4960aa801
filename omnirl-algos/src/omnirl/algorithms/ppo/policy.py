"""PPO's policy. Imports no torch, unless the observations are images."""

from __future__ import annotations

from omnirl.algorithms.shared.on_policy.stochastic_policy import StochasticPolicy


class Policy(StochasticPolicy):
    """See :class:`omnirl.algorithms.shared.on_policy.stochastic_policy.StochasticPolicy`."""
