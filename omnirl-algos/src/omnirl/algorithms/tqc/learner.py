"""TQC's update: Kuznetsov et al. 2020 (arXiv:2005.04269), algorithm 1, as a composition of shared parts.

SAC with critics that give quantiles. The target leaves out the greatest atoms; the actor is judged by the mean of
all.
"""

from __future__ import annotations

from functools import partial

from omnirl.algorithms.shared.bounded_actions.critic_losses import average, average_slope
from omnirl.algorithms.shared.bounded_actions.soft_learner import SoftLearner
from omnirl.algorithms.shared.bounded_actions.soft_losses import reparameterized
from omnirl.algorithms.shared.bounded_actions.target_entropy import continuous_target_entropy
from omnirl.algorithms.tqc.config import Config
from omnirl.algorithms.tqc.quantiles import quantile_loss, truncated
from omnirl.api import ContinuousAction, EnvSpec, LearnerContext


class Learner(SoftLearner):
    """The soft learner with TQC's target and loss."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        assert isinstance(spec.action, ContinuousAction)
        learner = config.learner
        kept = learner.target_entropy
        super().__init__(
            config.network,
            learner,
            spec,
            context,
            critic_outputs=config.network.num_quantiles,
            objective=partial(
                reparameterized,
                next_value=truncated(learner.dropped_quantiles),
                critic_loss=quantile_loss(learner.kappa),
                actor_value=average,
                actor_slope=average_slope,
            ),
            target_entropy=continuous_target_entropy(spec.action) if kept is None else kept,
        )
