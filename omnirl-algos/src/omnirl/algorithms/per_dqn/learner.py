"""PER-DQN's update: double DQN's with importance weights, and the errors back to the replay: Schaul et al. 2016,
algorithm 1."""

from __future__ import annotations

from omnirl.algorithms.per_dqn.config import Config
from omnirl.algorithms.shared.off_policy.targets import double_target_value
from omnirl.algorithms.shared.values.learner import ValueLearner
from omnirl.algorithms.shared.values.losses import (
    ERROR_LOSSES,
    absolute_errors,
    temporal_difference_loss,
)
from omnirl.api import EnvSpec, LearnerContext


class Learner(ValueLearner):
    """The value learner with the double target and the configured loss, which tells the replay its errors."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        loss = temporal_difference_loss(double_target_value, ERROR_LOSSES[config.learner.loss])
        super().__init__(config, spec, context, loss=loss, feedback=absolute_errors)
