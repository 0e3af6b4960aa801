"""The samples of a batch that are one of several learners', and what their gradients become together.

A batch is one for all learners: each has a part of it, perhaps none, and everything is a mean over the whole. So a
learner divides by the number of all samples, and the sums over the ranks are what one learner with all of them has.

Letters: N samples of the whole batch, n of them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from omnirl.algorithms.shared.training.likelihoods import ArrayOrTensor
from omnirl.algorithms.shared.training.process_group import ProcessGroup


class BatchPart(NamedTuple):
    """``size`` = n samples of ``total`` = N, in the order of the ranks those from ``begin`` on."""

    begin: int
    size: int
    total: int

    @property
    def share(self) -> float:
        """n / N."""
        return self.size / self.total

    def mean(self, values: Tensor) -> Tensor:
        """What these samples add to the mean over the whole batch: the sum of all ``values`` over N per sample."""
        if self.size == self.total:
            return values.mean()
        return values.mean() * self.share

    def normal(self, sets: int, numbers: int, rng: Generator) -> Tensor:
        """Standard normal noise [sets, n, numbers], drawn for the whole batch; all ranks seed ``rng`` alike."""
        noise = torch.randn((sets, self.total, numbers), generator=rng)
        return noise if self.size == self.total else noise[:, self.begin : self.begin + self.size]


def part_of_batch(ranks: ProcessGroup, count: int) -> BatchPart:
    """The part of the learner that has ``count`` samples; one collective."""
    if ranks.size == 1:
        return BatchPart(0, count, count)
    counts = [int(other) for other in ranks.all_gather(np.array(count))]
    return BatchPart(sum(counts[: ranks.rank]), count, sum(counts))


def sum_over_ranks(
    ranks: ProcessGroup, gradients: Sequence[Tensor], figures: Sequence[ArrayOrTensor]
) -> Sequence[ArrayOrTensor]:
    """The sums of ``figures`` (0-dimensional), and into ``gradients`` (flat) theirs; one collective."""
    if ranks.size == 1:
        return figures
    together = torch.cat((*gradients, torch.stack([torch.as_tensor(figure) for figure in figures])))
    ranks.sum_(together)
    end = 0
    for gradient in gradients:
        begin, end = end, end + len(gradient)
        gradient.copy_(together[begin:end])
    totals = together[end:]
    return totals.unbind() if isinstance(figures[0], Tensor) else totals.tolist()
