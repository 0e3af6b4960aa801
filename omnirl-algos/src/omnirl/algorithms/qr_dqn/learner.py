"""QR-DQN's update: Dabney et al. 2018, algorithm 1, as a composition of the value learner's parts."""

from __future__ import annotations

from omnirl.algorithms.qr_dqn.config import Config
from omnirl.algorithms.shared.values.distributional_losses import quantile_loss
from omnirl.algorithms.shared.values.learner import ValueLearner
from omnirl.api import EnvSpec, LearnerContext


class Learner(ValueLearner):
    """The value learner with quantiles of the return per action."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        learner = config.learner
        loss = quantile_loss(
            learner.num_quantiles, learner.kappa, online_chooses=learner.next_action == "online"
        )
        super().__init__(config, spec, context, loss=loss, row=learner.num_quantiles)
