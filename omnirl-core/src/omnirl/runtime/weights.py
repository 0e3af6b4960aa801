"""Packing: the named arrays of a version, or of a rollout, as one aligned buffer and a layout.

One buffer crosses a process several times faster than a dict of arrays, and one copy freezes a version while the
learner goes on writing its parameters in place. Authors of algorithms never see this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from omnirl.api.algorithm import Policy
from omnirl.api.data import Array, Obs, Rollout
from omnirl.api.errors import PluginError

_ALIGNMENT = 64
_NUMBERS = "biufc"
Entry = tuple[str, str, tuple[int, ...], int]


@dataclass(frozen=True)
class Packed:
    """Named arrays in one uint8 buffer; ``layout`` holds (name, dtype, shape, offset in bytes) of each."""

    layout: tuple[Entry, ...]
    buffer: npt.NDArray[np.uint8]

    def arrays(self) -> dict[str, Array]:
        """The arrays as views of the buffer (read-only where the buffer is)."""
        return {
            name: np.frombuffer(self.buffer, np.dtype(dtype), count=prod(shape), offset=offset).reshape(shape)
            for name, dtype, shape, offset in self.layout
        }


def pack(arrays: Mapping[str, Array], whose: str = "the learner's weights") -> Packed:
    """Copy the arrays into one buffer. Raises PluginError where they are ``whose``, but no named numbers of numpy's."""
    if not isinstance(arrays, Mapping):
        raise PluginError(f"{whose} are a {type(arrays).__name__}, not a mapping of names to numpy arrays")
    layout: list[Entry] = []
    offset = 0
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray | np.generic) or array.dtype.kind not in _NUMBERS:
            kind = f"{array.dtype} array" if isinstance(array, np.ndarray) else type(array).__name__
            raise PluginError(f"{whose}: {name!r} is a {kind}, not a numpy array of numbers")
        layout.append((name, array.dtype.str, array.shape, offset))
        offset += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    buffer = np.empty(offset, np.uint8)
    for (_, _, _, start), array in zip(layout, arrays.values(), strict=True):
        buffer[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return Packed(tuple(layout), buffer)


@dataclass(frozen=True)
class Weights:
    """One version of the weights, frozen."""

    version: int
    packed: Packed


def act_with(policy: Policy, weights: Weights) -> None:
    """Give a policy its weights. Raises PluginError where the learner published other names than the policy takes:
    nothing that a worker's restart could mend."""
    try:
        policy.set_weights(weights.packed.arrays())
    except KeyError as error:
        reason = error.args[0] if error.args else error
        raise PluginError(f"the learner's weights do not fit the policy: {reason}") from error


@dataclass(frozen=True)
class PackedRollout:
    """A rollout as it crosses a process: ``scalars`` are its integer fields."""

    packed: Packed
    scalars: Mapping[str, int]


_SCALARS = ("sampler", "incarnation", "number", "epoch", "version", "env_steps")
_PLAIN = ("first", "action", "reward", "terminated", "truncated", "final_at")


def _put(arrays: dict[str, Array], name: str, value: Obs) -> None:
    if isinstance(value, Mapping):
        arrays.update({f"{name}:{key}": array for key, array in value.items()})
    else:
        arrays[name] = value


def _take(arrays: Mapping[str, Array], name: str) -> Obs:
    if name in arrays:
        return arrays[name]
    prefix = f"{name}:"
    return {key[len(prefix) :]: array for key, array in arrays.items() if key.startswith(prefix)}


def rollout_arrays(rollout: Rollout) -> dict[str, Array]:
    """The arrays of a rollout by name; entries of mappings are named ``"obs:key"``."""
    arrays: dict[str, Array] = {name: getattr(rollout, name) for name in _PLAIN}
    _put(arrays, "obs", rollout.obs)
    _put(arrays, "final_obs", rollout.final_obs)
    arrays.update({f"extras:{key}": array for key, array in rollout.extras.items()})
    return arrays


def pack_rollout(rollout: Rollout) -> PackedRollout:
    """A rollout as one buffer."""
    return PackedRollout(
        pack(rollout_arrays(rollout), "the rollout's arrays"),
        {name: getattr(rollout, name) for name in _SCALARS},
    )


def unpack_rollout(packed: PackedRollout) -> Rollout:
    """The rollout; its arrays are views of the buffer."""
    arrays = packed.packed.arrays()
    extras = {key.partition(":")[2]: array for key, array in arrays.items() if key.startswith("extras:")}
    plain: dict[str, Any] = {name: arrays[name] for name in _PLAIN}
    return Rollout(
        obs=_take(arrays, "obs"),
        final_obs=_take(arrays, "final_obs"),
        extras=extras,
        **plain,
        **dict[str, Any](packed.scalars),
    )


def stamped(rollout: Rollout, *, sampler: int, incarnation: int, epoch: int) -> Rollout:
    """The rollout with what only the worker knows."""
    return replace(rollout, sampler=sampler, incarnation=incarnation, epoch=epoch)


assert set(_SCALARS) | set(_PLAIN) | {"obs", "final_obs", "extras", "state0"} == {
    field.name for field in fields(Rollout)
}, "a new field of Rollout must be packed too"
