"""From rollouts to the samples that minibatches are cut from: one pass of the value network, then GAE.

Letters: T steps, B environments of all rollouts held here, H = T * B samples; N samples of all learners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from omnirl.algorithms.shared.on_policy.returns import explained_variance, gae
from omnirl.algorithms.shared.on_policy.rollout_batch import RolloutBatch
from omnirl.algorithms.shared.on_policy.shards import Shard
from omnirl.api import Array

_VALUES_PER_PASS = 2**24  # input elements of one forward pass, so that images do not fill the memory


@dataclass(frozen=True)
class Samples:
    """The samples of an update that this learner holds, on its device; ``tensors`` are those that minibatches are cut
    from.

    observations [H, ...]; action [H, P | A]; log_prob, values, returns [H]; mask [H, O] bool where the environment
    tells its legal actions. ``advantages`` [N] are those of the samples of all learners.
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
        """H."""
        return len(self.returns)

    def tensors(self) -> tuple[Tensor, ...]:
        """All but the advantages, in the order of the fields; the mask comes last, if there is one."""
        mask = () if self.mask is None else (self.mask,)
        return (self.observations, self.action, self.log_prob, self.values, self.returns, *mask)


def prepare_samples(
    batch: RolloutBatch | None,
    shard: Shard,
    *,
    values: Callable[[Tensor], Tensor],
    gamma: float,
    gae_lambda: float,
    device: torch.device,
) -> Samples:
    """The samples of ``batch``, in time-major order; of no batch, none.

    ``values`` is the value network. Each distinct observation passes it once: [T+1, B] and the final observations.
    """
    estimates = (np.zeros(0, np.float32),) * 3
    if batch is not None:
        estimates = _estimates(batch, values, gamma, gae_lambda)
    all_advantages, all_returns, all_values = shard.gathered(*estimates)
    explained = explained_variance(all_returns, all_values)
    before, advantages, returns = (
        torch.tensor(array).to(device) for array in (estimates[2], all_advantages, estimates[1])
    )
    if batch is None:
        return Samples(before, before, before, before, advantages, returns, explained)
    log_prob = torch.tensor(batch.log_prob.reshape(-1)).to(device)
    observations = batch.inputs[: len(batch)]
    return Samples(observations, batch.action, log_prob, before, advantages, returns, explained, batch.mask)


def _estimates(
    batch: RolloutBatch, values: Callable[[Tensor], Tensor], gamma: float, gae_lambda: float
) -> tuple[Array, Array, Array]:
    """Advantages, returns and values before, [H] each."""
    chunk = max(1, _VALUES_PER_PASS // max(1, batch.inputs[0].numel()))
    with torch.no_grad():
        table = torch.cat([values(part) for part in torch.split(batch.inputs, chunk)]).cpu().numpy()
    before, after = batch.values_before_and_after(table)
    advantages, returns = gae(
        batch.reward,
        before,
        after,
        batch.terminated,
        batch.truncated,
        gamma=gamma,
        gae_lambda=gae_lambda,
    )
    return advantages.reshape(-1), returns.reshape(-1), before.reshape(-1)
