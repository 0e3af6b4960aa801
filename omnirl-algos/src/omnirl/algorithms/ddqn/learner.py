"""Double DQN's update: the online network chooses the next action, the target network values it."""

from __future__ import annotations

from omnirl.algorithms.ddqn.config import Config
from omnirl.algorithms.shared.off_policy.targets import double_target_value
from omnirl.algorithms.shared.values.learner import ValueLearner
from omnirl.algorithms.shared.values.losses import ERROR_LOSSES, temporal_difference_loss
from omnirl.api import EnvSpec, LearnerContext


class Learner(ValueLearner):
    """The value learner with the double target and the configured loss."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        loss = temporal_difference_loss(double_target_value, ERROR_LOSSES[config.learner.loss])
        super().__init__(config, spec, context, loss=loss)
