"""SAC's update: Haarnoja et al. 2018 (arXiv:1812.05905), algorithm 1, as a composition of shared parts.

With discrete actions the objective is that of :mod:`omnirl.algorithms.sac.discrete`, and a critic gives the
values of all actions at once.
"""

from __future__ import annotations

import torch

from omnirl.algorithms.sac.config import Config
from omnirl.algorithms.sac.discrete import REDUCTIONS, expected
from omnirl.algorithms.shared.critic_losses import average, least, summed_squares
from omnirl.algorithms.shared.observations import network_observation
from omnirl.algorithms.shared.off_policy_learner import OffPolicyLearner
from omnirl.algorithms.shared.soft_groups import make_temperature, soft_groups
from omnirl.algorithms.shared.soft_losses import FIGURES, reparameterized, soft_losses
from omnirl.algorithms.shared.target_entropy import target_entropy
from omnirl.api import ActionSpec, ArraySpec, ContinuousAction, DiscreteAction, EnvSpec, LearnerContext
from omnirl.networks.actor_critics import ActorCritics, build_actor_critics
from omnirl.networks.config import CriticsNetworkConfig
from omnirl.networks.initialization import generator


class Learner(OffPolicyLearner):
    """The off-policy learner with SAC's networks and losses for the kind of action."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        torch.set_num_threads(context.threads)
        settings = config.learner
        observation = network_observation(config.network, spec)
        self.networks = _networks(config.network, observation, spec.action, context.seed)
        actor, critics, target_critics = self.networks
        if isinstance(spec.action, ContinuousAction):
            reduction = {"min": least, "mean": average}[settings.critic_reduction]
            objective = reparameterized(
                actor,
                critics,
                target_critics,
                next_value=reduction,
                critic_loss=summed_squares,
                actor_value=reduction,
            )
        else:
            objective = expected(actor, critics, target_critics, REDUCTIONS[settings.critic_reduction])
        self.temperature = make_temperature(settings)
        kept = settings.target_entropy
        if kept is None:
            kept = target_entropy(spec.action, settings.target_entropy_ratio)
        super().__init__(
            spec,
            observation,
            soft_groups(self.networks, self.temperature, settings, torch.device(context.device)),
            losses=soft_losses(objective, self.temperature, kept if settings.temperature is None else None),
            figures=FIGURES,
            waiting_figures=(),
            context=context,
        )


def _networks(
    config: CriticsNetworkConfig, observation: ArraySpec, action: ActionSpec, seed: int
) -> ActorCritics:
    """The actor gives mean and log deviation, or logits; critics take the action, or value each."""
    if isinstance(action, ContinuousAction):
        size = len(action.low)
        shapes = {"actor_outputs": 2 * size, "action_size": size, "critic_outputs": 1}
    else:
        assert isinstance(action, DiscreteAction)
        shapes = {"actor_outputs": action.n, "action_size": 0, "critic_outputs": action.n}
    return build_actor_critics(config, observation, generator(seed), num_critics=config.num_critics, **shapes)
