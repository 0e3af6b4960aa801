"""DDPG's update: Lillicrap et al. 2016 (arXiv:1509.02971), algorithm 1, as a composition of shared parts.

In the form that later work measures it in (Fujimoto et al. 2018, "our DDPG"): the action enters at the first
layer, no batch normalisation, no weight decay.
"""

from __future__ import annotations

from omnirl.algorithms.ddpg.config import Config
from omnirl.algorithms.shared.bounded_actions.critic_losses import least
from omnirl.algorithms.shared.bounded_actions.deterministic_learner import DeterministicLearner
from omnirl.algorithms.shared.bounded_actions.deterministic_losses import unchanged
from omnirl.api import EnvSpec, LearnerContext


class Learner(DeterministicLearner):
    """The deterministic learner with one critic."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        super().__init__(
            config.network,
            config.learner,
            spec,
            context,
            num_critics=1,
            delay=1,
            next_action=unchanged,
            next_value=least,
        )
