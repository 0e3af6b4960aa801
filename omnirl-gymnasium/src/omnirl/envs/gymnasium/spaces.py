"""Translate Gymnasium's spaces of one array into OmniRL's specs, and single values between the two.

=========================  =====================================  =====================================
space                      as an observation                      as an action
=========================  =====================================  =====================================
Box, float                 float32 vector, flattened              ContinuousAction, flattened
Box, uint8, 2 or 3 axes    image ``[C, H, W]``, see ``images``    refused
Box, other integers, bool  float32 vector, flattened              refused
Discrete                   one-hot float32 vector                 DiscreteAction, shifted to 0
MultiDiscrete              one-hot vectors side by side           MultiDiscreteAction, flat, shifted
MultiBinary                float32 vector of 0 and 1              MultiDiscreteAction of twos
Dict, Tuple                several entries (``composite``)        refused
Text, Graph, ...           refused                                refused
=========================  =====================================  =====================================

Letters: B sub-environments; A action size; ``*obs`` the spec's shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from gymnasium import spaces

from omnirl.api.data import Array
from omnirl.api.specs import ActionSpec, ArraySpec, ContinuousAction, DiscreteAction, MultiDiscreteAction
from omnirl.envs.gymnasium.images import UNDECLARED, Images, image_codec, is_image

Encode = Callable[[Any, Array], None]
"""``(observation of the environment, row [*obs])``: write the one into the other."""
Decode = Callable[[Array], Iterable[Any]]
"""``actions [B, *act] -> B actions as the environment takes them``; nothing returned is used again."""


_SUPPORTED = "Box, Discrete, MultiDiscrete and MultiBinary"
_COMPOSED = ", and Dict and Tuple of them"


class UnsupportedSpaceError(ValueError):
    """A space that no spec describes; the text names the space and says why, in one line."""


def array_codec(space: spaces.Space[Any], images: Images = UNDECLARED) -> tuple[ArraySpec, Encode]:
    """The spec of an observation space of one array, and how its observations are written into rows of that spec.

    Writing raises ValueError where an observation has not its space's shape.
    """
    if isinstance(space, spaces.Box):
        return _image(space, images) if is_image(space, images) else _vector(space.shape)
    if isinstance(space, spaces.MultiBinary):
        return _vector(space.shape)
    if isinstance(space, spaces.Discrete):
        return _one_hot(np.array([space.n]), np.array([space.start]))
    if isinstance(space, spaces.MultiDiscrete):
        return _one_hot(space.nvec, space.start)
    raise UnsupportedSpaceError(
        f"the observation space {short_text(space)} is not supported; {_SUPPORTED}{_COMPOSED} are"
    )


def action_codec(space: spaces.Space[Any]) -> tuple[ActionSpec, Decode]:
    """The spec of an action space, and how actions of that spec become the environment's own."""
    refuse_empty("action", space)
    if isinstance(space, spaces.Discrete):
        return DiscreteAction(int(space.n)), _from_start(int(space.start))
    if isinstance(space, spaces.MultiDiscrete):
        nvec = tuple(int(n) for n in space.nvec.reshape(-1))
        return MultiDiscreteAction(nvec), _shifted(space.start, space.shape, _dtype(space))
    if isinstance(space, spaces.MultiBinary):
        twos = (2,) * int(np.prod(space.shape))
        return MultiDiscreteAction(twos), _shifted(
            np.zeros(space.shape, np.int64), space.shape, _dtype(space)
        )
    if isinstance(space, spaces.Box):
        return _box_action(space)
    raise UnsupportedSpaceError(f"the action space {short_text(space)} is not supported; {_SUPPORTED} are")


def refuse_empty(what: str, space: spaces.Space[Any]) -> None:
    """Raise UnsupportedSpaceError for a space of one array without a number in it."""
    if space.shape is not None and 0 in space.shape:
        raise UnsupportedSpaceError(f"the {what} space {short_text(space)} is empty: it has no numbers")


def _vector(shape: tuple[int, ...]) -> tuple[ArraySpec, Encode]:
    flat, ndarray = len(shape) == 1, np.ndarray

    def encode(observation: Any, row: Array) -> None:
        # Called for every step of every sub-environment: the usual case makes no further call.
        if type(observation) is not ndarray or observation.shape != shape:
            observation = _of_shape(observation, shape)
        row[:] = observation if flat else observation.reshape(-1)

    return ArraySpec((int(np.prod(shape)),)), encode


def _of_shape(observation: Any, shape: tuple[int, ...]) -> Array:
    """The observation as an array; assigning one of a wrong shape would broadcast it silently."""
    values = np.asarray(observation)
    if values.shape != shape:
        raise ValueError(f"an observation has the shape {values.shape}, its space says {shape}")
    return values


def _one_hot(nvec: Array, start: Array) -> tuple[ArraySpec, Encode]:
    sizes = nvec.reshape(-1).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    first = np.asarray(start).reshape(-1).astype(np.int64)

    def encode(observation: Any, row: Array) -> None:
        values = np.asarray(observation).reshape(-1) - first
        if values.shape != sizes.shape or (values < 0).any() or (values >= sizes).any():
            raise ValueError(
                f"the observation {observation!r} is outside its space of {nvec.tolist()} values"
            )
        row[:] = 0.0
        row[offsets + values] = 1.0

    return ArraySpec((int(sizes.sum()),)), encode


def _image(space: spaces.Box, images: Images) -> tuple[ArraySpec, Encode]:
    try:
        return image_codec(space, images)
    except ValueError as error:
        raise UnsupportedSpaceError(f"the observation space {short_text(space)} {error}") from error


def _from_start(start: int) -> Decode:
    # Iterating over an array of int64 gives what Discrete.sample gives.
    return (lambda actions: actions + start) if start else (lambda actions: actions)


def _shifted(start: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Decode:
    def decode(actions: Array) -> Iterable[Any]:
        return (actions.reshape(-1, *shape) + start).astype(dtype)

    return decode


def _box_action(space: spaces.Box) -> tuple[ContinuousAction, Decode]:
    dtype = _dtype(space)
    if not np.issubdtype(dtype, np.floating):
        raise UnsupportedSpaceError(
            f"the action space {short_text(space)} is a Box of {dtype}; a Box must be of floats "
            "(whole numbers: Discrete or MultiDiscrete)"
        )
    low, high, shape = space.low, space.high, space.shape

    def decode(actions: Array) -> Iterable[Any]:
        # Cast first: a float32 bound may lie outside the same bound in float64. New arrays every
        # time, because an environment may keep its action or change it in place.
        return np.asarray(np.clip(actions.reshape(-1, *shape).astype(dtype), low, high))

    flat = (tuple(float(value) for value in bound.reshape(-1)) for bound in (low, high))
    return ContinuousAction(*flat), decode


def _dtype(space: spaces.Space[Any]) -> np.dtype[Any]:
    assert space.dtype is not None  # only composite spaces have none
    return np.dtype(space.dtype)


def short_text(space: spaces.Space[Any]) -> str:
    """The space as a message shows it."""
    text = " ".join(str(space).split())
    return text if len(text) <= 80 else text[:77] + "..."
