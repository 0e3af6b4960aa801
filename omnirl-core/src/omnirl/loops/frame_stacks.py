"""The stacks of frames that policies act on while an environment hands out single frames.

Loops that know the observation's spec make one :class:`FrameStacks` where anything in it is stacked; without it
observations are used as they are. A stack begins as k times the first frame of its episode.

Letters: T steps, B sub-environments; k frames of a stack; ``*obs`` the shape of one frame, C, ...
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from omnirl.api.data import Array, Obs
from omnirl.api.specs import ArraySpec, DictSpec, ObservationSpec


class FrameStacks:
    """The latest k frames of B sub-environments, for one array or several by name.

    Raises ValueError where an environment's frames have not the spec's shape: they would be broadcast silently.
    """

    def __init__(self, observation: ObservationSpec, num_envs: int) -> None:
        named = isinstance(observation, DictSpec)
        entries = dict(observation.entries) if isinstance(observation, DictSpec) else {"": observation}
        self._stacks = {
            name: np.zeros((num_envs, entry.frame_stack, *entry.shape), entry.dtype)
            for name, entry in entries.items()
        }
        views = {
            name: self._stacks[name].reshape(num_envs, *entry.stacked().shape)
            for name, entry in entries.items()
        }
        self.observations: Obs = views if named else views[""]
        """What policies see now, [B, k * C, ...]: the same arrays for ever, overwritten by every push."""

    def fill(self, rows: Obs) -> None:
        """Every sub-environment begins an episode with its row of ``rows`` [B, *obs]."""
        for frames, stack in self._pairs(rows, 0):
            stack[:] = frames[:, None]

    def begin(self, index: int, row: Obs) -> None:
        """Sub-environment ``index`` begins an episode with ``row`` [*obs]."""
        for frame, stack in self._pairs(row, 1):
            stack[index] = frame

    def push(self, rows: Obs) -> None:
        """Take the newest frames [B, *obs]; the oldest of each stack go."""
        for frames, stack in self._pairs(rows, 0):
            stack[:, :-1] = stack[:, 1:]
            stack[:, -1] = frames

    def allocate(self, rows: int) -> tuple[Obs, Obs]:
        """Storage for a rollout: ``(all of it [k - 1 + rows, B, *obs], the rows after the lead-in)``; the lead-in is
        what precedes the newest frames."""
        whole, after = {}, {}
        for name, stack in self._stacks.items():
            envs, k, *shape = stack.shape
            whole[name] = np.empty((k - 1 + rows, envs, *shape), stack.dtype)
            whole[name][: k - 1] = stack[:, :-1].swapaxes(0, 1)
            after[name] = whole[name][k - 1 :]
        return (whole, after) if isinstance(self.observations, Mapping) else (whole[""], after[""])

    def _pairs(self, obs: Obs, leading: int) -> list[tuple[Array, Array]]:
        """Each entry of ``obs`` beside its stack; ``leading`` axes of the stack have no part in a row."""
        named = obs if isinstance(obs, Mapping) else {"": obs}
        pairs = []
        for name, stack in self._stacks.items():
            frames = np.asarray(named[name])
            expected = stack.shape[2:] if leading else (len(stack), *stack.shape[2:])
            if frames.shape != expected:
                raise ValueError(f"frames of shape {frames.shape} came where {expected} are stacked")
            pairs.append((frames, stack))
        return pairs


def frame_stacks(observation: ObservationSpec | None, num_envs: int) -> FrameStacks | None:
    """Stacks where anything in ``observation`` is stacked, else None."""
    if observation is None:
        return None
    entries = observation.entries if isinstance(observation, DictSpec) else (("", observation),)
    stacked = any(isinstance(entry, ArraySpec) and entry.frame_stack > 1 for _, entry in entries)
    return FrameStacks(observation, num_envs) if stacked else None
