"""Which arrays are images, where their channels are, and how they become ``[C, H, W]``.

======================  =============================  ======================================================
``env.layout``          images are                     channels
======================  =============================  ======================================================
auto                    uint8 of two or three axes     none of two axes; of three the first or the last, which
                                                       has at most 4 entries where the other has more
hwc, chw                every array of three axes      the last, the first axis
======================  =============================  ======================================================

Pixels are stored as they are counted and scaled in the network alone: whole numbers up to 255 as uint8, 0 and 1 as
bool, floats as float32, which must be in [-1, 1] and are not scaled again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from omnirl.api.data import Array
from omnirl.api.specs import ArraySpec, DictSpec, ObservationSpec

Layout = Literal["auto", "hwc", "chw"]
_MOST_NUMBERS = 5_000_000  # of stacked frames: a batch of 128 of them is 2.6 GB
_MOST_CHANNELS = 4  # an axis of more is height or width, where nobody says so


@dataclass(frozen=True)
class Images:
    """What a configuration says of images: ``layout``, and how many frames make one observation."""

    layout: Layout = "auto"
    frame_stack: int = 1


UNDECLARED = Images()
"""What holds where nothing is said."""


def is_image(space: spaces.Box, images: Images) -> bool:
    """Whether the arrays of ``space`` are images."""
    if images.layout == "auto":
        return space.dtype == np.uint8 and len(space.shape) in (2, 3)
    return len(space.shape) == 3


def image_codec(space: spaces.Box, images: Images) -> tuple[ArraySpec, Callable[[Any, Array], None]]:
    """The spec of images, and how one is written into a row [C, H, W].

    Raises ValueError with one line where layout or pixels are unclear. Writing raises it for another shape.
    """
    shape = space.shape
    layout = images.layout if images.layout != "auto" else _inferred(space)
    axes = {"hw": (0, 1), "hwc": (2, 0, 1), "chw": (0, 1, 2)}[layout]
    target = tuple(shape[axis] for axis in axes) if len(shape) == 3 else (1, *shape)

    def encode(observation: Any, row: Array) -> None:
        values = np.asarray(observation)
        if values.shape != shape:
            raise ValueError(f"an observation has the shape {values.shape}, its space says {shape}")
        row[...] = values.transpose(axes)

    return ArraySpec(target, _pixels(space), "image", images.frame_stack), encode


def stacked(spec: ArraySpec, images: Images) -> ArraySpec:
    """A vector's spec with the frames of ``images``."""
    return ArraySpec(spec.shape, spec.dtype, spec.layout, images.frame_stack)


def notes(spec: ObservationSpec, images: Images) -> tuple[str, ...]:
    """A line for each image: what it was taken for, and by whose word."""
    entries = spec.entries if isinstance(spec, DictSpec) else (("", spec),)
    word = "inferred" if images.layout == "auto" else f"env.layout: {images.layout}"
    lines = []
    for name, entry in entries:
        if entry.layout == "image":
            channels, height, width = entry.shape
            text = (
                f"{channels} channel{'s' if channels != 1 else ''} of {height} x {width} {entry.dtype} pixels"
            )
            frames = f", {entry.frame_stack} frames stacked" if entry.frame_stack > 1 else ""
            lines.append(f"images{f' {name}' if name else ''}: {text} ({word}){frames}")
    return tuple(lines)


def mistakes(spec: ObservationSpec, images: Images) -> list[str]:
    """What ``env.layout`` and ``env.frame_stack`` ask for where there is nothing of the kind."""
    entries = spec.entries if isinstance(spec, DictSpec) else (("", spec),)
    lines = []
    if images.layout != "auto" and not any(entry.layout == "image" for _, entry in entries):
        lines.append(
            f"env.layout: {images.layout} is for arrays of three axes, and no observation is one (use auto)"
        )
    if images.frame_stack > 1 and not any(entry.frame_stack > 1 for _, entry in entries):
        lines.append(
            "env.frame_stack: of several observations only images are stacked, and none is one (use 1)"
        )
    numbers = sum(entry.size * entry.frame_stack for _, entry in entries if entry.frame_stack > 1)
    if numbers > _MOST_NUMBERS:
        most = images.frame_stack * _MOST_NUMBERS // numbers
        lines.append(
            f"env.frame_stack: {images.frame_stack} frames make observations of {numbers:,} numbers, which a network "
            f"sees as {4 * numbers / 1e6:,.0f} MB each: use at most {max(1, most)}, or smaller frames (wrappers resize "
            "and grey)"
        )
    return lines


def _inferred(space: spaces.Box) -> Literal["hw", "hwc", "chw"]:
    if len(space.shape) == 2:
        return "hw"
    first, last = space.shape[0] <= _MOST_CHANNELS, space.shape[2] <= _MOST_CHANNELS
    if first == last:
        raise ValueError(
            f"looks like an image of shape {space.shape}, but which axis holds the channels is unclear: set "
            "env.layout to hwc (the last) or chw (the first), or make it flat with the wrapper flatten"
        )
    return "hwc" if last else "chw"


def _pixels(space: spaces.Box) -> str:
    """The dtype in which pixels are stored."""
    kind = np.dtype(space.dtype).kind
    low, high = float(space.low.min()), float(space.high.max())
    if kind == "b" or (kind in "iu" and low >= 0 and high <= 1):
        return "bool"
    if kind in "iu" and low >= 0 and high <= 255:
        return "uint8"
    if kind == "f" and low >= -1 and high <= 1:
        return "float32"
    allowed = "floats in [-1, 1]" if kind == "f" else "whole numbers in [0, 255]"
    raise ValueError(
        f"has {space.dtype} pixels in [{low:g}, {high:g}], and images are {allowed}: change them with a wrapper, or "
        "leave env.layout at auto for flat numbers"
    )
