"""C51's update: Bellemare et al. 2017, algorithm 1, as a composition of the value learner's parts."""

from __future__ import annotations

from omnirl.algorithms.c51.config import Config
from omnirl.algorithms.shared.values.distributional_losses import categorical_loss
from omnirl.algorithms.shared.values.learner import ValueLearner
from omnirl.api import EnvSpec, LearnerContext


class Learner(ValueLearner):
    """The value learner with a distribution over atoms per action."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        learner = config.learner
        loss = categorical_loss(
            learner.v_min,
            learner.v_max,
            learner.num_atoms,
            online_chooses=learner.next_action == "online",
        )
        super().__init__(config, spec, context, loss=loss, row=learner.num_atoms)
