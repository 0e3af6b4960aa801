"""SAC's update: Haarnoja et al. 2018 (arXiv:1812.05905), algorithm 1, as a composition of shared parts.

With discrete actions the objective is that of :mod:`omnirl.algorithms.sac.discrete`, and a critic gives the
values of all actions at once.
"""

from __future__ import annotations

from functools import partial

from omnirl.algorithms.sac.config import Config
from omnirl.algorithms.sac.discrete import REDUCTIONS, expected
from omnirl.algorithms.shared.bounded_actions.critic_losses import (
    average,
    average_slope,
    least,
    least_slope,
    summed_squares,
)
from omnirl.algorithms.shared.bounded_actions.soft_learner import SoftLearner
from omnirl.algorithms.shared.bounded_actions.soft_losses import reparameterized
from omnirl.algorithms.shared.bounded_actions.target_entropy import target_entropy
from omnirl.api import ContinuousAction, EnvSpec, LearnerContext

_VALUES = {"min": (least, least_slope), "mean": (average, average_slope)}


class Learner(SoftLearner):
    """The soft learner with SAC's objective for the kind of action."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        learner = config.learner
        kept = learner.target_entropy
        if isinstance(spec.action, ContinuousAction):
            value, slope = _VALUES[learner.critic_reduction]
            objective = partial(
                reparameterized,
                next_value=value,
                critic_loss=summed_squares,
                actor_value=value,
                actor_slope=slope,
            )
        else:
            objective = partial(expected, reduction=REDUCTIONS[learner.critic_reduction])
        super().__init__(
            config.network,
            learner,
            spec,
            context,
            critic_outputs=1,
            objective=objective,
            target_entropy=target_entropy(spec.action, learner.target_entropy_ratio)
            if kept is None
            else kept,
        )
