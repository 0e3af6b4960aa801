"""IMPALA's update: one gradient step on rollouts of slightly older policies, corrected by V-trace.

Espeholt et al. 2018 (arXiv:1802.01561), section 4.2, in the convention of its code: the sum over samples of
-A log pi + vf_coef 1/2 (V - vs)^2 - ent_coef H.

Letters: T steps, B environments.
"""

from __future__ import annotations

import numpy as np
import torch

from omnirl.algorithms.impala.config import Config, LearnerConfig
from omnirl.algorithms.shared.on_policy import losses
from omnirl.algorithms.shared.on_policy.policy_gradient_learner import (
    Estimate,
    PolicyGradientLearner,
    sum_weight,
)
from omnirl.algorithms.shared.on_policy.returns import vtrace
from omnirl.algorithms.shared.on_policy.rollout_batch import RolloutBatch
from omnirl.api import Array, EnvSpec, LearnerContext

_MOST_LOG_RHO = (
    20.0  # beyond that exp() of a density's ratio leaves float32, whatever the bars cut afterwards
)


class Learner(PolicyGradientLearner):
    """See :mod:`omnirl.algorithms.shared.on_policy.policy_gradient_learner`."""

    config: LearnerConfig

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        super().__init__(
            config,
            spec,
            context,
            estimate=self._corrected,
            value_loss=losses.half_squared_error,
            weight=sum_weight,
            figures=("approx_kl", "clip_fraction"),
        )

    def _corrected(self, batch: RolloutBatch, log_prob: Array, before: Array, after: Array) -> Estimate:
        """V-trace [T, B]; the other policy of the ratios is the one that acted, by its own log-probabilities."""
        config = self.config
        log_rhos = np.clip(log_prob - batch.log_prob, -_MOST_LOG_RHO, _MOST_LOG_RHO)
        targets, advantages = vtrace(
            log_rhos,
            batch.reward,
            before,
            after,
            batch.terminated,
            batch.truncated,
            gamma=config.gamma,
            vtrace_lambda=config.vtrace_lambda,
            rho_bar=config.rho_bar,
            c_bar=config.c_bar,
            pg_rho_bar=config.pg_rho_bar,
        )
        return Estimate(
            advantages,
            targets,
            (
                float(losses.kl_estimates(torch.from_numpy(log_rhos))[1]),
                float((log_rhos > np.log(config.rho_bar)).mean()),
            ),
        )
