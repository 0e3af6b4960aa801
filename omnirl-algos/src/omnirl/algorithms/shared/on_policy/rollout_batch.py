"""The rollouts of an update side by side, as an on-policy learner takes them.

Letters: T steps, B environments of all rollouts together, K finished episodes, N = T * B samples in time-major order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from omnirl.api import Array, Obs, Rollout


@dataclass(frozen=True)
class RolloutBatch:
    """On the learner's device: ``inputs`` [(T + 1) * B + K, ...], all observations and then the final ones, of which
    the first N are those that were acted on; ``action`` [N, P | A]; ``mask`` [N, O] bool where the environment tells
    its legal actions. On the host, [T, B]: ``log_prob`` of the policy that acted, ``reward``, ``terminated``,
    ``truncated``; and ``final_at`` [K, 2], where episodes ended."""

    inputs: Tensor
    action: Tensor
    mask: Tensor | None
    log_prob: Array
    reward: Array
    terminated: Array
    truncated: Array
    final_at: Array

    def __len__(self) -> int:
        """N."""
        return self.reward.size

    def values_before_and_after(self, estimates: Array) -> tuple[Array, Array]:
        """From a value for each input [(T + 1) * B + K] to those of the state before and of the true successor, [T, B]
        each: of the episode's final observation where it ended."""
        steps, envs = self.reward.shape
        table = estimates[: (steps + 1) * envs].reshape(steps + 1, envs)
        after = table[1:].copy()
        after[self.final_at[:, 0], self.final_at[:, 1]] = estimates[(steps + 1) * envs :]
        return table[:-1], after


def join_rollouts(
    rollouts: Sequence[Rollout],
    *,
    network_input: Callable[[Obs], Array],
    action_mask: Callable[[Obs], Array | None],
    actions: Callable[[Array], Array],
    rewards: Callable[[Array], Array],
    device: torch.device,
) -> RolloutBatch:
    """The batch of ``rollouts``: at least one, all of one T.

    ``network_input`` turns observations into rows the network takes; ``action_mask`` finds the mask among them;
    ``actions`` turns [T, B, *act] into [N, P | A]; ``rewards`` normalises.
    """
    obs, finals, final_at = _observations(rollouts)
    reward = rewards(_along_envs([r.reward for r in rollouts]))
    rows = np.concatenate((network_input(obs), network_input(finals)))
    legal = action_mask(obs)
    return RolloutBatch(
        inputs=torch.from_numpy(rows).to(device),
        action=torch.tensor(actions(_along_envs([r.action for r in rollouts]))).to(device),
        mask=None if legal is None else torch.tensor(legal[:-1].reshape(reward.size, -1)).to(device),
        log_prob=_along_envs([r.extras["log_prob"] for r in rollouts]),
        reward=reward,
        terminated=_along_envs([r.terminated for r in rollouts]),
        truncated=_along_envs([r.truncated for r in rollouts]),
        final_at=final_at,
    )


def _along_envs(arrays: Sequence[Array]) -> Array:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)


def _observations(rollouts: Sequence[Rollout]) -> tuple[Obs, Obs, Array]:
    """Observations [T+1, B, *obs], final observations [K, *obs] and their places [K, 2] among all
    environments."""
    observations, finals, places, offset = [], [], [], 0
    for rollout in rollouts:
        observations.append(rollout.observations())
        finals.append(rollout.final_observations())
        places.append(rollout.final_at + np.array([0, offset]))
        offset += rollout.reward.shape[1]
    return _concatenated(observations, 1), _concatenated(finals, 0), np.concatenate(places)


def _concatenated(parts: Sequence[Obs], axis: int) -> Obs:
    """The parts one after the other, entry by entry; a single one is not copied."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Mapping):
        return {name: np.concatenate([part[name] for part in parts], axis) for name in parts[0]}
    return np.concatenate(cast(Sequence[Array], parts), axis)
