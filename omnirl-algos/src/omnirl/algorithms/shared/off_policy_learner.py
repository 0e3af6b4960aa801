"""The learner of the actor-critic algorithms with replay: DDPG, TD3, SAC and TQC.

An algorithm is this class with its own networks and ``losses``; nothing here knows which it is. All losses are
computed from the parameters as they were before the update (as in softlearning and rlkit, the code of SAC's
authors), so one ``backward`` serves all, and a non-finite number anywhere leaves everything as it was. Every
``delay``-th update also moves the groups that wait, and the targets (Fujimoto et al. 2018, section 5.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor, nn

from omnirl.algorithms.shared.flat_parameters import FlatParameters
from omnirl.algorithms.shared.learned_group import LearnedGroup
from omnirl.algorithms.shared.metric_sums import MetricSums
from omnirl.algorithms.shared.targets import follow_
from omnirl.algorithms.shared.transition_tensors import (
    TransitionTensors,
    action_tensor,
    transition_tensors,
)
from omnirl.api import Array, ArraySpec, Clock, EnvSpec, LearnerContext, Rollout, Transitions


class Losses(NamedTuple):
    """What a batch amounts to. ``total`` has the gradients of all groups that move; ``figures`` of every
    update and ``waiting_figures`` of every ``delay``-th are 0-dimensional without a gradient."""

    total: Tensor
    figures: tuple[Tensor, ...]
    waiting_figures: tuple[Tensor, ...] = ()


LossFunction = Callable[[TransitionTensors, Generator, bool], Losses]
"""``(batch, random numbers, whether the waiting groups move) -> Losses``; the generator is the CPU's."""


@dataclass(frozen=True)
class Groups:
    """What learns, by name: ``critics`` in every update, ``waiting`` in every ``delay``-th; the actor is
    among them. ``targets`` maps a group's name to a network of the same shapes that follows it by ``tau``."""

    critics: LearnedGroup
    waiting: Mapping[str, LearnedGroup]
    targets: Mapping[str, nn.Module]
    tau: float
    delay: int = 1

    def all(self) -> dict[str, LearnedGroup]:
        """Every group by name."""
        return {"critics": self.critics, **self.waiting}


class OffPolicyLearner:
    """See :mod:`omnirl.api.algorithm`.

    ``figures`` and ``waiting_figures`` name those of the losses; beside them stand ``grad_norm`` (of the
    critics) and ``lr`` (of the actor).
    """

    def __init__(
        self,
        spec: EnvSpec,
        observation: ArraySpec,
        groups: Groups,
        *,
        losses: LossFunction,
        figures: Sequence[str],
        waiting_figures: Sequence[str],
        context: LearnerContext,
    ) -> None:
        self.device = torch.device(context.device)
        self.groups = groups
        self._observation = observation
        self._action = action_tensor(spec.action, self.device)
        self._losses = losses
        self._all = groups.all()
        self._targets = {
            name: FlatParameters(network, self.device, learned=False)
            for name, network in groups.targets.items()
        }
        for name, target in self._targets.items():
            target.values.copy_(self._all[name].parameters.values)
        self._rng = torch.Generator()
        self._metrics = MetricSums((*figures, "grad_norm"), self.device)
        self._waiting_metrics = MetricSums(waiting_figures, self.device)

    @property
    def nonfinite_in_row(self) -> int:
        """The latest updates in a row that changed nothing, as of the last ``metrics()``."""
        return self._metrics.nonfinite_in_row

    def observe(self, rollout: Rollout) -> None:
        """Nothing is normalised."""

    def learn(self, batch: Transitions, clock: Clock) -> None:
        """One gradient step of the critics, and where their turn has come of the rest and the targets."""
        groups = self.groups
        moves = (clock.update + 1) % groups.delay == 0
        moving = (groups.critics, *groups.waiting.values()) if moves else (groups.critics,)
        tensors = transition_tensors(batch, self._observation, self._action, self.device)
        losses = self._losses(tensors, self._rng.manual_seed(clock.seed % 2**63), moves)
        for group in moving:
            group.zero_gradient()
        losses.total.backward()  # type: ignore[no-untyped-call]
        norms = [group.clip() for group in moving]
        finite = torch.isfinite(torch.stack((losses.total.detach(), *norms)).sum()).float()
        for group in moving:
            group.step(clock, finite)
        self._metrics.add((*losses.figures, norms[0]), finite, {"lr": groups.waiting["actor"].lr(clock)})
        if moves:
            share = finite * groups.tau
            for name, target in self._targets.items():
                follow_(target, self._all[name].parameters, share)
            if losses.waiting_figures:
                self._waiting_metrics.add(losses.waiting_figures, finite, {})

    def metrics(self) -> Mapping[str, float]:
        """Means since the last call; see the plugin's ``metric_names``."""
        return {**self._waiting_metrics.take(), **self._metrics.take()}

    def get_weights(self) -> Mapping[str, Array]:
        """The actor's parameters."""
        return self._all["actor"].parameters.arrays()

    def reduce(self, array: Array, op: Literal["sum", "max"]) -> Array:
        """The identity: there is one learner."""
        return array

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimizers and the sums behind the unfinished row of the log."""
        return {
            **{name: group.state_dict() for name, group in self._all.items()},
            "targets": {name: target.arrays() for name, target in self._targets.items()},
            "metrics": self._metrics.state_dict(),
            "waiting_metrics": self._waiting_metrics.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore. KeyError or ValueError where the state is of another network."""
        for name, group in self._all.items():
            group.load_state_dict(state[name])
        for name, target in self._targets.items():
            target.load(state["targets"][name])
        self._metrics.load_state_dict(state["metrics"])
        self._waiting_metrics.load_state_dict(state["waiting_metrics"])
