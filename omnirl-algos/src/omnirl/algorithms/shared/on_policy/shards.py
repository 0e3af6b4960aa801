"""Which samples of an update are whose, where several learners learn from it together.

Samples are numbered as one learner with all the rollouts would have them: rollouts in the order in which they were
requested, side by side, in time-major order. Minibatches are drawn from these numbers, so that they are the same sets
of samples however many learners there are; each learner computes what concerns those that it holds, perhaps none.

Letters: T steps of a rollout, B its environments, N samples of all learners, H those held here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from omnirl.algorithms.shared.training.process_group import ProcessGroup
from omnirl.api import Array, Rollout


class Take(NamedTuple):
    """The samples of this learner among N in some order.

    places   [H], where they are among the N
    own      [H] int64, which they are of those held here
    edges    where each minibatch of them begins, and where the last one ends
    """

    places: Array | slice
    own: Array
    edges: Sequence[int]


class Shard:
    """The samples that this learner holds: all of them where it is alone.

    ``numbers`` [H] int64 for each rank are those of its samples, in the order in which it holds them.
    """

    def __init__(self, group: ProcessGroup, count: int, numbers: Sequence[Array] = ()) -> None:
        self._group, self._numbers, self.count = group, numbers, count

    @property
    def places(self) -> Array | slice:
        """Where the samples held here are among the N."""
        return self._numbers[self._group.rank] if self._numbers else slice(None)

    def take(self, order: Array, size: int) -> Take:
        """Those held here of minibatches of ``size`` samples, cut from all N in the given ``order``."""
        begins = [*range(0, self.count, size), self.count]
        if not self._numbers:
            return Take(slice(None), order, begins)
        held = np.full(self.count, -1, np.int64)
        numbers = self._numbers[self._group.rank]
        held[numbers] = np.arange(len(numbers))
        taken = held[order]
        places = np.flatnonzero(taken >= 0)
        return Take(places, taken[places], np.searchsorted(places, begins).tolist())

    def gathered(self, *figures: Array) -> tuple[Array, ...]:
        """Figures [H] of each learner's samples, all of one type -> those of all samples [N], in the order of their
        numbers. Two collectives."""
        if not self._numbers:
            return figures
        rows = np.stack(figures, 1)
        result = np.empty((len(figures), self.count), rows.dtype)
        for numbers, part in zip(self._numbers, self._group.all_gather_rows(rows)):
            result[:, numbers] = part.T
        return tuple(result)


def shard_of(group: ProcessGroup, rollouts: Sequence[Rollout]) -> Shard:
    """The shard of the learner that holds ``rollouts``, perhaps none. Two collectives, which every rank makes."""
    if group.size == 1:
        return Shard(group, sum(rollout.steps for rollout in rollouts))
    requested = [(r.env_steps, r.sampler, r.number, *r.reward.shape) for r in rollouts]
    tables = group.all_gather_rows(np.array(requested, np.int64).reshape(-1, 5))
    table = np.concatenate(tables)
    ranks = np.repeat(np.arange(group.size), list(map(len, tables)))
    envs = table[:, 4]
    ends = np.empty(len(table), np.int64)  # where, side by side, each rollout ends
    in_order = np.lexsort((table[:, 2], table[:, 1], table[:, 0]))
    ends[in_order] = np.cumsum(envs[in_order])
    steps, width = int(table[:, 3].max(initial=0)), int(envs.sum())
    columns = [
        [np.arange(end - wide, end) for end, wide, owner in zip(ends, envs, ranks) if owner == rank]
        for rank in range(group.size)
    ]
    rows = np.arange(steps)[:, None] * width
    numbers = [(rows + np.concatenate([np.zeros(0, np.int64), *part])).reshape(-1) for part in columns]
    return Shard(group, steps * width, numbers)
