"""Rollouts out of plain lists, numbered so that a wrong observation shows.

Letters: T steps, B sub-environments, K finished episodes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from omnirl.api.data import Array, Rollout


def observation_at(t: int | Array, b: int | Array) -> float | Array:
    """What sub-environment b observes at step t: ``1000 b + t``."""
    return 1000.0 * b + t


def final_observation_at(t: int | Array, b: int | Array) -> float | Array:
    """The final observation of an episode of b whose last step is t: half a step past the row it belongs
    to."""
    return observation_at(t, b) + 1.5


def make_rollout(
    reward: npt.ArrayLike,
    *,
    terminated: Iterable[tuple[int, int]] = (),
    truncated: Iterable[tuple[int, int]] = (),
    start: int = 0,
    sampler: int = 0,
    incarnation: int = 0,
    number: int = 0,
    version: int = 0,
) -> Rollout:
    """A rollout of ``reward`` [T] or [T, B] whose episodes end at the given ``(t, b)``.

    ``obs[t, b]`` is ``[observation_at(start + t, b)]`` and goes on counting past the end of an episode; the
    final observation is another number, so that a learner that reads the row after an end is found out.
    Actions are int64 and count as the steps do, from ``start``.
    """
    rewards = np.array(reward, np.float32)
    rewards = rewards[:, None] if rewards.ndim == 1 else rewards
    length, envs = rewards.shape
    rows, columns = np.arange(start, start + length + 1)[:, None], np.arange(envs)[None, :]
    obs = np.asarray(observation_at(rows, columns), np.float32)[..., None]
    flags = np.zeros((2, length, envs), np.bool_)
    for flag, places in zip(flags, (terminated, truncated), strict=True):
        for t, b in places:
            flag[t, b] = True
    final_at = np.argwhere(flags[0] | flags[1]).astype(np.int64)
    first = np.zeros((length + 1, envs), np.bool_)
    first[0] = start == 0
    first[final_at[:, 0] + 1, final_at[:, 1]] = True
    finals = np.asarray(final_observation_at(start + final_at[:, 0], final_at[:, 1]), np.float32)[:, None]
    return Rollout(
        obs=obs,
        first=first,
        action=np.broadcast_to(rows[:-1], (length, envs)).astype(np.int64),
        reward=rewards,
        terminated=flags[0],
        truncated=flags[1],
        final_obs=finals,
        final_at=final_at,
        sampler=sampler,
        incarnation=incarnation,
        number=number,
        version=version,
    )
