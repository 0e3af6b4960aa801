"""Single frames of images, stored once; stacks and next observations are put together when a batch is drawn.

A transition of stacked images needs 2 k frames, of which 2 k - 1 belong to its neighbours too. So frames lie in one
ring, numbered in the order of their arrival, and a transition keeps the numbers of the frames that its two
observations are made of. Numbers never mean anything but that frame: episode borders, padding, final observations,
n-step windows and the rollouts of several samplers all come out right because whoever cuts transitions (see
:mod:`omnirl.buffers.n_step`) cuts arrays of numbers as it would cut the images. A rollout that goes on where the last
one of its sampler ended refers back to that one's frames.

A transition goes when the oldest of its frames is written over. Beside the frames of ``capacity`` transitions there
is room for the final frames of one episode per 40 steps; where episodes are shorter, somewhat fewer are held.

Letters: T steps, B sub-environments, K finished episodes, N transitions; k frames of a stack; C, ... one frame's
shape; S slots.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from omnirl.api.data import Array, Obs, Rollout
from omnirl.api.errors import CheckpointError
from omnirl.api.frames import stack_rows
from omnirl.api.specs import ArraySpec, DictSpec, ObservationSpec

_BLOCK = 4096  # frames that are moved at a time


def framed(entry: ArraySpec) -> bool:
    """Whether an entry is stored as frames: images, and whatever is stacked."""
    return entry.layout == "image" or entry.frame_stack > 1


def frame_slots(capacity: int) -> int:
    """S: frames that are stored for ``capacity`` transitions."""
    return capacity + capacity // 40 + 1024


class FrameStore:
    """The frames of the entries of ``observation`` that are :func:`framed`, for ``capacity`` transitions.

    A transition keeps the numbers of its frames in their place, see ``numbered``.
    """

    def __init__(self, observation: ObservationSpec, capacity: int) -> None:
        self._entries = {name: entry for name, entry in _entries(observation) if framed(entry)}
        self._slots = frame_slots(capacity)
        # Untouched pages take no memory until they are written.
        self._frames = {
            name: np.zeros((self._slots, *entry.shape), entry.dtype) for name, entry in self._entries.items()
        }
        self._depth = max(entry.frame_stack for entry in self._entries.values())
        self._written = 0
        self._reach = 0
        # Where a sampler's stream stands: incarnation, number, and the numbers of its last stack [B, depth].
        self._streams: dict[int, tuple[int, int, Array]] = {}

    @property
    def oldest(self) -> int:
        """The number of the oldest frame that is still there."""
        return max(0, self._written - self._slots)

    @property
    def reach(self) -> int:
        """The least number that a new transition may refer to. What a sampler left more than half a store ago is as
        good as gone: a transition with it would take all the younger ones along, soon."""
        return max(self.oldest, self._reach)

    def store(self, rollout: Rollout) -> Rollout:
        """Keep the frames of ``rollout``; the same rollout with their numbers in their place."""
        lead_in = self._lead_in(rollout)
        steps, envs = rollout.reward.shape
        begin = self._written
        count = steps * envs + len(rollout.final_at)
        after = begin + np.arange(steps * envs).reshape(steps, envs)
        finals = begin + steps * envs + np.arange(len(rollout.final_at))
        for name, entry in self._entries.items():
            frames, ends = _entry(rollout.obs, name), _entry(rollout.final_obs, name)
            self._write(name, begin, frames[entry.frame_stack :])
            self._write(name, begin + steps * envs, ends[None])
        self._reach, self._written = begin - self._slots // 2, begin + count
        numbers = np.concatenate((lead_in, after))  # of the rows, [depth - 1 + T + 1, B]
        last = numbers[stack_rows(rollout.first, self._depth)[-1], np.arange(envs)[:, None]]
        self._streams[rollout.sampler] = (rollout.incarnation, rollout.number, last)
        changed = {
            name: (numbers[self._depth - entry.frame_stack :, :, None], finals[:, None])
            for name, entry in self._entries.items()
        }
        obs, final_obs = (
            _replaced(old, {name: new[i] for name, new in changed.items()})
            for i, old in enumerate((rollout.obs, rollout.final_obs))
        )
        return dataclasses.replace(rollout, obs=obs, final_obs=final_obs)

    def take(self, obs: Obs) -> Obs:
        """Numbers [N, k] -> the observations that they stand for, new arrays [N, k * C, ...]; others as they are."""
        return _replaced(obs, {name: self._stacks(name, _entry(obs, name)) for name in self._entries})

    def oldest_of(self, *observations: Obs) -> Array:
        """The least number [N] in each row of some observations [N, k]."""
        columns = [_entry(obs, name).min(axis=1) for obs in observations for name in self._entries]
        least: Array = np.minimum.reduce(columns)
        return least

    def state_dict(self) -> dict[str, Any]:
        """The frames written so far, copied, and where each sampler's stream stands."""
        held = min(self._written, self._slots)
        return {
            "written": self._written,
            "frames": {name: frames[:held].copy() for name, frames in self._frames.items()},
            "slots": self._slots,
            "streams": {
                str(sampler): {"incarnation": incarnation, "number": number, "last": last.copy()}
                for sampler, (incarnation, number, last) in self._streams.items()
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Hold what ``state_dict`` gave; of a store of another capacity the newest frames that fit.

        Raises CheckpointError where the frames are of other shapes or dtypes.
        """
        saved: dict[str, Array] = {name: np.asarray(state["frames"].get(name)) for name in self._frames}
        for name, frames in self._frames.items():
            if (saved[name].shape[1:], saved[name].dtype) != (frames.shape[1:], frames.dtype):
                raise CheckpointError("the saved replay holds transitions of another environment's shapes")
        self._written, slots = int(state["written"]), int(state["slots"])
        first = max(0, self._written - min(slots, self._slots))
        for begin in range(first, self._written, _BLOCK):
            numbers = np.arange(begin, min(begin + _BLOCK, self._written))
            for name, frames in self._frames.items():
                frames[numbers % self._slots] = saved[name][numbers % slots]
        self._streams = {
            int(sampler): (int(stream["incarnation"]), int(stream["number"]), np.array(stream["last"]))
            for sampler, stream in state["streams"].items()
        }

    def _lead_in(self, rollout: Rollout) -> Array:
        """The numbers [depth, B] of the lead-in and the first row: those of the stream that the rollout goes on
        with, or of frames that are written now."""
        steps, envs = rollout.reward.shape
        incarnation, number, last = self._streams.pop(rollout.sampler, (-1, -1, np.empty((0, 0), np.int64)))
        if (incarnation, number + 1, len(last)) == (rollout.incarnation, rollout.number, envs):
            oldest = int(last.min())
            kept = oldest >= self._written + steps * envs + len(rollout.final_at) - self._slots
            near = oldest >= self._written - self._slots // 2
            if kept and near and self._goes_on(rollout, last[:, -1]):
                lead_in: Array = last.T
                return lead_in
        begin = self._written
        for name, entry in self._entries.items():
            skipped = (self._depth - entry.frame_stack) * envs  # rows that this entry's stacks do not reach
            self._write(name, begin + skipped, _entry(rollout.obs, name)[: entry.frame_stack])
        self._written += self._depth * envs
        numbers: Array = begin + np.arange(self._depth * envs).reshape(self._depth, envs)
        return numbers

    def _goes_on(self, rollout: Rollout, last: Array) -> bool:
        """Whether the first row is the frame of the last: not where new episodes replaced those that a restart could
        not repeat."""
        return all(
            np.array_equal(
                _entry(rollout.obs, name)[entry.frame_stack - 1], self._stacks(name, last[:, None])
            )
            for name, entry in self._entries.items()
        )

    def _write(self, name: str, number: int, frames: Array) -> None:
        """Put ``frames`` [rows, B, C, ...] into the ring from ``number`` on."""
        ring = self._frames[name]
        flat = frames.reshape(-1, *ring.shape[1:])
        surplus = max(0, len(flat) - self._slots)  # would be written over by the rest
        flat, slot = flat[surplus:], (number + surplus) % self._slots
        head = min(len(flat), self._slots - slot)
        ring[slot : slot + head] = flat[:head]
        ring[: len(flat) - head] = flat[head:]

    def _stacks(self, name: str, numbers: Array) -> Array:
        """Numbers [N, k] -> stacks [N, k * C, ...]."""
        ring = self._frames[name]
        rows, k = numbers.shape
        channels, *rest = ring.shape[1:]
        return ring.take((numbers % self._slots).reshape(-1), axis=0).reshape(rows, k * channels, *rest)


def frame_store(observation: ObservationSpec, capacity: int) -> FrameStore | None:
    """A store where anything in ``observation`` is kept as frames, else None."""
    if any(framed(entry) for _, entry in _entries(observation)):
        return FrameStore(observation, capacity)
    return None


def frame_bytes(observation: ObservationSpec, capacity: int) -> int:
    """The bytes that a :class:`FrameStore` of ``capacity`` reserves."""
    sizes = [
        entry.size * np.dtype(entry.dtype).itemsize for _, entry in _entries(observation) if framed(entry)
    ]
    return frame_slots(capacity) * sum(sizes)


def numbered(observation: ObservationSpec) -> ObservationSpec:
    """The spec of what a transition keeps: frames give way to their numbers, int64 [k]."""
    if isinstance(observation, DictSpec):
        return DictSpec(tuple((name, _numbers(entry)) for name, entry in observation.entries))
    return _numbers(observation)


def _numbers(entry: ArraySpec) -> ArraySpec:
    return ArraySpec((entry.frame_stack,), "int64") if framed(entry) else entry


def _entries(observation: ObservationSpec) -> tuple[tuple[str, ArraySpec], ...]:
    """The entries by name; a single array is named ``""``."""
    return observation.entries if isinstance(observation, DictSpec) else (("", observation),)


def _entry(obs: Obs, name: str) -> Array:
    return obs[name] if isinstance(obs, Mapping) else obs


def _replaced(obs: Obs, entries: Mapping[str, Array]) -> Obs:
    return {**obs, **entries} if isinstance(obs, Mapping) else entries[""]
