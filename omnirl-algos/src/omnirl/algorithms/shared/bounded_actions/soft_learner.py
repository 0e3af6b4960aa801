"""The learner of SAC and TQC: an actor that is random by itself, critics, and the temperature between them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from omnirl.algorithms.shared.acting.observations import network_observation
from omnirl.algorithms.shared.bounded_actions.soft_groups import make_temperature, soft_groups
from omnirl.algorithms.shared.bounded_actions.soft_losses import FIGURES, Objective, soft_losses
from omnirl.algorithms.shared.off_policy.config import SoftLearnerConfig
from omnirl.algorithms.shared.off_policy.learner import OffPolicyLearner
from omnirl.api import ContinuousAction, DiscreteAction, EnvSpec, LearnerContext
from omnirl.networks.actor_critic_passes import Passes, make_passes
from omnirl.networks.actor_critics import build_actor_critics
from omnirl.networks.config import CriticsNetworkConfig
from omnirl.networks.initialization import generator


class SoftLearner(OffPolicyLearner):
    """What differs comes from the algorithm.

    ``critic_outputs`` are what a critic says of one continuous action; of discrete ones it says a value each.
    ``objective`` is made of the passes; ``target_entropy`` in nats is what a learned temperature keeps.
    """

    def __init__(
        self,
        network: CriticsNetworkConfig,
        settings: SoftLearnerConfig,
        spec: EnvSpec,
        context: LearnerContext,
        *,
        critic_outputs: int,
        objective: Callable[[Passes], Objective],
        target_entropy: float,
    ) -> None:
        torch.set_num_threads(context.threads)
        observation = network_observation(network, spec)
        if isinstance(spec.action, ContinuousAction):
            size = len(spec.action.low)
            shapes = {"actor_outputs": 2 * size, "action_size": size, "critic_outputs": critic_outputs}
        else:
            assert isinstance(spec.action, DiscreteAction)
            shapes = {
                "actor_outputs": spec.action.n,
                "action_size": 0,
                "critic_outputs": critic_outputs * spec.action.n,
            }
        self.networks = build_actor_critics(
            network, observation, generator(context.seed), num_critics=network.num_critics, **shapes
        )
        self.temperature = make_temperature(settings)
        # In this order: the passes hold on to where the parameters are by then.
        groups = soft_groups(self.networks, self.temperature, settings, torch.device(context.device))
        passes = make_passes(self.networks, next_actor=self.networks.actor)
        learned = target_entropy if settings.temperature is None else None
        super().__init__(
            spec,
            observation,
            groups,
            losses=soft_losses(objective(passes), self.temperature, learned),
            figures=FIGURES,
            waiting_figures=(),
            context=context,
        )
