"""QR-DQN's policy: greedy on the mean of the quantiles. Imports no torch, unless the observations are images."""

from __future__ import annotations

from omnirl.algorithms.qr_dqn.config import Config
from omnirl.algorithms.shared.values.greedy_policy import GreedyPolicy
from omnirl.api import EnvSpec, PolicyContext


class Policy(GreedyPolicy):
    """See :class:`omnirl.algorithms.shared.values.greedy_policy.GreedyPolicy`."""

    def __init__(self, config: Config, spec: EnvSpec, context: PolicyContext) -> None:
        super().__init__(
            config,
            spec,
            context,
            row=config.learner.num_quantiles,
            values=lambda quantiles: quantiles.mean(axis=-1),
        )
