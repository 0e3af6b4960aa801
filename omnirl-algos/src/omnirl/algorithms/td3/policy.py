"""TD3's policy: the actor's action, with noise when exploring. Imports no torch."""

from __future__ import annotations

from omnirl.algorithms.shared.bounded_actions.noisy_policy import NoisyPolicy


class Policy(NoisyPolicy):
    """See :class:`omnirl.algorithms.shared.bounded_actions.noisy_policy.NoisyPolicy`."""
