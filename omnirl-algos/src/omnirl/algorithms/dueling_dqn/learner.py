"""Dueling DQN's update: double DQN's on the dueling network, as in Wang et al. 2016, section 4.2."""

from __future__ import annotations

from omnirl.algorithms.dueling_dqn.config import Config
from omnirl.algorithms.shared.off_policy.targets import double_target_value
from omnirl.algorithms.shared.values.learner import ValueLearner
from omnirl.algorithms.shared.values.losses import ERROR_LOSSES, temporal_difference_loss
from omnirl.api import EnvSpec, LearnerContext
from omnirl.networks.dueling import build_dueling


class Learner(ValueLearner):
    """The value learner with the dueling network, the double target and the configured loss."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        loss = temporal_difference_loss(double_target_value, ERROR_LOSSES[config.learner.loss])
        super().__init__(config, spec, context, loss=loss, build=build_dueling)
