"""The learner of the DQN family: one gradient step per update on a batch of transitions, and a target
network.

An algorithm is this class with its own network and ``loss``; nothing here knows which it is. The loop over
updates never waits for the device: whether a step is taken is decided on the tensor.

Letters: N transitions of a batch, Z outputs of the network for one action.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from omnirl.algorithms.shared.acting.action_masks import action_mask
from omnirl.algorithms.shared.acting.observations import network_input, network_observation
from omnirl.algorithms.shared.off_policy.batch_part import part_of_batch, sum_over_ranks
from omnirl.algorithms.shared.off_policy.targets import follow_
from omnirl.algorithms.shared.off_policy.transition_tensors import (
    TransitionTensors,
    action_tensor,
    transition_tensors,
)
from omnirl.algorithms.shared.training.flat_optimizers import FlatAdam
from omnirl.algorithms.shared.training.flat_parameters import FlatParameters, clip_gradient_
from omnirl.algorithms.shared.training.likelihoods import ArrayOrTensor, namespace
from omnirl.algorithms.shared.training.metric_sums import MetricSums
from omnirl.algorithms.shared.training.process_group import process_group
from omnirl.algorithms.shared.values.config import ValueConfig
from omnirl.algorithms.shared.values.losses import NO_LOSS, LossFunction, ValueLoss
from omnirl.api import (
    Array,
    ArraySpec,
    Clock,
    DiscreteAction,
    EnvSpec,
    Feedback,
    LearnerContext,
    Rollout,
    Transitions,
    value_at,
)
from omnirl.networks.build import build_network
from omnirl.networks.dueling import DuelingNetwork
from omnirl.networks.features import FeaturesUnderHead
from omnirl.networks.initialization import generator
from omnirl.networks.mlp import MLP
from omnirl.networks.output_gradient import output_gradient

_FIGURES = ("loss", "q_value", "td_error", "grad_norm")


ValueNetwork: TypeAlias = MLP | FeaturesUnderHead | DuelingNetwork
Feedbacks: TypeAlias = Callable[[Transitions, ValueLoss], Feedback]
"""What the memory is told of a batch that was learnt from."""


class TakenRows:
    """Which rows of [N * actions, ...] are those of the actions that were taken; the means of a batch."""

    def __init__(self, num_actions: int) -> None:
        self._num_actions = num_actions
        self._total = 0
        self._first: ArrayOrTensor = np.empty(0, np.int64)
        self.shares: ArrayOrTensor = np.empty(0, np.float32)

    def of(self, action: ArrayOrTensor, total: int) -> ArrayOrTensor:
        """``action`` [N] or [N, 1] -> rows [N]. From then on ``shares`` [N] are 1 / ``total``, the samples of the whole
        batch: a product with them is a mean, in half the time that ``mean`` takes."""
        count = action.shape[0]
        if self._first.shape[0] != count or self._total != total:
            self._total = total
            self._first = np.arange(0, count * self._num_actions, self._num_actions)
            self.shares = np.full(count, 1.0 / total, np.float32)
            if isinstance(action, Tensor):
                self._first = torch.from_numpy(self._first).to(action.device)
                self.shares = torch.from_numpy(self.shares).to(action.device)
        return action.reshape(-1) + self._first


class ValueLearner:
    """See :mod:`omnirl.api.algorithm`.

    ``build`` makes the networks, of ``row`` outputs per action, or of one number where it is None. ``loss`` gives the
    update its aim, ``feedback`` its answer to the memory, if any.
    """

    def __init__(
        self,
        config: ValueConfig,
        spec: EnvSpec,
        context: LearnerContext,
        *,
        loss: LossFunction,
        build: Callable[[Any, ArraySpec, int], ValueNetwork] = build_network,
        row: int | None = None,
        feedback: Feedbacks | None = None,
    ) -> None:
        assert isinstance(spec.action, DiscreteAction)
        torch.set_num_threads(context.threads)
        self.device = torch.device(context.device)
        self._settings, self._epsilon = config.learner, config.policy.epsilon
        self._observation = network_observation(config.network, spec)
        outputs = spec.action.n * (row or 1)
        self.network, self.target_network = (
            build(config.network, self._observation, outputs) for _ in range(2)
        )
        self.network.init_uniform(generator(context.seed))
        self.parameters = FlatParameters(self.network, self.device)
        self._ranks = process_group(context)
        # The seed is the same for all; a class of the user's own may draw its initial values from elsewhere.
        self._ranks.as_first_(self.parameters.values)
        self.target_parameters = FlatParameters(self.target_network, self.device, learned=False)
        self.target_parameters.values.copy_(self.parameters.values)
        self.optimizer = FlatAdam(self.parameters, self._settings.adam_epsilon)
        self._network_gradient = output_gradient(self.network)
        self._action = action_tensor(spec.action, self.device)
        self._rows = TakenRows(spec.action.n)
        self._row = () if row is None else (row,)
        # A minibatch of one number per action is so small that on the CPU what counts is the way to each operation, and
        # numpy's is half of torch's.
        self._in_numpy = row is None and self.device.type == "cpu"
        self._one, self._zero = (torch.tensor(value, device=self.device) for value in (1.0, 0.0))
        self._nothing: tuple[ArrayOrTensor, ...] = (0.0 if self._in_numpy else self._zero,) * (
            len(_FIGURES) - 1
        )
        self._loss, self._feedback = loss, feedback
        self._metrics = MetricSums(_FIGURES, self.device)

    @property
    def nonfinite_in_row(self) -> int:
        """The latest updates in a row that changed nothing, as of the last ``metrics()``."""
        return self._metrics.nonfinite_in_row

    def observe(self, rollout: Rollout) -> None:
        """Nothing is normalised."""

    def learn(self, batch: Transitions, clock: Clock) -> Feedback | None:
        """One gradient step, and the target network where its turn has come."""
        settings, lr = self._settings, value_at(self._settings.lr, clock)
        part = part_of_batch(self._ranks, len(batch.reward))
        if part.size:
            means, result = self._means(batch, part.total)
        else:
            means, result = self._nothing, NO_LOSS
            self.parameters.gradient.zero_()
        means = sum_over_ranks(self._ranks, [self.parameters.gradient], means)
        norm = clip_gradient_(self.parameters.gradient, settings.max_grad_norm)
        figures = (*means, float(norm) if self._in_numpy else norm)
        finite = self._finite(figures[0] + figures[3])
        self.optimizer.step(lr, finite)
        if (clock.update + 1) % settings.target_update_interval == 0:
            follow_(self.target_parameters, self.parameters, finite * settings.tau)
        counts = float(finite) if self._in_numpy else finite
        self._metrics.add(figures, counts, {"lr": lr, "epsilon": value_at(self._epsilon, clock)})
        return None if self._feedback is None else self._feedback(batch, result)

    def _means(self, batch: Transitions, total: int) -> tuple[Sequence[ArrayOrTensor], ValueLoss]:
        """What these transitions add to the means of loss, value and error over a batch of ``total``; what they add to
        the gradient is written into it."""
        arrays = self._arrays(batch)
        outputs = self._answer(self._network_gradient.forward(arrays.obs))
        rows, taken = outputs.reshape(-1, *self._row), self._rows.of(arrays.action, total)
        result = self._loss(arrays, rows[taken], self._online, self._target)
        # The loss of the batch is the mean of weight * loss.
        shares = self._rows.shares
        share = arrays.weight * shares
        d_rows = namespace(rows).zeros_like(rows)
        d_rows[taken] = result.slope * (share[:, None] if self._row else share)
        d_outputs = d_rows.reshape(outputs.shape)
        self._network_gradient.backward(torch.from_numpy(d_outputs) if self._in_numpy else d_outputs)
        return (result.loss.dot(share), result.value.dot(shares), abs(result.error).dot(shares)), result

    def _arrays(self, batch: Transitions) -> TransitionTensors:
        if not self._in_numpy:
            return transition_tensors(batch, self._observation, self._action, self.device)
        obs, next_obs = (
            torch.from_numpy(network_input(rows, self._observation)) for rows in (batch.obs, batch.next_obs)
        )
        given: Any = batch  # numpy's arrays take the place of tensors
        mask: Any = action_mask(batch.next_obs)
        return TransitionTensors(
            obs, given.action, given.reward, next_obs, given.discount, given.weight, mask
        )

    def _answer(self, outputs: Tensor) -> ArrayOrTensor:
        return outputs.numpy() if self._in_numpy else outputs

    def _online(self, obs: Tensor) -> ArrayOrTensor:
        return self._answer(self.network(obs))

    def _target(self, obs: Tensor) -> ArrayOrTensor:
        return self._answer(self.target_network(obs))

    def _finite(self, health: ArrayOrTensor) -> Tensor:
        """1, and 0 where it is infinite or not a number; decided on the tensor."""
        if self._in_numpy:
            return self._one if math.isfinite(health) else self._zero
        finite: Tensor = (health - health).eq(0.0).float()
        return finite

    def metrics(self) -> Mapping[str, float]:
        """Means since the last call; see the plugin's ``metric_names``."""
        return self._metrics.take()

    def get_weights(self) -> Mapping[str, Array]:
        """The online network's parameters."""
        return self.parameters.arrays()

    def reduce(self, array: Array, op: Literal["sum", "max"]) -> Array:
        """The sum or maximum over the learners."""
        return self._ranks.reduce(array, op)

    def state_dict(self) -> dict[str, Any]:
        """Both networks, the optimizer and the sums behind the unfinished row of the log."""
        return {
            "parameters": self.parameters.arrays(),
            "target_parameters": self.target_parameters.arrays(),
            "optimizer": self.optimizer.state_dict(),
            "metrics": self._metrics.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore. KeyError or ValueError where the state is of another network."""
        self.parameters.load(state["parameters"])
        self.target_parameters.load(state["target_parameters"])
        self.optimizer.load_state_dict(state["optimizer"])
        self._metrics.load_state_dict(state["metrics"])
