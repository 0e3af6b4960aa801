"""DQN's update: Mnih et al. 2015 (Nature 518), algorithm 1, as a composition of the value learner's parts."""

from __future__ import annotations

import torch

from omnirl.algorithms.dqn.config import Config
from omnirl.algorithms.shared.observations import network_observation
from omnirl.algorithms.shared.targets import greatest_target_value
from omnirl.algorithms.shared.value_learner import ValueLearner, ValueSettings
from omnirl.algorithms.shared.value_losses import huber_loss, squared_loss, temporal_difference_loss
from omnirl.api import DiscreteAction, EnvSpec, LearnerContext, value_at
from omnirl.networks.build import build_network
from omnirl.networks.initialization import generator


class Learner(ValueLearner):
    """The value learner with the greatest target value and the configured loss."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        assert isinstance(spec.action, DiscreteAction)
        torch.set_num_threads(context.threads)
        observation = network_observation(config.network, spec)
        network = build_network(config.network, observation, spec.action.n)
        network.init_uniform(generator(context.seed))
        learner = config.learner
        error_loss = {"huber": huber_loss, "mse": squared_loss}[learner.loss]
        super().__init__(
            observation,
            spec.action,
            network,
            target_network=build_network(config.network, observation, spec.action.n),
            loss=temporal_difference_loss(greatest_target_value, error_loss),
            settings=ValueSettings(
                learner.lr,
                learner.adam_epsilon,
                learner.max_grad_norm,
                learner.target_update_interval,
                learner.tau,
            ),
            context=context,
            host_figures=lambda clock: {"epsilon": value_at(config.policy.epsilon, clock)},
        )
