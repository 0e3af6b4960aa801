"""What crosses a process: frozen structs of numpy arrays, time-major and C-contiguous.

Letters: T steps of a rollout, B parallel environments of one sampler, N transitions, K finished episodes,
A action size; ``*obs`` and ``*act`` are the shapes of the spec; k frames of a stack. T and B are fixed for a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy.typing as npt

from omnirl.api.frames import stacked_finals, stacked_rows

Array: TypeAlias = npt.NDArray[Any]
Obs: TypeAlias = Array | Mapping[str, Array]
"""An observation batch: a Mapping exactly when the spec is a DictSpec."""


@dataclass(frozen=True)
class ActionSample:
    """An exploring action ``[B, *act]`` and what the learner needs beside it, such as ``log_prob`` [B].

    ``state`` is reserved for recurrent policies.
    """

    action: Array
    extras: Mapping[str, Array] = field(default_factory=dict)
    state: Any = None


@dataclass(frozen=True)
class Step:
    """One step of B environments.

    obs [B, *obs]; reward [B] float32; terminated, truncated [B] bool. ``final_obs`` [B, *obs] is needed only where
    an episode ended and may be ``obs`` itself. Rows of ``obs`` whose episode ended are replaced by what
    ``Environment.reset`` returns, which the loop calls before the next step. Arrays may be reused by the
    environment: whoever keeps them copies them.
    """

    obs: Obs
    reward: Array
    terminated: Array
    truncated: Array
    final_obs: Obs


@dataclass(frozen=True)
class Episode:
    """One finished evaluation episode: undiscounted return, number of steps, further figures by name."""

    total_reward: float
    length: int
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Rollout:
    """T steps of B environments; every [T, B] cell is a real transition.

    ============  ==================================================================================
    obs           [k-1 + T+1, B, *obs] single frames; the last row is where the next rollout begins, the first k-1
                  are the lead-in: the frames before row 0, or its episode's first. k is 1 unless the spec stacks
    first         [T+1, B] bool: the row is an episode's first observation
    action        [T, B, *act]
    reward        [T, B] float32
    terminated    [T, B] bool: the episode reached a terminal state (no bootstrap)
    truncated     [T, B] bool: the episode was cut (bootstrap from its final observation)
    final_obs     [K, *obs]: final frames of the episodes that ended in this rollout
    final_at      [K, 2] int64: their (t, b)
    extras        name -> [T, B, ...], from ``ActionSample.extras``
    sampler       index of the sampler; ``incarnation`` counts its restarts; ``number`` its rollouts
    epoch         how often the learner was restored within the process
    version       of the weights that acted
    env_steps     steps requested in the whole run before this rollout
    ============  ==================================================================================
    """

    obs: Obs
    first: Array
    action: Array
    reward: Array
    terminated: Array
    truncated: Array
    final_obs: Obs
    final_at: Array
    extras: Mapping[str, Array] = field(default_factory=dict)
    state0: Any = None
    sampler: int = 0
    incarnation: int = 0
    number: int = 0
    epoch: int = 0
    version: int = 0
    env_steps: int = 0

    @property
    def steps(self) -> int:
        """T * B."""
        return int(self.reward.shape[0] * self.reward.shape[1])

    def observations(self) -> Obs:
        """The observations [T+1, B, *obs] that the policy saw, frames stacked along the first axis of ``*obs``."""
        if isinstance(self.obs, Mapping):
            return {name: stacked_rows(rows, self.first) for name, rows in self.obs.items()}
        return stacked_rows(self.obs, self.first)

    def final_observations(self) -> Obs:
        """The final observations [K, *obs] of the episodes that ended, frames stacked."""
        if isinstance(self.obs, Mapping):
            finals = self.final_obs
            assert isinstance(finals, Mapping)
            return {
                name: stacked_finals(rows, self.first, finals[name], self.final_at)
                for name, rows in self.obs.items()
            }
        assert not isinstance(self.final_obs, Mapping)
        return stacked_finals(self.obs, self.first, self.final_obs, self.final_at)

    def next_obs(self) -> Obs:
        """What each transition led to, [T, B, *obs]: the following row, or the final observation at an end."""
        rows, finals = self.observations(), self.final_observations()
        if isinstance(rows, Mapping):
            assert isinstance(finals, Mapping)
            return {name: self._next(entry, finals[name]) for name, entry in rows.items()}
        assert not isinstance(finals, Mapping)
        return self._next(rows, finals)

    def _next(self, rows: Array, finals: Array) -> Array:
        if len(self.final_at) == 0:
            return rows[1:]
        result: Array = rows[1:].copy()
        result[self.final_at[:, 0], self.final_at[:, 1]] = finals
        return result


@dataclass(frozen=True)
class Transitions:
    """A batch for value learners. ``discount`` is gamma^k for the k steps really in the n-step window, 0 where
    terminated: the target is ``reward + discount * value(next_obs)``.

    obs, next_obs [N, *obs]; action [N, *act]; reward (the n-step sum), discount [N] float32; index [N] int64 (for
    :class:`Feedback`); weight [N] float32 (importance weights, 1 for uniform replay).
    """

    obs: Obs
    action: Array
    reward: Array
    next_obs: Obs
    discount: Array
    index: Array
    weight: Array


@dataclass(frozen=True)
class Feedback:
    """What a learner tells its memory after an update: ``priority`` [N] for the transitions ``index`` [N]."""

    index: Array
    priority: Array
