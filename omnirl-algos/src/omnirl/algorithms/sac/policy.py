"""SAC's policy: a squashed Gaussian, or for discrete actions a softmax. Imports no torch."""

from __future__ import annotations

from omnirl.algorithms.shared.bounded_actions.entropy_policy import EntropyPolicy


class Policy(EntropyPolicy):
    """See :class:`omnirl.algorithms.shared.bounded_actions.entropy_policy.EntropyPolicy`."""
