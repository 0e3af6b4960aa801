"""One replay over several learners: each rank holds the transitions of its samplers, a batch is drawn from all parts.

What ranks must agree on follows from figures that are gathered and from the clock's common seed, so each works it out
by itself. Every rank reduces equally often in every batch, whether it holds anything or not: none waits for another.

Letters: K ranks.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from omnirl.api.algorithm import MemoryContext
from omnirl.api.data import Array
from omnirl.buffers.draws import uniform_draws


def _unchanged(array: Array, op: Literal["sum", "max"]) -> Array:
    return array


ALONE = MemoryContext(rank=0, world_size=1, reduce=_unchanged)
"""The only learner of a run."""


def gathered(context: MemoryContext, *figures: float) -> Array:
    """Each of ``figures`` on every rank, float64 [figures, K]; one reduction."""
    table = np.zeros((len(figures), context.world_size))
    table[:, context.rank] = figures
    return context.reduce(table, "sum")


def greatest(context: MemoryContext, figure: float) -> float:
    """The greatest ``figure`` of all ranks; one reduction."""
    return float(context.reduce(np.array([figure], np.float64), "max")[0])


def parts_of_batch(held: Array, batch_size: int, seed: int) -> Array:
    """How many of a batch's transitions each rank draws, int64 [K], in proportion to what it has ``held`` [K].

    They add up to ``batch_size``. Each is the proportional number rounded up or down by one random number, the same on
    all ranks, so that it is right on average (systematic sampling: Madow & Madow 1944): rounded to the nearest, a
    small part would never be drawn from. All of it is the stream of a rank that there is not.
    """
    borders = held.cumsum() * batch_size / held.sum()
    drawn = np.ceil(borders - uniform_draws(seed, len(held), 1)[0])
    drawn[borders >= batch_size] = batch_size  # the difference may have been rounded
    parts: Array = np.diff(drawn, prepend=0.0).astype(np.int64)
    return parts
