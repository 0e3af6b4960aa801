"""From rollouts to the samples of an on-policy update: one pass of the value network, then GAE.

Letters: T steps, B environments of all rollouts together, K finished episodes, N = T * B samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from omnirl.algorithms.shared.returns import explained_variance, gae
from omnirl.api import Array, Rollout

_VALUES_PER_PASS = 2**24  # input elements of one forward pass, so that images do not fill the memory


@dataclass(frozen=True)
class Samples:
    """The N samples of an update, on the learner's device; ``tensors`` are those that minibatches are cut
    from.

    observations [N, ...]; action [N, P | A]; log_prob, values, advantages, returns [N].
    """

    observations: Tensor
    action: Tensor
    log_prob: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor
    explained_variance: float

    def __len__(self) -> int:
        """N."""
        return len(self.returns)

    def tensors(self) -> tuple[Tensor, ...]:
        """The six tensors in the order of the fields."""
        return (self.observations, self.action, self.log_prob, self.values, self.advantages, self.returns)


def prepare_samples(
    rollouts: Sequence[Rollout],
    *,
    network_input: Callable[[Array], Array],
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
    steps, envs = len(obs) - 1, obs.shape[1]
    rows = network_input(np.concatenate((obs.reshape(-1, *obs.shape[2:]), finals)))
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
    return Samples(inputs[: steps * envs], action, log_prob, value, advantage, target, explained)


def _along_envs(arrays: Sequence[Array]) -> Array:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)


def _joined(rollouts: Sequence[Rollout]) -> tuple[Array, Array, Array]:
    """Observations [T+1, B, *obs], final observations [K, *obs] and their places [K, 2] among all
    environments."""
    observations, finals, places, offset = [], [], [], 0
    for rollout in rollouts:
        obs = rollout.observations()
        assert isinstance(obs, np.ndarray)
        assert isinstance(rollout.final_obs, np.ndarray)
        observations.append(obs)
        finals.append(rollout.final_obs)
        places.append(rollout.final_at + np.array([0, offset]))
        offset += obs.shape[1]
    return _along_envs(observations), np.concatenate(finals), np.concatenate(places)
