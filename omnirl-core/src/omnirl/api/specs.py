"""What an environment looks like to an algorithm: the shapes, dtypes and bounds of observations and actions.

Backends translate their own spaces into these few forms (a Discrete with a start, a 2-D MultiDiscrete or a
MultiBinary is shifted or flattened there), so algorithms know no simulator.

Letters: A action size; ``*obs`` the observation's shape.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class ArraySpec:
    """One observation array of ``shape`` and numpy ``dtype`` (a name such as ``"float32"``).

    layout: ``"vector"`` for flat features, ``"image"`` for ``[C, H, W]``, scaled once, in the network: uint8 from 0
    to 255, or float32 and bool that are used as they are.
    frame_stack: number k of single frames that make one observation. ``shape`` is that of a single frame, which is
    what environments hand out and what is stored; policies and learners get :meth:`stacked`. ValueError where there
    is no axis to stack along.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    layout: str = "vector"
    frame_stack: int = 1

    def __post_init__(self) -> None:
        if self.frame_stack < 1 or (self.frame_stack > 1 and not self.shape):
            raise ValueError(f"frame_stack {self.frame_stack} does not fit the shape {self.shape}")

    @property
    def size(self) -> int:
        """Number of elements of one frame."""
        return int(np.prod(self.shape, dtype=np.int64))

    def stacked(self) -> ArraySpec:
        """What policies and learners see: k frames one after the other along the first axis, the oldest first."""
        if self.frame_stack == 1:
            return self
        return replace(self, shape=(self.frame_stack * self.shape[0], *self.shape[1:]), frame_stack=1)


ACTION_MASK = "action_mask"
"""The reserved entry of a DictSpec: bool ``[n]``, which actions are legal now."""


@dataclass(frozen=True)
class DictSpec:
    """Several named observation arrays; flat: nested names are joined as ``"a/b/0"``.

    The entry ``action_mask`` is reserved: bool ``[n]`` for n discrete actions, or the masks of all positions of a
    multi-discrete action one after the other. It says which actions are legal now and is no input of a network.
    """

    entries: tuple[tuple[str, ArraySpec], ...]

    @property
    def mask(self) -> ArraySpec | None:
        """The spec of the action mask, if there is one."""
        return dict(self.entries).get(ACTION_MASK)

    def inputs(self) -> tuple[tuple[str, ArraySpec], ...]:
        """The entries without the action mask: what there is to see."""
        return tuple(entry for entry in self.entries if entry[0] != ACTION_MASK)

    def stacked(self) -> DictSpec:
        """What policies and learners see: the entries, each :meth:`ArraySpec.stacked`."""
        return DictSpec(tuple((name, entry.stacked()) for name, entry in self.entries))


@dataclass(frozen=True)
class DiscreteAction:
    """One of ``n`` actions, an int64 from 0."""

    n: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one action: a scalar."""
        return ()

    @property
    def dtype(self) -> str:
        """int64."""
        return "int64"


@dataclass(frozen=True)
class MultiDiscreteAction:
    """One int64 from 0 to ``nvec[i] - 1`` per position."""

    nvec: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """``[len(nvec)]``."""
        return (len(self.nvec),)

    @property
    def dtype(self) -> str:
        """int64."""
        return "int64"


@dataclass(frozen=True)
class ContinuousAction:
    """A float32 vector [A] in environment units, between ``low`` and ``high`` (may be infinite)."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """``[A]``."""
        return (len(self.low),)

    @property
    def dtype(self) -> str:
        """float32."""
        return "float32"

    @property
    def bounded(self) -> bool:
        """Whether every bound is finite, and the range between each two as well: that of the least and the greatest
        float32, which stand for no bounds, is not."""
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = self.bounds()
            return bool(np.isfinite(high - low).all())

    def bounds(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """``(low, high)`` as float32 arrays of shape [A]."""
        return np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)


ObservationSpec = ArraySpec | DictSpec
ActionSpec = DiscreteAction | MultiDiscreteAction | ContinuousAction


@dataclass(frozen=True)
class EnvSpec:
    """One environment: its observation, its action and the names that ``aggregate_evaluations`` returns.

    notes: lines about what the backend decided of its own accord, told once when a run starts.
    """

    observation: ObservationSpec
    action: ActionSpec
    eval_metrics: tuple[str, ...] = (
        "return_mean",
        "return_std",
        "return_min",
        "return_max",
        "length_mean",
        "episodes",
    )
    id: str = ""
    notes: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """A JSON form, written into checkpoints and compared when one is loaded."""
        return {"observation": _describe(self.observation), "action": _describe(self.action)}


def _describe(spec: ObservationSpec | ActionSpec) -> dict[str, Any]:
    if isinstance(spec, DictSpec):
        return {"kind": "dict", "entries": {name: _describe(entry) for name, entry in spec.entries}}
    if isinstance(spec, ArraySpec):
        return {
            "kind": "array",
            "shape": list(spec.shape),
            "dtype": spec.dtype,
            "layout": spec.layout,
            "frame_stack": spec.frame_stack,
        }
    if isinstance(spec, DiscreteAction):
        return {"kind": "discrete", "n": spec.n}
    if isinstance(spec, MultiDiscreteAction):
        return {"kind": "multi_discrete", "nvec": list(spec.nvec)}
    return {"kind": "continuous", "low": [repr(v) for v in spec.low], "high": [repr(v) for v in spec.high]}
