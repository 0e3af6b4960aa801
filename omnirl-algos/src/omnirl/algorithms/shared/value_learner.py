"""The learner of the DQN family: one gradient step per update on a batch of transitions, and a target
network.

An algorithm is this class with its own network and ``loss``; nothing here knows which it is. The loop over
updates never waits for the device: whether a step is taken is decided on the tensor.

Letters: N transitions of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from omnirl.algorithms.shared.flat_optimizers import FlatAdam
from omnirl.algorithms.shared.flat_parameters import FlatParameters, clip_gradient_
from omnirl.algorithms.shared.metric_sums import MetricSums
from omnirl.algorithms.shared.observations import network_input
from omnirl.algorithms.shared.targets import NextValue, Values, bootstrapped, follow_
from omnirl.api import Array, ArraySpec, Clock, LearnerContext, Rollout, Schedule, Transitions, value_at

_FIGURES = ("loss", "q_value", "td_error", "grad_norm")


class TransitionTensors(NamedTuple):
    """A batch on the learner's device: observations [N, ...], action [N, 1] int64, the others [N] float32."""

    obs: Tensor
    action: Tensor
    reward: Tensor
    next_obs: Tensor
    discount: Tensor
    weight: Tensor


class ValueLoss(NamedTuple):
    """What a batch amounts to, per transition [N]: its loss, its temporal-difference error, its estimated
    value. Only ``loss`` has a gradient."""

    loss: Tensor
    error: Tensor
    value: Tensor


LossFunction = Callable[[TransitionTensors, Values, Values], ValueLoss]
"""``(batch, online network, target network) -> ValueLoss``"""


def temporal_difference_loss(next_value: NextValue, error_loss: Callable[[Tensor], Tensor]) -> LossFunction:
    """``error_loss`` of target - Q(s, a), with the target reward + discount ``next_value``."""

    def loss(batch: TransitionTensors, online: Values, target: Values) -> ValueLoss:
        with torch.no_grad():
            goal = bootstrapped(batch.reward, batch.discount, next_value(batch.next_obs, online, target))
        value = online(batch.obs).gather(1, batch.action).squeeze(1)
        error = goal - value
        return ValueLoss(error_loss(error), error.detach(), value.detach())

    return loss


@dataclass(frozen=True)
class ValueSettings:
    """How the parameters move. ``target_update_interval`` counts updates; ``tau`` is the share taken over
    then."""

    lr: Schedule
    adam_epsilon: float
    max_grad_norm: float | None
    target_update_interval: int
    tau: float


class ValueLearner:
    """See :mod:`omnirl.api.algorithm`.

    ``network`` is initialised; ``target_network``, of the same shapes, begins as its copy. ``host_figures``
    are further metrics, functions of the clock.
    """

    def __init__(
        self,
        observation: ArraySpec,
        network: nn.Module,
        target_network: nn.Module,
        *,
        loss: LossFunction,
        settings: ValueSettings,
        context: LearnerContext,
        host_figures: Callable[[Clock], Mapping[str, float]],
    ) -> None:
        self.device = torch.device(context.device)
        self.network = network
        self.target_network = target_network
        self.parameters = FlatParameters(network, self.device)
        self.target_parameters = FlatParameters(target_network, self.device, learned=False)
        self.target_parameters.values.copy_(self.parameters.values)
        self.optimizer = FlatAdam(self.parameters, settings.adam_epsilon)
        self._observation = observation
        self._loss = loss
        self._settings = settings
        self._host_figures = host_figures
        self._metrics = MetricSums(_FIGURES, self.device)

    @property
    def nonfinite_in_row(self) -> int:
        """The latest updates in a row that changed nothing, as of the last ``metrics()``."""
        return self._metrics.nonfinite_in_row

    def observe(self, rollout: Rollout) -> None:
        """Nothing is normalised."""

    def learn(self, batch: Transitions, clock: Clock) -> None:
        """One gradient step, and the target network where its turn has come."""
        settings, tensors = self._settings, self._tensors(batch)
        lr = value_at(settings.lr, clock)
        result = self._loss(tensors, self.network, self.target_network)
        loss = (result.loss * tensors.weight).mean()
        gradient = self.parameters.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = clip_gradient_(gradient, settings.max_grad_norm)
        loss = loss.detach()
        finite = torch.isfinite(loss + norm).float()
        self.optimizer.step(lr, finite)
        if (clock.update + 1) % settings.target_update_interval == 0:
            follow_(self.target_parameters, self.parameters, finite * settings.tau)
        figures = (loss, result.value.mean(), result.error.abs().mean(), norm)
        self._metrics.add(figures, finite, {"lr": lr, **self._host_figures(clock)})

    def _tensors(self, batch: Transitions) -> TransitionTensors:
        arrays = (
            network_input(batch.obs, self._observation),
            batch.action.reshape(-1, 1),
            batch.reward,
            network_input(batch.next_obs, self._observation),
            batch.discount,
            batch.weight,
        )
        return TransitionTensors(*(torch.from_numpy(array).to(self.device) for array in arrays))

    def metrics(self) -> Mapping[str, float]:
        """Means since the last call; see the plugin's ``metric_names``."""
        return self._metrics.take()

    def get_weights(self) -> Mapping[str, Array]:
        """The online network's parameters."""
        return self.parameters.arrays()

    def reduce(self, array: Array, op: Literal["sum", "max"]) -> Array:
        """The identity: there is one learner."""
        return array

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
