"""Stacks of frames out of single ones: which frames make the observation of each step.

A stack of k frames is the step's own and the k - 1 before it, of the same episode; where the episode is younger, its
first frame takes the place of those that are missing (Mnih et al. 2015 stack 4). Frames are stored once, after the k -
1 *lead-in* rows that the first stacks of a rollout reach back to.

Letters: T steps, B environments, K finished episodes; k frames of a stack; ``*obs`` the shape of one frame.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def stack_rows(first: npt.NDArray[np.bool_], k: int) -> npt.NDArray[np.int64]:
    """The rows of ``[k - 1 + T + 1, B, *obs]`` that make each observation, oldest first: [T+1, B, k].

    ``first`` [T+1, B] marks the first rows of episodes. The lead-in must be padded already.
    """
    row = np.arange(len(first))[:, None]
    # Where the episode of each row begins, in rows after the lead-in; the lead-in's first row where it is older.
    begin = np.maximum.accumulate(np.where(first, row, 1 - k), axis=0)
    wanted = row[..., None] + np.arange(1 - k, 1)
    rows: npt.NDArray[np.int64] = np.maximum(wanted, begin[..., None]) + (k - 1)
    return rows


def stacked_rows(frames: npt.NDArray[Any], first: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Frames ``[k - 1 + T + 1, B, *obs]`` -> observations [T+1, B, k * C, ...], where ``*obs`` is C, ..."""
    total, envs, *shape = frames.shape
    k = total - len(first) + 1
    if k == 1:
        return frames
    index = stack_rows(first, k) * envs + np.arange(envs)[:, None]
    stacks = frames.reshape(-1, *shape).take(index.reshape(-1), axis=0)
    result: npt.NDArray[Any] = stacks.reshape(len(first), envs, k * shape[0], *shape[1:])
    return result


def stacked_finals(
    frames: npt.NDArray[Any],
    first: npt.NDArray[np.bool_],
    finals: npt.NDArray[Any],
    places: npt.NDArray[np.int64],
) -> npt.NDArray[Any]:
    """Final frames [K, *obs] after the steps ``places`` [K, 2] (t, b) -> final observations [K, k * C, ...]."""
    k = len(frames) - len(first) + 1
    if k == 1:
        return finals
    t, b = places[:, 0], places[:, 1]
    before = frames[stack_rows(first, k)[t, b, 1:], b[:, None]]
    stacks = np.concatenate((before, finals[:, None]), axis=1)
    return stacks.reshape(len(finals), k * finals.shape[1], *finals.shape[2:])
