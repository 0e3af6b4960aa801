"""Proportional prioritized replay: Schaul et al. 2016 (arXiv:1511.05952), section 3.3 and algorithm 1.

A transition is drawn with probability P(i) = p_i^alpha / sum_j p_j^alpha, its priority p_i being |error| + epsilon
as of the last update that learnt from it; before that, the greatest priority that any had. Importance weights
(N P(i))^-beta make up for it; they are divided by the greatest of the batch, so they only ever scale down.

Letters: N transitions of a batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from omnirl.api.algorithm import Clock, MemoryContext
from omnirl.api.data import Array, Feedback, Transitions
from omnirl.api.schedule import Schedule, value_at
from omnirl.api.specs import ActionSpec, ObservationSpec
from omnirl.buffers.draws import uniform_draws
from omnirl.buffers.n_step import Windows
from omnirl.buffers.replay import ReplayMemory, ReplaySettings
from omnirl.buffers.shards import ALONE, gathered, greatest
from omnirl.buffers.sum_tree import SumTree


class PrioritizedReplay(ReplayMemory):
    """A :class:`ReplayMemory` whose batches prefer what the learner was wrong about.

    alpha     exponent of the priorities, 0 (all alike) to 1
    beta      exponent of the importance weights, a schedule
    epsilon   what is added to every |error|, so that no transition is lost for good

    ``Transitions.index`` counts the transitions ever added, so a slot that was written over since a batch was drawn is
    told from its successor, whose priority the feedback of that batch leaves alone.
    """

    def __init__(
        self,
        observation: ObservationSpec,
        action: ActionSpec,
        settings: ReplaySettings,
        context: MemoryContext = ALONE,
        *,
        alpha: float,
        beta: Schedule,
        epsilon: float,
    ) -> None:
        super().__init__(observation, action, settings, context)
        if not (0.0 <= alpha <= 1.0 and epsilon > 0.0):
            raise ValueError(f"alpha must be in [0, 1] and epsilon positive, not {alpha} and {epsilon}")
        self._alpha, self._beta, self._epsilon = alpha, beta, epsilon
        self._tree = SumTree(len(self._rows))  # p^alpha of each slot, 0 where nothing is held
        self._greatest = 1.0  # priority ever, before the exponent
        self._total = 0  # transitions ever added

    def next_batch(self, clock: Clock) -> Transitions:
        """N = batch_size transitions, one from each of N equal parts of the priorities' sum, with their weights.

        Of several learners each gives those that it holds: the sum goes over their trees in the order of the ranks.
        """
        masses, held = self._masses()
        self._check(held)
        total = masses[-1]
        draws = uniform_draws(clock.seed, 0, self._batch_size)
        mass = (np.arange(len(draws)) + draws) * (total / len(draws))
        if len(masses) > 2:
            begin, end = masses[self._context.rank : self._context.rank + 2]
            mass = np.minimum(mass, np.nextafter(total, 0.0))
            mass = mass[(begin <= mass) & (mass < end)] - begin
        slots = self._tree.find(mass) if len(mass) else np.zeros(0, np.int64)
        probability = self._tree.get(slots) / total
        weight = (held * probability) ** -value_at(self._beta, clock)
        # The newest transition in a slot has the greatest number below the total that leads to it.
        numbers = self._total - 1 - (self._total - 1 - slots) % len(self._rows)
        most = float(weight.max(initial=0.0))
        if self._context.world_size > 1:
            most = greatest(self._context, most)
        return self._batch(slots, numbers, (weight / most).astype(np.float32))

    def feedback(self, feedback: Feedback) -> None:
        """Take ``priority`` = |error| [N] of the transitions ``index`` [N], which are this learner's; those that are
        gone, and errors that are not finite, change nothing. All learners call it, or none."""
        known = (feedback.index >= self._total - self._size) & np.isfinite(feedback.priority)
        index = feedback.index[known]
        priority = feedback.priority[known].astype(np.float64) + self._epsilon
        self._tree.set(index % len(self._rows), priority**self._alpha)
        self._greatest = max(self._greatest, float(priority.max(initial=0.0)))
        if self._context.world_size > 1:
            self._greatest = greatest(self._context, self._greatest)

    def _masses(self) -> tuple[list[float], int]:
        """Where each rank's part of the priorities' sum begins, and last the sum; the transitions held by all."""
        if self._context.world_size == 1:
            return [0.0, self._tree.total], self._size
        masses, held = gathered(self._context, self._tree.total, self._size)
        return [0.0, *masses.cumsum().tolist()], int(held.sum())

    def _append(self, windows: Windows) -> int:
        oldest = self._total - self._size
        count = super()._append(windows)
        begin, self._total = self._total, self._total + count
        held_from = self._total - self._size
        gone = np.arange(oldest, held_from)
        gone = gone[gone + len(self._rows) >= self._total]  # and nothing new in their slots
        if len(gone):
            self._tree.set(gone % len(self._rows), 0.0)
        new = np.arange(max(begin, held_from), self._total)
        self._tree.set(new % len(self._rows), self._greatest**self._alpha)
        return count

    def state_dict(self) -> Mapping[str, Any]:
        """That of the replay, with p^alpha of the transitions held, from the oldest on, and the greatest p ever."""
        return {
            **super().state_dict(),
            "priorities": self._tree.get(self._held()),
            "greatest": self._greatest,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Hold what ``state_dict`` gave; with another capacity, as many of the newest as fit."""
        super().load_state_dict(state)
        self._greatest = float(state["greatest"])
        self._total = self._position + len(self._rows)  # any number that leads to the same slots
        priorities = np.asarray(state["priorities"], np.float64)
        self._tree = SumTree(len(self._rows))
        self._tree.set(self._held(), priorities[len(priorities) - self._size :])

    def _held(self) -> Array:
        """The slots in use, from the oldest on."""
        slots: Array = (self._position - self._size + np.arange(self._size)) % len(self._rows)
        return slots
