"""Storage of observations, whether they are one array or a mapping of arrays, behind one set of functions.

Letters: T rows, B sub-environments; ``*obs`` the observation's shape.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from omnirl.api.data import Array, Obs
from omnirl.api.environment import Environment


def allocate(leading: tuple[int, ...], like: Obs) -> Obs:
    """Uninitialised storage ``[*leading, *obs]`` for observations such as ``like`` [*obs]."""
    if isinstance(like, Mapping):
        return {
            name: np.empty(leading + np.shape(entry), np.asarray(entry).dtype) for name, entry in like.items()
        }
    like = np.asarray(like)
    return np.empty(leading + like.shape, like.dtype)


def read(store: Obs, index: Any) -> Obs:
    """``store[index]``: a view for an integer, a copy for an array of integers."""
    if isinstance(store, Mapping):
        return {name: array[index] for name, array in store.items()}
    return cast(Array, store[index])


def write(store: Obs, index: Any, value: Obs) -> None:
    """``store[index] = value``: values are copied."""
    if isinstance(store, Mapping):
        # Only a mapping of the same names fits; a missing one raises KeyError by name.
        for name, array in store.items():
            array[index] = cast(Mapping[str, Array], value)[name]
    else:
        store[index] = value


def reset_all(environment: Environment, seed: Callable[[int], int]) -> Obs:
    """Begin an episode of every sub-environment i from ``seed(i)``; the copied rows [B, *obs]."""
    row = copy(environment.reset(0, seed(0)))
    obs = allocate((environment.num_envs,), row)
    write(obs, 0, row)
    for i in range(1, environment.num_envs):
        write(obs, i, environment.reset(i, seed(i)))
    return obs


def copy(obs: Obs) -> Obs:
    """A copy that shares no memory."""
    if isinstance(obs, Mapping):
        return {name: np.array(array) for name, array in obs.items()}
    return np.array(obs, copy=True)


def concatenate(parts: Sequence[Obs], empty_like: Obs) -> Obs:
    """The parts ``[k_i, *obs]`` one after the other; ``[0, *obs]`` if there are none."""
    if not parts:
        return read(empty_like, slice(0, 0))
    if len(parts) == 1:
        return parts[0]
    if isinstance(empty_like, Mapping):
        mappings = cast(Sequence[Mapping[str, Array]], parts)
        return {name: np.concatenate([part[name] for part in mappings]) for name in empty_like}
    return np.concatenate(cast(Sequence[Array], parts))


def digest(obs: Obs) -> Array:
    """SHA-256 of one observation [*obs], its dtype and its shape, as uint8 [32]."""
    entries = obs.items() if isinstance(obs, Mapping) else [("", obs)]
    total = hashlib.sha256()
    for name, entry in sorted(entries):
        array = np.ascontiguousarray(entry)
        total.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        total.update(array.tobytes())
    result: Array = np.frombuffer(total.digest(), np.uint8).copy()
    return result
