"""Trees of arrays, as states and weights are: compare them bit for bit, look inside, and send them through a file."""

from __future__ import annotations

import dataclasses
import math
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from omnirl.runtime import checkpoint

_SCALARS = (bool, int, float, str, type(None), np.generic)


def assert_same(found: Any, expected: Any, where: str) -> None:
    """Raise AssertionError, naming the place, unless the trees are equal bit for bit, NaN equal to NaN."""
    if isinstance(expected, Mapping):
        assert isinstance(found, Mapping), f"{where} is {type(found).__name__}, not a mapping"
        assert set(found) == set(expected), f"{where} has {sorted(found)}, not {sorted(expected)}"
        for name, value in expected.items():
            assert_same(found[name], value, f"{where}[{name!r}]")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), f"{where} has {len(found)} entries, not {len(expected)}"
        for i, value in enumerate(expected):
            assert_same(found[i], value, f"{where}[{i}]")
    else:
        a, b = np.asarray(found), np.asarray(expected)
        assert a.shape == b.shape, f"{where} has shape {a.shape}, not {b.shape}"
        assert a.dtype == b.dtype, f"{where} is {a.dtype}, not {b.dtype}"
        floats = a.dtype.kind == "f"
        assert np.array_equal(a, b, equal_nan=floats), f"{where} differs: {_shown(a)}, not {_shown(b)}"


def same(found: Any, expected: Any) -> bool:
    """Whether :func:`assert_same` would pass."""
    try:
        assert_same(found, expected, "")
    except AssertionError:
        return False
    return True


def assert_plain(tree: Any, where: str) -> None:
    """Raise AssertionError unless ``tree`` is what a checkpoint can hold: nested dicts and lists, with string
    keys, of numpy arrays without objects and of JSON scalars."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            assert isinstance(name, str), f"{where} has the key {name!r}, which is no string"
            assert_plain(value, f"{where}[{name!r}]")
    elif isinstance(tree, list | tuple):
        for i, value in enumerate(tree):
            assert_plain(value, f"{where}[{i}]")
    elif isinstance(tree, np.ndarray):
        assert not tree.dtype.hasobject, f"{where} is an array of objects"
    else:
        assert isinstance(tree, _SCALARS), f"{where} is {type(tree).__name__}, not an array or a JSON scalar"


def through_a_checkpoint(tree: Mapping[str, Any]) -> dict[str, Any]:
    """What a run reads back after it saved ``tree``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / checkpoint.CURRENT
        checkpoint.write(path, {}, tree)
        return checkpoint.read(path)[1]


def copied(tree: Any) -> Any:
    """The same tree, sharing no array."""
    if isinstance(tree, Mapping):
        return {name: copied(value) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [copied(value) for value in tree]
    return tree.copy() if isinstance(tree, np.ndarray) else tree


def read_only(value: Any) -> Any:
    """A copy whose arrays refuse to be written, as those that come out of Ray."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {f.name: read_only(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **changes)
    if isinstance(value, Mapping):
        return {name: read_only(item) for name, item in value.items()}
    if not isinstance(value, np.ndarray):
        return value
    array = value.copy()
    array.flags.writeable = False
    return array


def nonfinite(tree: Any, where: str) -> Iterator[str]:
    """The places of NaN and infinity."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from nonfinite(value, f"{where}[{name!r}]")
    elif isinstance(tree, np.ndarray):
        if tree.dtype.kind == "f" and not np.isfinite(tree).all():
            yield where
    elif isinstance(tree, float) and not math.isfinite(tree):
        yield where


def _shown(array: Any) -> str:
    return str(array) if array.size <= 4 else f"an array from {array.ravel()[0]} on"
