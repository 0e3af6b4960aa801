"""PPO's update: epochs of minibatches over the samples of one rollout per sampler.

Schulman et al. 2017 (arXiv:1707.06347), with the details of Huang et al. 2022, "The 37 implementation
details of proximal policy optimization".

Letters: N samples of an update, M of a minibatch, of those that this learner holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from omnirl.algorithms.ppo.config import Config, LearnerConfig
from omnirl.algorithms.shared.on_policy import losses
from omnirl.algorithms.shared.on_policy.actor_critic import Samples, prepare_samples
from omnirl.algorithms.shared.on_policy.learner import OnPolicyLearner
from omnirl.algorithms.shared.on_policy.rollout_batch import RolloutBatch
from omnirl.algorithms.shared.on_policy.shards import Shard, shard_of
from omnirl.algorithms.shared.training.flat_optimizers import FlatAdam
from omnirl.algorithms.shared.training.flat_parameters import clip_gradient_
from omnirl.algorithms.shared.training.likelihoods import ArrayOrTensor
from omnirl.algorithms.shared.training.torch_masks import legal_logits
from omnirl.api import Array, Clock, EnvSpec, LearnerContext, Rollout, value_at

_FIGURES = ("policy_loss", "value_loss", "entropy", "grad_norm", "approx_kl", "clip_fraction")


class Learner(OnPolicyLearner):
    """See :mod:`omnirl.algorithms.shared.on_policy.learner`."""

    config: LearnerConfig

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        super().__init__(
            config,
            spec,
            context,
            optimizer=partial(FlatAdam, epsilon=config.learner.adam_epsilon),
            figures=_FIGURES,
            update=self._update,
        )
        self._finite = torch.ones((), device=self.device)

    def _samples(self, rollouts: Sequence[Rollout]) -> Samples:
        return self._prepared(self._joined(rollouts), shard_of(self.group, rollouts))

    def _prepared(self, batch: RolloutBatch | None, shard: Shard) -> Samples:
        return prepare_samples(
            batch,
            shard,
            values=self.network.values,
            gamma=self.config.gamma,
            gae_lambda=self.config.gae_lambda,
            device=self.device,
        )

    def _update(self, batch: RolloutBatch | None, shard: Shard, clock: Clock) -> None:
        config, samples = self.config, self._prepared(batch, shard)
        lr, clip, ent_coef = (value_at(s, clock) for s in (config.lr, config.clip, config.ent_coef))
        step = partial(self._step, lr=lr, clip=clip, ent_coef=ent_coef)
        rng = np.random.default_rng(clock.seed)
        state = (self.parameters.values, *self.optimizer.tensors())
        before = [tensor.clone() for tensor in state]
        # Every gradient is written over, but not the gaps between them, where a NaN would stay for ever.
        self.parameters.gradient.zero_()

        terms: list[tuple[ArrayOrTensor, ...]] = []
        norms: list[Tensor] = []
        for _ in range(config.epochs):
            begun = len(terms)
            # A non-finite number is no surprise here: it is looked for at the end.
            with np.errstate(all="ignore"):
                for minibatch in self._minibatches(samples, shard, rng.permutation(shard.count)):
                    of_samples, norm = step(minibatch)
                    terms.append(of_samples)
                    norms.append(norm)
            # The one wait for the device, once per epoch and only where it was asked for.
            if config.target_kl is not None:
                kl = _kl(_side_by_side(terms[begun:])[3])
                self.group.average_(kl, len(samples))
                if float(kl) > config.target_kl:
                    break

        figures = _side_by_side(terms)
        # The log ratios of the last epoch say how far the update went from the policy that acted.
        moved = figures[3, figures.shape[1] - len(samples) :]
        clipped = (moved.expm1().abs() > clip).float().mean()
        means = torch.stack((*figures[:3].mean(1).unbind(), _kl(moved), clipped))
        self.group.average_(means, len(samples))
        norm = torch.stack(norms).mean()
        finite = torch.isfinite(means[:3].sum() + norm).float()
        # A non-finite minibatch spoils all that follow it, so the update is undone as a whole.
        for tensor, old in zip(state, before):
            tensor.copy_(torch.where(finite > 0, tensor, old))
        host = {"explained_variance": samples.explained_variance, "lr": lr}
        self._metrics.add((*means[:3].unbind(), norm, *means[3:].unbind()), finite, host)

    def _minibatches(
        self, samples: Samples, shard: Shard, order: Array
    ) -> Iterator[tuple[ArrayOrTensor, ...]]:
        """The samples held here of each minibatch, perhaps none: observations as a tensor, the rest as ``_plain`` gives
        it. ``order`` [N] is that of the samples of all learners."""
        size = min(self.config.minibatch_size, shard.count)
        take = shard.take(order, size)
        own, everyone = (torch.from_numpy(places).to(self.device) for places in (take.own, order))
        obs, *rest = (tensor.index_select(0, own) for tensor in samples.tensors())
        advantages = samples.advantages.index_select(0, everyone)
        if self.config.normalize_advantages:
            advantages = losses.standardize_minibatches(advantages, size)
        arrays = [obs, *map(self._plain, (advantages[take.places], *rest))]
        for begin, end in pairwise(take.edges):
            yield tuple(array[begin:end] for array in arrays)

    def _step(
        self, minibatch: tuple[ArrayOrTensor, ...], *, lr: float, clip: float, ent_coef: float
    ) -> tuple[tuple[ArrayOrTensor, ...], Tensor]:
        """One gradient step of all learners on a minibatch, of which M samples are held here: their policy loss, value
        loss, entropy and log ratio, each [M], and the norm of the gradient."""
        count = len(minibatch[0])
        terms = self._terms(minibatch, clip=clip, ent_coef=ent_coef) if count else (minibatch[1],) * 4
        self.group.average_(self.parameters.gradient, count)
        norm = clip_gradient_(self.parameters.gradient, self.config.max_grad_norm)
        self.optimizer.step(lr, self._finite)
        return terms, norm

    def _terms(
        self, minibatch: tuple[ArrayOrTensor, ...], *, clip: float, ent_coef: float
    ) -> tuple[ArrayOrTensor, ...]:
        """Write the gradient of the mean loss of M samples, at least one, and give its terms, each [M]."""
        obs, advantages, action, old_log_prob, old_values, returns, *mask = minibatch
        outputs, values = map(self._plain, self.backpropagation.forward(obs))
        likelihood = self._likelihood(legal_logits(outputs, *mask), action)
        log_ratio = likelihood.log_prob - old_log_prob
        policy_loss, d_log_prob = losses.clipped_surrogate(log_ratio, advantages, clip)
        if self.config.value_clip is None:
            value_loss, d_values = losses.half_squared_error(values, returns)
        else:
            value_loss, d_values = losses.clipped_half_squared_error(
                values, returns, old_values, self.config.value_clip
            )
        # The loss is policy loss + vf_coef * value loss - ent_coef * entropy, each the mean over the samples.
        d_outputs, d_log_std = likelihood.gradient(d_log_prob, -ent_coef / len(obs))
        d_values *= self.config.vf_coef
        self._backward(d_outputs, d_log_std, d_values)
        return policy_loss, value_loss, likelihood.entropy, log_ratio


def _side_by_side(terms: Sequence[tuple[ArrayOrTensor, ...]]) -> Tensor:
    """The terms of all minibatches: four rows."""
    return torch.stack([torch.cat([torch.as_tensor(part) for part in parts]) for parts in zip(*terms)])


def _kl(log_ratios: Tensor) -> Tensor:
    return losses.kl_estimates(log_ratios)[1]
