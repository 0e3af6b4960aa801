"""A2C's update: one gradient step on one rollout per sampler.

Mnih et al. 2016 (arXiv:1602.01783), synchronous, with GAE: the mean over samples of
-A log pi + vf_coef (V - R)^2 - ent_coef H.

Letters: T steps, B environments.
"""

from __future__ import annotations

from omnirl.algorithms.a2c.config import Config, LearnerConfig
from omnirl.algorithms.shared.on_policy import losses
from omnirl.algorithms.shared.on_policy.policy_gradient_learner import (
    Estimate,
    PolicyGradientLearner,
    mean_weight,
)
from omnirl.algorithms.shared.on_policy.returns import gae
from omnirl.algorithms.shared.on_policy.rollout_batch import RolloutBatch
from omnirl.api import Array, EnvSpec, LearnerContext


class Learner(PolicyGradientLearner):
    """See :mod:`omnirl.algorithms.shared.on_policy.policy_gradient_learner`."""

    config: LearnerConfig

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        super().__init__(
            config,
            spec,
            context,
            estimate=self._advantages,
            value_loss=losses.squared_error,
            weight=mean_weight,
            standardize=config.learner.normalize_advantages,
        )

    def _advantages(self, batch: RolloutBatch, log_prob: Array, before: Array, after: Array) -> Estimate:
        """GAE [T, B]; the log-probabilities do not enter, since the actions are those of this very policy."""
        return Estimate(
            *gae(
                batch.reward,
                before,
                after,
                batch.terminated,
                batch.truncated,
                gamma=self.config.gamma,
                gae_lambda=self.config.gae_lambda,
            )
        )
