"""n-step transitions out of rollouts.

The transition that begins at step t sums the rewards of a window of k <= n steps (Sutton & Barto 2018,
chapter 7; Hessel et al. 2018, section 3, R_t^(n))::

    reward   = sum_{i<k} gamma^i r_{t+i}
    discount = gamma^k, or 0 where the window's last step terminated
    target   = reward + discount * value(next_obs),   next_obs = s_{t+k}

A window ends early where the episode does; k is then what was really summed, so gamma^k, never gamma^n. A
window that reaches past the rollout waits for the sampler's next one. It can go on only in the same stream:
same sampler, same incarnation, number + 1, and in the same episode: after a restart that could not repeat the
last one, a new one begins in its place. Otherwise the waiting windows end where they are, with the last observation
known.

Letters: T steps, B sub-environments, P waiting steps (at most n - 1), L = P + T, N transitions; ``*obs``,
``*act`` the spec's shapes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnirl.api.data import Array, Obs, Rollout


@dataclass(frozen=True)
class Windows:
    """Finished windows: obs, next_obs [N, *obs]; action [N, *act]; reward, discount [N] float32."""

    obs: Obs
    action: Array
    reward: Array
    next_obs: Obs
    discount: Array


@dataclass(frozen=True)
class _Steps:
    """Consecutive steps of one sampler, [L, B, ...]. ``open``: the window is not handed out yet."""

    obs: Obs
    action: Array
    reward: Array
    next_obs: Obs
    terminated: Array
    truncated: Array
    open: Array


@dataclass
class _Stream:
    """Where a sampler's stream stands: the steps of its waiting windows, and the rollout they came from."""

    incarnation: int
    number: int
    steps: _Steps


class NStep:
    """Cuts the streams of all samplers into windows of ``n`` steps, discounted by ``gamma`` per step."""

    def __init__(self, n: int, gamma: float) -> None:
        if n < 1:
            raise ValueError(f"n must be at least 1, not {n}")
        self._n = n
        # In double precision: the powers and sums are rounded once, when stored.
        self._powers = gamma ** np.arange(n + 1, dtype=np.float64)
        self._streams: dict[int, _Stream] = {}

    def add(self, rollout: Rollout) -> list[Windows]:
        """The windows that ``rollout`` finishes, in order of their first steps, in one or two blocks.

        Two where the sampler's stream broke off: first the windows that ended there.
        """
        steps = _Steps(
            _cut(rollout.observations(), slice(0, len(rollout.reward))),
            rollout.action,
            rollout.reward,
            rollout.next_obs(),
            rollout.terminated,
            rollout.truncated & ~rollout.terminated,
            np.ones(rollout.reward.shape, np.bool_),
        )
        if self._n == 1:
            return [self._windows(steps, flush=False)]
        finished = []
        stream = self._streams.pop(rollout.sampler, None)
        if stream is not None:
            if (stream.incarnation, stream.number + 1) == (rollout.incarnation, rollout.number):
                last = stream.steps
                last.truncated[-1] |= rollout.first[0] & ~last.terminated[-1]
                steps = _join(last, steps)
            else:
                finished.append(self._windows(stream.steps, flush=True))
        finished.append(self._windows(steps, flush=False))
        self._streams[rollout.sampler] = _Stream(rollout.incarnation, rollout.number, self._waiting(steps))
        return finished

    def state_dict(self) -> Mapping[str, Any]:
        """The waiting steps of every sampler, by its number as text; arrays are copied."""
        return {
            str(sampler): {
                "incarnation": stream.incarnation,
                "number": stream.number,
                **{name: _copied(value) for name, value in vars(stream.steps).items()},
            }
            for sampler, stream in self._streams.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state_dict`` gave."""
        self._streams = {}
        for sampler, entry in state.items():
            steps: dict[str, Any] = {
                field.name: _copied(entry[field.name]) for field in dataclasses.fields(_Steps)
            }
            self._streams[int(sampler)] = _Stream(
                int(entry["incarnation"]), int(entry["number"]), _Steps(**steps)
            )

    def _spans(self, steps: _Steps) -> tuple[Array, Array, Array]:
        """Of the window that begins at each step, [L, B]: its reward, its length k, whether it has ended."""
        total, envs = steps.reward.shape
        ends = steps.terminated | steps.truncated
        reward = np.zeros((total, envs), np.float64)
        length = np.zeros((total, envs), np.int64)
        going = np.ones((total, envs), np.bool_)
        for k in range(min(self._n, total)):
            covered = total - k  # windows beginning later know no step k
            now = going[:covered]
            reward[:covered] += now * (self._powers[k] * steps.reward[k:].astype(np.float64))
            length[:covered] += now
            now &= ~ends[k:]
        return reward, length, ~going

    def _windows(self, steps: _Steps, flush: bool) -> Windows:
        """The finished windows that are still open; all of the open ones with ``flush``."""
        reward, length, ended = self._spans(steps)
        chosen = steps.open if flush else steps.open & (ended | (length == self._n))
        # From here on steps are numbered t * B + b.
        begin = np.flatnonzero(chosen)
        k = length.reshape(-1)[begin]
        last = begin + (k - 1) * chosen.shape[1]
        discount = np.where(steps.terminated.reshape(-1)[last], 0.0, self._powers[k])
        return Windows(
            obs=_pick(steps.obs, begin),
            action=_pick_rows(steps.action, begin),
            reward=reward.reshape(-1)[begin].astype(np.float32),
            next_obs=_pick(steps.next_obs, last),
            discount=discount.astype(np.float32),
        )

    def _waiting(self, steps: _Steps) -> _Steps:
        """The last n - 1 steps, copied; those whose windows have ended are no longer open."""
        keep = slice(max(0, len(steps.reward) - (self._n - 1)), None)
        copies: dict[str, Any] = {name: _copied(_cut(value, keep)) for name, value in vars(steps).items()}
        tail = _Steps(**copies)
        return dataclasses.replace(tail, open=tail.open & ~self._spans(tail)[2])


def _cut(obs: Obs, rows: slice) -> Obs:
    return {name: array[rows] for name, array in obs.items()} if isinstance(obs, Mapping) else obs[rows]


def _copied(obs: Obs) -> Obs:
    return (
        {name: np.array(array) for name, array in obs.items()} if isinstance(obs, Mapping) else np.array(obs)
    )


def _pick(obs: Obs, index: Array) -> Obs:
    """Rows ``index`` [N] of ``obs`` [L, B, *obs] with the first two axes taken as one."""
    if isinstance(obs, Mapping):
        return {name: _pick_rows(array, index) for name, array in obs.items()}
    return _pick_rows(obs, index)


def _pick_rows(array: Array, index: Array) -> Array:
    return array.reshape(-1, *array.shape[2:]).take(index, axis=0)


def _join(before: _Steps, after: _Steps) -> _Steps:
    """The steps of ``before`` and then those of ``after``."""
    joined: dict[str, Any] = {}
    for name, head in vars(before).items():
        tail = getattr(after, name)
        if isinstance(head, Mapping):
            joined[name] = {key: np.concatenate((array, tail[key])) for key, array in head.items()}
        else:
            joined[name] = np.concatenate((head, tail))
    return _Steps(**joined)
