"""The learner of DDPG and TD3: one actor, critics, and targets of both."""

from __future__ import annotations

import torch

from omnirl.algorithms.shared.acting.observations import network_observation
from omnirl.algorithms.shared.bounded_actions.actor_critic_groups import (
    actor_group,
    critics_group,
    target_parameters,
)
from omnirl.algorithms.shared.bounded_actions.critic_losses import Reduction
from omnirl.algorithms.shared.bounded_actions.deterministic_losses import (
    FIGURES,
    WAITING_FIGURES,
    NextAction,
    deterministic_losses,
)
from omnirl.algorithms.shared.off_policy.config import OffPolicyLearnerConfig
from omnirl.algorithms.shared.off_policy.learner import Groups, OffPolicyLearner
from omnirl.api import ContinuousAction, EnvSpec, LearnerContext
from omnirl.networks.actor_critic_passes import make_passes
from omnirl.networks.actor_critics import build_actor, build_actor_critics
from omnirl.networks.config import OffPolicyNetworkConfig
from omnirl.networks.initialization import generator


class DeterministicLearner(OffPolicyLearner):
    """What differs comes from the algorithm.

    ``num_critics``, the ``delay`` of the actor and the targets, and the two functions of
    :func:`omnirl.algorithms.shared.bounded_actions.deterministic_losses.deterministic_losses`.
    """

    def __init__(
        self,
        network: OffPolicyNetworkConfig,
        settings: OffPolicyLearnerConfig,
        spec: EnvSpec,
        context: LearnerContext,
        *,
        num_critics: int,
        delay: int,
        next_action: NextAction,
        next_value: Reduction,
    ) -> None:
        torch.set_num_threads(context.threads)
        assert isinstance(spec.action, ContinuousAction)
        observation, size = network_observation(network, spec), len(spec.action.low)
        self.networks = build_actor_critics(
            network,
            observation,
            generator(context.seed),
            actor_outputs=size,
            action_size=size,
            num_critics=num_critics,
            critic_outputs=1,
        )
        self.target_actor = build_actor(network, observation, size)
        device = torch.device(context.device)
        groups = Groups(
            critics_group(self.networks, settings, device),
            {"actor": actor_group(self.networks, settings, device)},
            targets={
                "critics": target_parameters(self.networks.target_critics, device),
                "actor": target_parameters(self.target_actor, device),
            },
            tau=settings.tau,
            delay=delay,
        )
        passes = make_passes(self.networks, next_actor=self.target_actor, members=1)
        super().__init__(
            spec,
            observation,
            groups,
            losses=deterministic_losses(passes, next_action=next_action, next_value=next_value),
            figures=FIGURES,
            waiting_figures=WAITING_FIGURES,
            context=context,
        )
