"""The learner of the on-policy algorithms: an actor-critic network, running statistics, and what is kept of them.

An algorithm is this class with its own ``update``; nothing here knows which it is. Nothing waits for the device
between updates: figures stay there until ``metrics()``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from omnirl.algorithms.shared.acting.action_head import make_head, num_outputs
from omnirl.algorithms.shared.acting.action_masks import action_mask
from omnirl.algorithms.shared.acting.normalization import ObservationNormalizer, ReturnNormalizer
from omnirl.algorithms.shared.acting.observations import (
    network_input,
    network_observation,
    time_rows,
    vector_size,
    vectors_of,
    with_vectors,
)
from omnirl.algorithms.shared.on_policy.config import OnPolicyConfig, OnPolicyLearnerConfig
from omnirl.algorithms.shared.on_policy.rollout_batch import RolloutBatch, join_rollouts
from omnirl.algorithms.shared.on_policy.running_statistics import RunningStatistics
from omnirl.algorithms.shared.on_policy.shards import Shard, shard_of
from omnirl.algorithms.shared.training import likelihoods
from omnirl.algorithms.shared.training.flat_optimizers import FlatOptimizer
from omnirl.algorithms.shared.training.flat_parameters import FlatParameters
from omnirl.algorithms.shared.training.likelihoods import ArrayOrTensor
from omnirl.algorithms.shared.training.metric_sums import MetricSums
from omnirl.algorithms.shared.training.process_group import process_group
from omnirl.api import (
    Array,
    Clock,
    ConfigError,
    ContinuousAction,
    EnvSpec,
    LearnerContext,
    MultiDiscreteAction,
    Obs,
    Rollout,
)
from omnirl.networks.actor_critic import ActorCritic
from omnirl.networks.backpropagation import backpropagation, gradient_of
from omnirl.networks.initialization import generator

Update: TypeAlias = Callable[[RolloutBatch | None, Shard, Clock], None]
"""Moves the parameters and adds the figures of that to the metrics. Without a batch this learner has no samples, but
another one has, and moves the same parameters."""


class OnPolicyLearner:
    """One update learns from the tuple of rollouts that the memory hands out; see :mod:`omnirl.api.algorithm`.

    ``optimizer`` makes the one that moves the parameters; ``figures`` name what ``update`` adds on the device.
    """

    config: OnPolicyLearnerConfig

    def __init__(
        self,
        config: OnPolicyConfig,
        spec: EnvSpec,
        context: LearnerContext,
        *,
        optimizer: Callable[[FlatParameters], FlatOptimizer],
        figures: Sequence[str],
        update: Update,
    ) -> None:
        torch.set_num_threads(context.threads)
        self.config = config.learner
        self.device = torch.device(context.device)
        self._observation = network_observation(config.network, spec)
        vectors = vector_size(self._observation)
        if vectors == 0 and self.config.normalize_observations:
            raise ConfigError(
                "modules.learner.normalize_observations: images are scaled in the network already "
                "(set it to false)"
            )
        self._action = spec.action
        self._head = make_head(spec.action, num_envs=1, rows=1)
        log_std_init = config.policy.log_std_init if isinstance(spec.action, ContinuousAction) else None
        self.network = ActorCritic(
            config.network, self._observation, num_outputs(spec.action), log_std_init, generator(context.seed)
        )
        self.parameters = FlatParameters(self.network, self.device)
        self._acting_names = self.network.acting_names()
        self.backpropagation = backpropagation(self.network)
        self.optimizer = optimizer(self.parameters)
        self.group = process_group(context)
        # The seed is the same for all; a class of the user's own may draw its initial values from elsewhere.
        self.group.as_first_(self.parameters.values)
        self.statistics = RunningStatistics(
            ObservationNormalizer(vectors) if self.config.normalize_observations else None,
            ReturnNormalizer(self.config.gamma) if self.config.normalize_returns else None,
            self.group,
        )
        self._metrics = MetricSums(figures, self.device)
        self._change = update

    @property
    def nonfinite_in_row(self) -> int:
        """The latest updates in a row that changed nothing, as of the last ``metrics()``."""
        return self._metrics.nonfinite_in_row

    def observe(self, rollout: Rollout) -> None:
        """Add to the pending statistics. The last row of observations is the next rollout's first."""
        if self.statistics.observations is None:
            self.statistics.observe(None, rollout)
        else:
            rows = network_input(time_rows(rollout.observations(), slice(-1)), self._observation)
            self.statistics.observe(vectors_of(rows, self._observation), rollout)

    def learn(self, batch: Sequence[Rollout], clock: Clock) -> None:
        """One update, of all learners together. Where none of them has a rollout nothing changes but the version."""
        shard = shard_of(self.group, batch)
        self.statistics.merge()
        if shard.count:
            self.statistics.activate_first()
            self._change(self._joined(batch) if batch else None, shard, clock)
        self.statistics.activate()

    def _joined(self, rollouts: Sequence[Rollout]) -> RolloutBatch:
        return join_rollouts(
            rollouts,
            network_input=self._network_input,
            action_mask=action_mask,
            actions=self._head.network_action,
            rewards=self.statistics.returns or _unchanged,
            device=self.device,
        )

    def _network_input(self, obs: Obs) -> Array:
        rows = network_input(obs, self._observation)
        normalizer = self.statistics.observations
        return rows if normalizer is None else with_vectors(rows, self._observation, normalizer)

    def _likelihood(self, outputs: ArrayOrTensor, action: ArrayOrTensor) -> likelihoods.Likelihood:
        if self.network.log_std is not None:
            return likelihoods.gaussian(outputs, self._plain(self.network.log_std.detach()), action)
        if isinstance(self._action, MultiDiscreteAction):
            return likelihoods.multi_categorical(outputs, action, self._action.nvec)
        return likelihoods.categorical(outputs, action)

    def _backward(
        self, d_outputs: ArrayOrTensor, d_log_std: ArrayOrTensor | None, d_values: ArrayOrTensor
    ) -> None:
        """Write the gradient of all parameters, from those of the network's outputs in the latest forward pass."""
        self.backpropagation.backward(torch.as_tensor(d_outputs), torch.as_tensor(d_values))
        if self.network.log_std is not None and d_log_std is not None:
            gradient_of(self.network.log_std).copy_(torch.as_tensor(d_log_std))

    def _plain(self, tensor: Tensor) -> ArrayOrTensor:
        """The tensor as the loss takes it: on the CPU as a numpy array of the same memory."""
        return tensor.numpy() if self.device.type == "cpu" else tensor

    def metrics(self) -> Mapping[str, float]:
        """Means since the last call; see the plugin's ``metric_names``."""
        return self._metrics.take()

    def get_weights(self) -> Mapping[str, Array]:
        """The policy's parameters and the active statistics."""
        weights = self.parameters.arrays(self._acting_names)
        normalizer = self.statistics.observations
        return weights if normalizer is None else {**weights, **normalizer.weights()}

    def reduce(self, array: Array, op: Literal["sum", "max"]) -> Array:
        """Over the learners; the identity with one."""
        return self.group.reduce(array, op)

    def state_dict(self) -> dict[str, Any]:
        """Parameters, optimizer, statistics and the sums behind the unfinished row of the log."""
        return {
            "parameters": self.parameters.arrays(),
            "optimizer": self.optimizer.state_dict(),
            **self.statistics.state_dict(),
            "metrics": self._metrics.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore. KeyError or ValueError where the state is of another network or configuration."""
        self.parameters.load(state["parameters"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.statistics.load_state_dict(state)
        self._metrics.load_state_dict(state["metrics"])


def _unchanged(rewards: Array) -> Array:
    return rewards
