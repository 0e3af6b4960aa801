"""Uniform replay: the memory of value learners that draw all transitions alike (Lin 1992; Mnih et al. 2015).

A transition is one packed row that holds all its fields, so drawing a batch is one gather of N short runs of
bytes instead of one per field; the fields of a batch are views of what was gathered. Of images the row has only the
numbers of the frames, see :mod:`omnirl.buffers.frame_store`.

Letters: N transitions of a batch; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnirl.api.algorithm import Clock, MemoryContext
from omnirl.api.data import Array, Feedback, Obs, Rollout, Transitions
from omnirl.api.errors import CheckpointError
from omnirl.api.specs import ActionSpec, ArraySpec, DictSpec, ObservationSpec
from omnirl.buffers.draws import uniform_draws
from omnirl.buffers.frame_store import FrameStore, frame_bytes, frame_store, numbered
from omnirl.buffers.lifetimes import Lifetimes
from omnirl.buffers.n_step import NStep, Windows
from omnirl.buffers.shards import ALONE, gathered, parts_of_batch


@dataclass(frozen=True)
class ReplaySettings:
    """What a replay holds and hands out, over all learners together.

    capacity       transitions held
    batch_size     transitions of a batch, N
    n_step, gamma  steps of a transition, discount per step
    """

    capacity: int
    batch_size: int
    n_step: int = 1
    gamma: float = 0.99

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= self.capacity:
            text = f"batch_size must be between 1 and the capacity {self.capacity}, not {self.batch_size}"
            raise ValueError(text)


class ReplayMemory:
    """The last transitions, drawn uniformly with replacement.

    ``observation`` and ``action`` are what the environment looks like. With several learners each holds an equal part
    of the capacity, of what its own samplers collected, and gives its part of every batch, see
    :mod:`omnirl.buffers.shards`.

    ``len(memory)`` is the number of transitions held here; with images it may be less than the capacity for good,
    where episodes are short. All memory is reserved at once, as much as ``reserved_bytes`` says.
    """

    def __init__(
        self,
        observation: ObservationSpec,
        action: ActionSpec,
        settings: ReplaySettings,
        context: MemoryContext = ALONE,
    ) -> None:
        capacity = max(1, settings.capacity // context.world_size)
        self._batch_size = settings.batch_size
        self._context = context
        self._n_step = NStep(settings.n_step, settings.gamma)
        self._frames = frame_store(observation, capacity)
        self._lifetimes = None if self._frames is None else Lifetimes(capacity)
        self._dtype = row_dtype(observation, action)
        self._names = _entry_names(observation)
        # Pages of zeros take no memory until they are written, and what pads a row is the same in every run.
        self._rows = np.zeros(capacity, self._dtype)
        self._position = 0  # of the next row to write
        self._written = 0  # rows of the ring that were ever written
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, rollout: Rollout, due: int) -> None:
        """Keep the transitions that ``rollout`` completes; replay has no use for ``due``."""
        if self._frames is not None:
            rollout = self._frames.store(rollout)
        for windows in self._n_step.add(rollout):
            self._append(windows)

    def next_batch(self, clock: Clock) -> Transitions:
        """This learner's N of the batch's transitions, all of them where it is alone: drawn as :func:`uniform_draws`
        says, from the clock's seed and the rank.

        The arrays are strided views of memory that belongs to the caller. Raises RuntimeError while less
        than a batch is held.
        """
        count = self._batch_size
        if self._context.world_size == 1:
            self._check(self._size)
        else:
            held = gathered(self._context, self._size)[0]
            self._check(int(held.sum()))
            count = int(parts_of_batch(held, count, clock.seed)[self._context.rank])
        index = (uniform_draws(clock.seed, self._context.rank, count) * self._size).astype(np.int64)
        if self._size < self._written:  # the oldest of a ring were dropped before their turn
            index = (index + self._position - self._size) % len(self._rows)
        return self._batch(index, index, np.ones(count, np.float32))

    def _check(self, held: int) -> None:
        """RuntimeError while all learners together have ``held`` less than a batch, and none of them is full."""
        if held < min(self._batch_size, len(self._rows)):
            raise RuntimeError(
                f"replay holds {held} transitions, a batch is {self._batch_size}: raise warmup_steps"
            )

    def _batch(self, slots: Array, index: Array, weight: Array) -> Transitions:
        """The transitions in the ring's ``slots`` [N]."""
        rows = self._rows.take(slots)
        return Transitions(
            obs=self._drawn(rows, "obs"),
            action=rows["action"],
            reward=rows["reward"],
            next_obs=self._drawn(rows, "next_obs"),
            discount=rows["discount"],
            index=index,
            weight=weight,
        )

    def feedback(self, feedback: Feedback) -> None:
        """Nothing: every transition stays as likely as any other, whatever the learner made of it."""

    def state_dict(self) -> Mapping[str, Any]:
        """The rows written so far, uint8 [written, row], how many are held, where the next goes, the waiting windows,
        and the frames of images."""
        return {
            "rows": self._bytes()[: self._written].copy(),
            "size": self._size,
            "layout": str(self._dtype.descr),
            "position": self._position,
            "capacity": len(self._rows),
            "n_step": self._n_step.state_dict(),
            "frames": {} if self._frames is None else self._frames.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Hold what ``state_dict`` gave; with another capacity, as many of the newest as fit.

        Raises CheckpointError where the transitions are of other shapes or dtypes.
        """
        if state["layout"] != str(self._dtype.descr):
            raise CheckpointError("the saved replay holds transitions of another environment's shapes")
        rows, position, size = np.asarray(state["rows"]), int(state["position"]), int(state["size"])
        if int(state["capacity"]) != len(self._rows):
            size = min(size, len(self._rows))
            rows = rows[
                (position - size + np.arange(size)) % int(state["capacity"])
            ]  # the newest that fit, in order
            position = size % len(self._rows)
        self._bytes()[: len(rows)] = rows
        self._written, self._size, self._position = len(rows), size, position
        self._n_step.load_state_dict(state["n_step"])
        if self._frames is not None and self._lifetimes is not None:
            self._frames.load_state_dict(state["frames"])
            held = (position - size + np.arange(size)) % len(self._rows)
            fields = (self._observation(self._rows, field) for field in ("obs", "next_obs"))
            self._lifetimes.append(held, self._frames.oldest_of(*fields)[held], held=0)
            self._size = self._lifetimes.remaining(position, size, self._frames.oldest)

    def _append(self, windows: Windows) -> int:
        """Write ``windows`` into the ring, over the oldest rows; those go too whose frames were written over.

        Returns how many there were.
        """
        if self._frames is not None and self._lifetimes is not None:
            windows = self._living(windows, self._frames, self._lifetimes)
        capacity, count = len(self._rows), len(windows.reward)
        begin = max(0, count - capacity)  # rows that this same call would write over
        self._position = (self._position + begin) % capacity
        while begin < count:
            run = min(count - begin, capacity - self._position)
            part = slice(begin, begin + run)
            target = self._rows[self._position : self._position + run]
            self._put(target, "obs", windows.obs, part)
            self._put(target, "next_obs", windows.next_obs, part)
            target["action"] = windows.action[part]
            target["reward"] = windows.reward[part]
            target["discount"] = windows.discount[part]
            self._position = (self._position + run) % capacity
            begin += run
        self._size = min(capacity, self._size + count)
        self._written = min(capacity, self._written + count)
        if self._frames is not None and self._lifetimes is not None:
            self._size = self._lifetimes.remaining(self._position, self._size, self._frames.oldest)
        return count

    def _living(self, windows: Windows, frames: FrameStore, lifetimes: Lifetimes) -> Windows:
        """The windows whose frames are within reach, noted for the rows that they are about to fill."""
        oldest = frames.oldest_of(windows.obs, windows.next_obs)
        alive = np.flatnonzero(oldest >= frames.reach)[-len(self._rows) :]
        if len(alive) < len(oldest):
            windows = Windows(
                _picked(windows.obs, alive),
                windows.action[alive],
                windows.reward[alive],
                _picked(windows.next_obs, alive),
                windows.discount[alive],
            )
        rows = (self._position + np.arange(len(alive))) % len(self._rows)
        held = min(self._size, len(self._rows) - len(alive))
        lifetimes.append(rows, oldest[alive], held)
        return windows

    def _put(self, target: Array, field: str, obs: Obs, part: slice) -> None:
        if isinstance(obs, Mapping):
            for name in self._names or obs:
                target[f"{field}/{name}"] = obs[name][part]
        else:
            target[field] = obs[part]

    def _drawn(self, rows: Array, field: str) -> Obs:
        """The observations of drawn rows, images put together from their frames."""
        obs = self._observation(rows, field)
        return obs if self._frames is None else self._frames.take(obs)

    def _observation(self, rows: Array, field: str) -> Obs:
        if self._names is None:
            return rows[field]
        return {name: rows[f"{field}/{name}"] for name in self._names}

    def _bytes(self) -> Array:
        """The ring as uint8 [capacity, row]."""
        return self._rows.view(np.uint8).reshape(len(self._rows), self._dtype.itemsize)


def row_dtype(observation: ObservationSpec, action: ActionSpec) -> np.dtype[np.void]:
    """The packed row of one transition; every field is aligned, so a batch's views serve as they are."""
    observation = numbered(observation)
    fields: list[tuple[str, str, tuple[int, ...]]] = []
    for field in ("obs", "next_obs"):
        if isinstance(observation, DictSpec):
            fields += [(f"{field}/{name}", spec.dtype, spec.shape) for name, spec in observation.entries]
        else:
            fields.append((field, observation.dtype, observation.shape))
    fields += [("action", action.dtype, action.shape), ("reward", "float32", ()), ("discount", "float32", ())]
    return np.dtype(fields, align=True)


def reserved_bytes(observation: ObservationSpec, action: ActionSpec, capacity: int) -> int:
    """The bytes that a :class:`ReplayMemory` of ``capacity`` reserves."""
    frames = frame_bytes(observation, capacity)
    lifetimes = np.dtype(np.int64).itemsize if frames else 0
    return frames + capacity * (row_dtype(observation, action).itemsize + lifetimes)


def _picked(obs: Obs, index: Array) -> Obs:
    return {name: array[index] for name, array in obs.items()} if isinstance(obs, Mapping) else obs[index]


def _entry_names(observation: ArraySpec | DictSpec) -> tuple[str, ...] | None:
    return tuple(name for name, _ in observation.entries) if isinstance(observation, DictSpec) else None
