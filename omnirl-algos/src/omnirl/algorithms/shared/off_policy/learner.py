"""The learner of the actor-critic algorithms with replay: DDPG, TD3, SAC and TQC.

An algorithm is this class with its own networks and ``losses``; nothing here knows which it is. All gradients are
computed from the parameters as they were before the update (as in softlearning and rlkit, the code of SAC's
authors), so that a non-finite number anywhere leaves everything as it was. Every ``delay``-th update also moves the
groups that wait, and the targets (Fujimoto et al. 2018, section 5.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor

from omnirl.algorithms.shared.off_policy.batch_part import BatchPart, part_of_batch, sum_over_ranks
from omnirl.algorithms.shared.off_policy.targets import follow_
from omnirl.algorithms.shared.off_policy.transition_tensors import (
    TransitionTensors,
    action_tensor,
    transition_tensors,
)
from omnirl.algorithms.shared.training.flat_parameters import FlatParameters
from omnirl.algorithms.shared.training.learned_group import LearnedGroup
from omnirl.algorithms.shared.training.metric_sums import MetricSums
from omnirl.algorithms.shared.training.process_group import process_group
from omnirl.api import Array, ArraySpec, Clock, EnvSpec, LearnerContext, Rollout, Transitions


class Losses(NamedTuple):
    """Figures of a batch, 0-dimensional: those of every update, and those of every ``delay``-th."""

    figures: tuple[Tensor, ...]
    waiting_figures: tuple[Tensor, ...] = ()


LossFunction = Callable[[TransitionTensors, BatchPart, Generator, bool], Losses]
"""``(batch, which samples it has, random numbers, whether the waiting groups move) -> Losses``; what is to move has its
gradient written. Both are these samples' share of the whole batch's. The generator is the CPU's."""


@dataclass(frozen=True)
class Groups:
    """What learns, by name: ``critics`` in every update, ``waiting`` in every ``delay``-th; the actor is
    among them. ``targets`` maps a group's name to the parameters of its shapes that follow it by ``tau``."""

    critics: LearnedGroup
    waiting: Mapping[str, LearnedGroup]
    targets: Mapping[str, FlatParameters]
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
        self._ranks = process_group(context)
        for group in self._all.values():
            # The seed is the same for all; a class of the user's own may draw its initial values from elsewhere.
            self._ranks.as_first_(group.parameters.values)
        for name, target in groups.targets.items():
            target.values.copy_(self._all[name].parameters.values)
        self._rng = torch.Generator()
        zero = torch.zeros((), device=self.device)
        self._nothing = Losses((zero,) * len(figures), (zero,) * len(waiting_figures))
        self._metrics = MetricSums((*figures, "grad_norm"), self.device)
        self._waiting_metrics = MetricSums(waiting_figures, self.device)

    @property
    def nonfinite_in_row(self) -> int:
        """The latest updates in a row that changed nothing, as of the last ``metrics()``."""
        return self._metrics.nonfinite_in_row

    def observe(self, rollout: Rollout) -> None:
        """Nothing is normalised."""

    @torch.no_grad()
    def learn(self, batch: Transitions, clock: Clock) -> None:
        """One gradient step of the critics, and where their turn has come of the rest and the targets."""
        groups = self.groups
        moves = (clock.update + 1) % groups.delay == 0
        moving = (groups.critics, *groups.waiting.values()) if moves else (groups.critics,)
        losses = self._summed_losses(batch, clock, moving, moves)
        norms = [group.clip() for group in moving]
        health = torch.stack((*losses.figures, *losses.waiting_figures, *norms)).sum()
        finite = (health - health).eq_(0.0)  # 1, and 0 where it is infinite or not a number
        for group in moving:
            group.step(clock, finite)
        self._metrics.add((*losses.figures, norms[0]), finite, {"lr": groups.waiting["actor"].lr(clock)})
        if moves:
            share = finite * groups.tau
            for name, target in groups.targets.items():
                follow_(target, self._all[name].parameters, share)
            if losses.waiting_figures:
                self._waiting_metrics.add(losses.waiting_figures, finite, {})

    def _summed_losses(
        self, batch: Transitions, clock: Clock, moving: Sequence[LearnedGroup], moves: bool
    ) -> Losses:
        """Those of the whole batch, whose gradients are then in the ``moving`` groups."""
        part = part_of_batch(self._ranks, len(batch.reward))
        if part.size:
            tensors = transition_tensors(batch, self._observation, self._action, self.device)
            losses = self._losses(tensors, part, self._rng.manual_seed(clock.seed % 2**63), moves)
        else:
            losses = self._nothing if moves else Losses(self._nothing.figures)
            for group in moving:
                group.parameters.gradient.zero_()
        if self._ranks.size == 1:
            return losses
        figures = (*losses.figures, *losses.waiting_figures)
        summed = sum_over_ranks(self._ranks, [group.parameters.gradient for group in moving], figures)
        count = len(losses.figures)
        return Losses(tuple(summed[:count]), tuple(summed[count:]))

    def metrics(self) -> Mapping[str, float]:
        """Means since the last call; see the plugin's ``metric_names``."""
        return {**self._waiting_metrics.take(), **self._metrics.take()}

    def get_weights(self) -> Mapping[str, Array]:
        """The actor's parameters."""
        return self._all["actor"].parameters.arrays()

    def reduce(self, array: Array, op: Literal["sum", "max"]) -> Array:
        """The sum or maximum over the learners."""
        return self._ranks.reduce(array, op)

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimizers and the sums behind the unfinished row of the log."""
        return {
            **{name: group.state_dict() for name, group in self._all.items()},
            "targets": {name: target.arrays() for name, target in self.groups.targets.items()},
            "metrics": self._metrics.state_dict(),
            "waiting_metrics": self._waiting_metrics.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore. KeyError or ValueError where the state is of another network."""
        for name, group in self._all.items():
            group.load_state_dict(state[name])
        for name, target in self.groups.targets.items():
            target.load(state["targets"][name])
        self._metrics.load_state_dict(state["metrics"])
        self._waiting_metrics.load_state_dict(state["waiting_metrics"])
