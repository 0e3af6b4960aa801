"""From rollouts to the samples of an on-policy update: one pass of the value network, then GAE.

Letters: T steps, B environments of all rollouts together, K finished episodes, N = T * B samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from omnirl.algorithms.shared.action_masks import action_mask
from omnirl.algorithms.shared.returns import explained_variance, gae
from omnirl.api import Array, Obs, Rollout

_VALUES_PER_PASS = 2**24  # input elements of one forward pass, so that images do not fill the memory


@dataclass(frozen=True)
class Samples:
    """The N samples of an update, on the learner's device; ``tensors`` are those that minibatches are cut
    from.

    observations [N, ...]; action [N, P | A]; log_prob, values, advantages, returns [N]; mask [N, O] bool where the
    environment tells its legal actions.
    """

    observations: Tensor
    action: Tensor
    log_prob: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor
    explained_variance: float
    mask: Tensor | None = None

    def __len__(self) -> int:
        """N."""
        return len(self.returns)

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors in the order of the fields; the mask comes last, if there is one."""
        mask = () if self.mask is None else (self.mask,)
        return (
            self.observations,
            self.action,
            self.log_prob,
            self.values,
            self.advantages,
            self.returns,
            *mask,
        )


def prepare_samples(
    rollouts: Sequence[Rollout],
    *,
    network_input: Callable[[Obs], Array],
    actions: Callable[[Array], Array],
    rewards: Callable[[Array], Array],
    values: Callable[[Tensor], Tensor],
    device: torch.device,
    gamma: float,
    gae_lambda: float,
) -> Samples:
    """The samples of ``rollouts`` (at least one, all of one T), in time-major order.

    ``network_input`` turns observations into rows the network takes; ``actions`` [T, B, *act] into [N, P |
    A]; ``rewards`` normalises; ``values`` is the value network. Each distinct observation passes it once:
    [T+1, B] and the final observations.
    """
    obs, finals, final_at = _joined(rollouts)
    steps, envs = rollouts[0].reward.shape[0], sum(rollout.reward.shape[1] for rollout in rollouts)
    rows = np.concatenate((network_input(obs), network_input(finals)))
    inputs = torch.from_numpy(rows).to(device)
    with torch.no_grad():
        chunk = max(1, _VALUES_PER_PASS // max(1, inputs[0].numel()))
        estimates = torch.cat([values(part) for part in torch.split(inputs, chunk)]).cpu().numpy()

    table = estimates[: (steps + 1) * envs].reshape(steps + 1, envs)
    next_values = table[1:].copy()
    next_values[final_at[:, 0], final_at[:, 1]] = estimates[(steps + 1) * envs :]
    advantages, returns = gae(
        rewards(_along_envs([r.reward for r in rollouts])),
        table[:-1],
        next_values,
        _along_envs([r.terminated for r in rollouts]),
        _along_envs([r.truncated for r in rollouts]),
        gamma=gamma,
        gae_lambda=gae_lambda,
    )
    explained = explained_variance(returns, table[:-1])
    flat = [
        actions(_along_envs([r.action for r in rollouts])),
        _along_envs([r.extras["log_prob"] for r in rollouts]).reshape(-1),
        table[:-1].reshape(-1),
        advantages.reshape(-1),
        returns.reshape(-1),
    ]
    action, log_prob, value, advantage, target = (torch.tensor(array).to(device) for array in flat)
    legal = action_mask(obs)
    mask = None if legal is None else torch.tensor(legal[:-1].reshape(steps * envs, -1)).to(device)
    return Samples(inputs[: steps * envs], action, log_prob, value, advantage, target, explained, mask)


def _along_envs(arrays: Sequence[Array]) -> Array:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)


def _joined(rollouts: Sequence[Rollout]) -> tuple[Obs, Obs, Array]:
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
