"""IMPALA's policy. Imports no torch, unless the observations are images."""

from __future__ import annotations

from omnirl.algorithms.shared.stochastic_policy import StochasticPolicy


class Policy(StochasticPolicy):
    """See :class:`omnirl.algorithms.shared.stochastic_policy.StochasticPolicy`."""
