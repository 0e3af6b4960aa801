"""Dict and Tuple observations, nested as they may be, as the flat DictSpec that algorithms know.

``Dict(a=Tuple(Box, Discrete), b=Box)`` has the entries ``a/0``, ``a/1`` and ``b``, in the space's own order; a Tuple
counts from 0. Each entry is what its space would be alone: a vector, one-hot, or an image. Networks put the vectors
side by side in this order and give each image to convolutions of its own.

The entry ``action_mask`` of the outermost Dict is bool [n], flattened: MultiBinary, or a Box of bool or whole numbers
between 0 and 1.

Letters: n actions; ``*obs`` an entry's shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from omnirl.api.data import Array, Obs
from omnirl.api.specs import ACTION_MASK, ArraySpec, DictSpec, ObservationSpec
from omnirl.envs.gymnasium.images import UNDECLARED, Images, stacked
from omnirl.envs.gymnasium.spaces import UnsupportedSpaceError, array_codec, refuse_empty, short_text

EncodeAny = Callable[[Any, Any], None]
"""``(observation of the environment, row)``: write the one into the other, a row [*obs] or a mapping of them."""
_Entry = tuple[str, ArraySpec]


def observation_codec(
    space: spaces.Space[Any], images: Images = UNDECLARED
) -> tuple[ObservationSpec, EncodeAny]:
    """The spec of any observation space, and how its observations are written into rows of that spec.

    Frames are stacked where the observation is one array, and those of the images of several.

    Writing raises ValueError where an entry is missing, is not the space's, or has another shape.
    """
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        refuse_empty("observation", space)
        spec, write = array_codec(space, images)
        return stacked(spec, images), write
    entries, encode = _composite(space, "", images)
    names = [name for name, _ in entries]
    if not entries:
        raise UnsupportedSpaceError(f"the observation space {short_text(space)} has no entries")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UnsupportedSpaceError(f"two entries of the observation space are called {', '.join(twice)}")
    return DictSpec(tuple(entries)), encode


def allocate(spec: ObservationSpec, leading: tuple[int, ...]) -> Obs:
    """Zeros ``[*leading, *obs]``, a mapping of them for a DictSpec."""
    if isinstance(spec, DictSpec):
        return {name: np.zeros((*leading, *entry.shape), entry.dtype) for name, entry in spec.entries}
    return np.zeros((*leading, *spec.shape), spec.dtype)


def rows(obs: Obs, count: int) -> Iterator[Obs]:
    """The ``count`` rows of ``obs``, as views."""
    for index in range(count):
        yield {name: array[index] for name, array in obs.items()} if isinstance(obs, Mapping) else obs[index]


def _composite(
    space: spaces.Dict | spaces.Tuple[Any], name: str, images: Images
) -> tuple[list[_Entry], EncodeAny]:
    """The entries below ``name``, and how they are written into a mapping of rows."""
    children = dict(space.spaces) if isinstance(space, spaces.Dict) else dict(enumerate(space.spaces))
    entries: list[_Entry] = []
    writers: list[tuple[Any, EncodeAny]] = []
    for key, child in children.items():
        below, write = _child(child, f"{name}/{key}" if name else str(key), images)
        entries += below
        writers.append((key, write))
    what = f"the observation {name!r}" if name else "the observation"

    def check(observation: Any) -> None:
        named = isinstance(observation, Mapping)
        if named is not isinstance(space, spaces.Dict):
            raise ValueError(f"{what} is {type(observation).__name__}, its space is {short_text(space)}")
        given = set(observation) if named else set(range(len(observation)))
        missing, extra = (sorted(map(str, some)) for some in (set(children) - given, given - set(children)))
        told = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has {', '.join(extra)} besides"] * bool(
            extra
        )
        if told:
            raise ValueError(f"{what} {' and '.join(told)}: its space says {', '.join(map(str, children))}")

    def encode(observation: Any, row: Any) -> None:
        if len(observation) != len(writers):
            check(observation)
        try:
            for key, write in writers:
                write(observation[key], row)
        except (KeyError, IndexError, TypeError):
            check(observation)
            raise

    return entries, encode


def _child(space: spaces.Space[Any], name: str, images: Images) -> tuple[list[_Entry], EncodeAny]:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return _composite(space, name, images)
    try:
        spec, encode = _mask_codec(space) if name == ACTION_MASK else array_codec(space, images)
    except UnsupportedSpaceError as error:
        raise UnsupportedSpaceError(f"entry {name!r}: {error}") from error

    def write(value: Any, row: Any) -> None:
        try:
            encode(value, row[name])
        except ValueError as error:
            raise ValueError(f"entry {name!r}: {error}") from error

    return [(name, spec)], write


def _mask_codec(space: spaces.Space[Any]) -> tuple[ArraySpec, Callable[[Any, Array], None]]:
    """A mask may be handed over as bool or as 0 and 1, whichever of the two its space says."""
    whole = isinstance(space, spaces.MultiBinary) or (
        isinstance(space, spaces.Box)
        and space.dtype is not None
        and np.dtype(space.dtype).kind in "biu"
        and bool((space.low >= 0).all() and (space.high <= 1).all())
    )
    if not whole or space.shape is None:
        raise UnsupportedSpaceError(
            f"an action mask is a MultiBinary(n), or a Box of bool or whole numbers in [0, 1], not {short_text(space)}"
        )
    shape = space.shape

    def encode(value: Any, row: Array) -> None:
        mask = np.asarray(value)
        if mask.shape != shape:
            raise ValueError(f"the mask has the shape {mask.shape}, its space says {shape}")
        if mask.dtype.kind not in "biu" or (mask.dtype.kind != "b" and ((mask != 0) & (mask != 1)).any()):
            raise ValueError(f"the mask must be bool, or 0 and 1, not {mask.dtype} such as {mask.flat[0]!r}")
        row[:] = mask.reshape(-1)

    return ArraySpec((int(np.prod(shape)),), "bool"), encode
