"""Dictionaries of observations as rows of one array, which is what networks take. Imports no torch.

The vectors stand side by side in the order of the spec, float32. Where there are images too, a row is bytes: the
vectors first and then the pixels of each image, unscaled, and the network takes them apart again. So samples are
gathered, sent to a device and cut into minibatches as one array, whatever is in it.

Letters: N rows; V numbers of all vectors together; ``*obs`` an entry's shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from omnirl.api import Array, ArraySpec, DictSpec

_ALIGNMENT = 4  # bytes: a float32 may be read in place wherever an entry begins
_Entries = tuple[tuple[str, ArraySpec], ...]


@dataclass(frozen=True)
class JoinedSpec(ArraySpec):
    """The rows of a DictSpec without its action mask: float32 [V], or uint8 [bytes] where there are images.

    ``layout`` is ``"vector"`` or ``"joined"``.
    """

    vectors: _Entries = ()
    images: _Entries = ()

    @property
    def vector_size(self) -> int:
        """V."""
        return sum(entry.size for _, entry in self.vectors)

    def entries(self) -> DictSpec:
        """The entries as they are seen one by one."""
        return DictSpec((*self.vectors, *self.images))

    def offsets(self) -> list[int]:
        """Where each image begins in a row of bytes, and last the row's length."""
        offsets = [4 * self.vector_size]
        for _, entry in self.images:
            end = offsets[-1] + entry.size * np.dtype(entry.dtype).itemsize
            offsets.append(-(-end // _ALIGNMENT) * _ALIGNMENT)
        return offsets

    def join(self, obs: Mapping[str, Array]) -> Array:
        """Entries [..., *obs] -> a new array [N, V] or [N, bytes]. KeyError where one is missing."""
        columns = [obs[name].reshape(-1, entry.size) for name, entry in self.vectors]
        if not self.images:
            return np.concatenate(columns, axis=1, dtype=np.float32)
        *begins, width = self.offsets()
        name, entry = self.images[0]
        count = obs[name].size // entry.size
        rows = np.zeros((count, width), np.uint8)
        if columns:
            np.concatenate(columns, axis=1, out=self.vectors_of(rows))
        for begin, (name, entry) in zip(begins, self.images):
            pixels = np.ascontiguousarray(obs[name], entry.dtype).reshape(count, entry.size).view(np.uint8)
            rows[:, begin : begin + pixels.shape[1]] = pixels
        return rows

    def vectors_of(self, rows: Array) -> Array:
        """The vectors of ``rows``, a view float32 [N, V]."""
        return rows[:, : 4 * self.vector_size].view(np.float32) if self.images else rows


def joined(spec: DictSpec) -> JoinedSpec:
    """How the entries of ``spec`` become rows."""
    entries = spec.inputs()
    vectors = tuple(item for item in entries if item[1].layout != "image")
    images = tuple(item for item in entries if item[1].layout == "image")
    size = JoinedSpec((0,), vectors=vectors, images=images)
    if not images:
        return JoinedSpec((size.vector_size,), vectors=vectors)
    return JoinedSpec((size.offsets()[-1],), "uint8", "joined", vectors=vectors, images=images)
