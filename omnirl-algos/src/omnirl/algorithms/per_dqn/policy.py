"""PER-DQN's policy. Imports no torch, unless the observations are images."""

from __future__ import annotations

from omnirl.algorithms.shared.values.greedy_policy import GreedyPolicy


class Policy(GreedyPolicy):
    """See :class:`omnirl.algorithms.shared.values.greedy_policy.GreedyPolicy`."""
