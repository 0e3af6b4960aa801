"""DQN's update: Mnih et al. 2015 (Nature 518), algorithm 1, as a composition of the value learner's parts."""

from __future__ import annotations

from omnirl.algorithms.dqn.config import Config
from omnirl.algorithms.shared.off_policy.targets import greatest_target_value
from omnirl.algorithms.shared.values.learner import ValueLearner
from omnirl.algorithms.shared.values.losses import ERROR_LOSSES, temporal_difference_loss
from omnirl.api import EnvSpec, LearnerContext


class Learner(ValueLearner):
    """The value learner with the greatest target value and the configured loss."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        loss = temporal_difference_loss(greatest_target_value, ERROR_LOSSES[config.learner.loss])
        super().__init__(config, spec, context, loss=loss)
