"""TD3's update: Fujimoto et al. 2018 (arXiv:1802.09477), algorithm 1, as a composition of shared parts."""

from __future__ import annotations

from omnirl.algorithms.shared.bounded_actions.critic_losses import least
from omnirl.algorithms.shared.bounded_actions.deterministic_learner import DeterministicLearner
from omnirl.algorithms.shared.bounded_actions.deterministic_losses import smoothing
from omnirl.algorithms.td3.config import Config
from omnirl.api import EnvSpec, LearnerContext


class Learner(DeterministicLearner):
    """The deterministic learner with clipped double Q-learning, smoothed targets and a delay."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        learner = config.learner
        super().__init__(
            config.network,
            learner,
            spec,
            context,
            num_critics=config.network.num_critics,
            delay=learner.policy_delay,
            next_action=smoothing(learner.target_noise, learner.target_noise_clip),
            next_value=least,
        )
