"""Arrays that several processes see: one file without a name, mapped into each of them.

The file is unlinked before anybody uses it, so nothing is left over however the processes end.

Letters: B sub-environments; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Mapping

import numpy as np

from omnirl.api.data import Array, Obs, Step
from omnirl.api.specs import ActionSpec, DictSpec, ObservationSpec

_ALIGNMENT = 64
_MEMORY = "/dev/shm"


def memory_file() -> int:
    """The descriptor of an empty file that has no name; in memory where the system has a place for that."""
    folder = _MEMORY if os.path.isdir(_MEMORY) and os.access(_MEMORY, os.W_OK) else None
    descriptor, path = tempfile.mkstemp(prefix="omnirl-", dir=folder)
    os.unlink(path)
    return descriptor


def map_arrays(
    descriptor: int, observation: ObservationSpec, action: ActionSpec, count: int
) -> tuple[Array, Step]:
    """``(actions [B, *act], step)`` of ``count`` environments B in the file, which is made large enough."""
    entries = observation.entries if isinstance(observation, DictSpec) else (("", observation),)
    wanted: list[tuple[tuple[int, ...], str]] = [
        ((count, *action.shape), action.dtype),
        ((count,), "float32"),
        ((count,), "bool"),
        ((count,), "bool"),
        *(((count, *entry.shape), entry.dtype) for _, entry in entries),
    ]
    sizes = [int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in wanted]
    offsets = np.cumsum([0, *(-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes)]).tolist()
    if os.fstat(descriptor).st_size < offsets[-1]:
        os.ftruncate(descriptor, offsets[-1])
    buffer = mmap.mmap(descriptor, offsets[-1])
    arrays = [
        np.frombuffer(buffer, dtype, int(np.prod(shape)), offset).reshape(shape)
        for (shape, dtype), offset in zip(wanted, offsets, strict=False)
    ]
    actions, reward, terminated, truncated, *rest = arrays
    named = {name: array for (name, _), array in zip(entries, rest, strict=True)}
    obs: Obs = named if isinstance(observation, DictSpec) else named[""]
    return actions, Step(obs, reward, terminated, truncated, obs)


def some_of(actions: Array, step: Step, begin: int, end: int) -> tuple[Array, Step]:
    """The same for sub-environments ``begin`` to ``end - 1``, as views."""
    obs, part = step.obs, slice(begin, end)
    rows = {name: array[part] for name, array in obs.items()} if isinstance(obs, Mapping) else obs[part]
    return actions[part], Step(rows, step.reward[part], step.terminated[part], step.truncated[part], rows)
