"""What the learners of a run tell each other: sums, maxima, averages of gradients, small tables of figures.

Every learner builds its group from its context. One learner alone is a group too, whose operations give back what they
were given. Several talk through gloo, which needs no GPU. Each operation is collective: all ranks call the same ones
in the same order, those too that hold no sample, else the others wait for them.

Letters: K learners, N rows.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from omnirl.api import Array, LearnerContext, LearnerLostError

PATIENCE_S = 300.0
"""How long an operation waits for the other learners. One that died is noticed at once, by its closed connection."""
_ADDED_UP = (np.float32, np.float64, np.int32, np.int64)


class ProcessGroup(Protocol):
    """The learners of a run, seen from one of them: ``rank`` of ``size``."""

    rank: int
    size: int

    def reduce(self, array: Array, op: Literal["sum", "max"]) -> Array:
        """The sum or maximum over the ranks, of the same shape and type; see ``Learner.reduce``."""

    def sum_(self, tensor: Tensor) -> None:
        """Make ``tensor`` (any float) the sum over the ranks, in place."""

    def as_first_(self, tensor: Tensor) -> None:
        """Make ``tensor`` (any float) what it is on rank 0, in place."""

    def average_(self, tensor: Tensor, count: int) -> int:
        """From the mean over this rank's ``count`` samples to the mean over those of all ranks, in place; their number.

        sum_k n_k g_k / sum_k n_k: what one learner with all the samples would have. The content does not matter where
        ``count`` is 0; without any sample at all the result is 0.
        """

    def all_gather(self, array: Array) -> list[Array]:
        """The arrays of all ranks, in rank order. They must be of one shape and type."""

    def all_gather_rows(self, rows: Array) -> list[Array]:
        """The arrays [N, ...] of all ranks, in rank order; N may differ, and be 0."""

    def close(self) -> None:
        """Leave the group. Learners that still wait for this one get an error."""


def process_group(context: LearnerContext, patience_s: float = PATIENCE_S) -> ProcessGroup:
    """The group of the learner that ``context`` describes.

    Raises LearnerLostError where the others are not there within ``patience_s``, and so does every operation where one
    of them is gone or does not answer for that long.
    """
    if context.world_size == 1:
        return OneLearner()
    if context.rendezvous is None:
        raise ValueError(f"{context.world_size} learners need a rendezvous")
    host, _, port = context.rendezvous.rpartition(":")
    return GlooGroup(context.rank, context.world_size, host.strip("[]"), int(port), patience_s)


class OneLearner:
    """A learner without others."""

    rank, size = 0, 1

    def reduce(self, array: Array, op: Literal["sum", "max"]) -> Array:
        """The array itself."""
        return array

    def sum_(self, tensor: Tensor) -> None:
        """Nothing to add."""

    def as_first_(self, tensor: Tensor) -> None:
        """It is so already."""

    def average_(self, tensor: Tensor, count: int) -> int:
        """The mean is that of all samples already."""
        return count

    def all_gather(self, array: Array) -> list[Array]:
        """The array alone."""
        return [array]

    def all_gather_rows(self, rows: Array) -> list[Array]:
        """The rows alone."""
        return [rows]

    def close(self) -> None:
        """Nothing to leave."""


class GlooGroup:
    """``size`` processes that meet at ``host:port``, where rank 0 listens."""

    def __init__(self, rank: int, size: int, host: str, port: int, patience_s: float) -> None:
        from torch import distributed

        torch_distributed: Any = distributed  # whose stubs miss half of what it has
        gloo = torch_distributed.ProcessGroupGloo
        self.rank, self.size = rank, size
        patience = timedelta(seconds=patience_s)
        with self._telling_who_is_lost():
            # Kept, since the connections of others may still be under way when ours are made.
            self._store: Any = torch_distributed.TCPStore(
                host, port, size, rank == 0, timeout=patience, wait_for_workers=False
            )
            # By itself gloo listens where the host's name points to: often an address that others cannot reach.
            options = gloo._Options()
            options._devices = [gloo.create_device(hostname=_address_towards(host, port))]
            options._timeout = patience
            self._group: Any = gloo(self._store, rank, size, options)

    def reduce(self, array: Array, op: Literal["sum", "max"]) -> Array:
        """A new array. TypeError where its numbers are none that gloo adds up."""
        from torch.distributed import ReduceOp

        result, kind = np.array(array), {"sum": ReduceOp.SUM, "max": ReduceOp.MAX}[op]
        if result.dtype not in _ADDED_UP:
            raise TypeError(f"numbers of type {result.dtype} cannot be reduced over learners")
        with self._telling_who_is_lost():
            self._group.allreduce([torch.from_numpy(result)], kind).wait()
        return result

    def sum_(self, tensor: Tensor) -> None:
        """One collective, on the host."""
        host = tensor.detach().cpu().contiguous()
        with self._telling_who_is_lost():
            self._group.allreduce([host]).wait()
        if host.data_ptr() != tensor.data_ptr():
            tensor.copy_(host)

    def as_first_(self, tensor: Tensor) -> None:
        """One collective: the others add zeros."""
        if self.rank > 0:
            tensor.zero_()
        self.sum_(tensor)

    def average_(self, tensor: Tensor, count: int) -> int:
        """One collective, on the host; the number of samples goes with the sum."""
        together = torch.zeros(tensor.numel() + 1, dtype=tensor.dtype)
        if count:
            together[:-1].copy_(tensor.reshape(-1)).mul_(count)
            together[-1] = count
        self.sum_(together)
        total = int(together[-1])
        tensor.copy_((together[:-1] / max(1, total)).view_as(tensor))
        return total

    def all_gather(self, array: Array) -> list[Array]:
        """One collective; none where there is nothing to tell."""
        own = np.array(array, order="C")
        parts = [np.empty(own.shape, own.dtype) for _ in range(self.size)]
        if own.size:
            into = [torch.from_numpy(part.reshape(-1).view(np.uint8)) for part in parts]
            with self._telling_who_is_lost():
                self._group.allgather([into], [torch.from_numpy(own.reshape(-1).view(np.uint8))]).wait()
        return parts

    def all_gather_rows(self, rows: Array) -> list[Array]:
        """Two collectives: the numbers of rows, then the rows, padded to the most that one has."""
        counts = [int(count) for count in self.all_gather(np.array(len(rows)))]
        padded = np.zeros((max(counts), *rows.shape[1:]), rows.dtype)
        padded[: len(rows)] = rows
        return [part[:count] for part, count in zip(self.all_gather(padded), counts)]

    def close(self) -> None:
        """Close the connections."""
        self._group = self._store = None

    @contextmanager
    def _telling_who_is_lost(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise LearnerLostError(
                f"learner {self.rank} of {self.size} lost another learner: {str(error).splitlines()[0]}"
            ) from error


def _address_towards(host: str, port: int) -> str:
    """This machine's address on the way to ``host``: the loopback's for the loopback. Nothing is sent."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)
        name: str = probe.getsockname()[0]
        return name
