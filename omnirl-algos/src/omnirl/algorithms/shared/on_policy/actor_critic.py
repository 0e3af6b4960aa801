"""From rollouts to the samples that minibatches are cut from: one pass of the value network, then GAE.

Letters: T steps, B environments of all rollouts together, K finished episodes, N = T * B samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from omnirl.algorithms.shared.on_policy.returns import explained_variance, gae
from omnirl.algorithms.shared.on_policy.rollout_batch import RolloutBatch

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
    batch: RolloutBatch, *, values: Callable[[Tensor], Tensor], gamma: float, gae_lambda: float
) -> Samples:
    """The samples of ``batch``, in time-major order.

    ``values`` is the value network. Each distinct observation passes it once: [T+1, B] and the final observations.
    """
    inputs, device = batch.inputs, batch.inputs.device
    with torch.no_grad():
        chunk = max(1, _VALUES_PER_PASS // max(1, inputs[0].numel()))
        estimates = torch.cat([values(part) for part in torch.split(inputs, chunk)]).cpu().numpy()
    before, after = batch.values_before_and_after(estimates)
    advantages, returns = gae(
        batch.reward,
        before,
        after,
        batch.terminated,
        batch.truncated,
        gamma=gamma,
        gae_lambda=gae_lambda,
    )
    log_prob, value, advantage, target = (
        torch.tensor(array.reshape(-1)).to(device) for array in (batch.log_prob, before, advantages, returns)
    )
    explained = explained_variance(returns, before)
    observations = inputs[: len(batch)]
    return Samples(observations, batch.action, log_prob, value, advantage, target, explained, batch.mask)
