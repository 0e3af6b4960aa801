"""Dueling DQN's policy. Imports no torch, unless the observations are images."""

from __future__ import annotations

from omnirl.algorithms.dueling_dqn.config import Config
from omnirl.algorithms.shared.acting.acting_network import acting_dueling_network
from omnirl.algorithms.shared.values.greedy_policy import GreedyPolicy
from omnirl.api import EnvSpec, PolicyContext


class Policy(GreedyPolicy):
    """See :class:`omnirl.algorithms.shared.values.greedy_policy.GreedyPolicy`."""

    def __init__(self, config: Config, spec: EnvSpec, context: PolicyContext) -> None:
        super().__init__(config, spec, context, build=acting_dueling_network)
