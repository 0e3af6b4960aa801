"""The learner of A2C and IMPALA: one gradient step per update, from one forward pass.

An algorithm is this class with its own estimate of targets and advantages, its value loss and what a sample weighs;
nothing here knows which it is. Each observation, final ones included, passes the network once: its value serves the
estimate, its outputs the gradient.

Letters: T steps, B environments, N = T * B samples; O outputs of the policy; A size of a continuous action.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from omnirl.algorithms.shared.on_policy import losses
from omnirl.algorithms.shared.on_policy.learner import OnPolicyLearner
from omnirl.algorithms.shared.on_policy.policy_gradient_config import (
    PolicyGradientConfig,
    PolicyGradientLearnerConfig,
)
from omnirl.algorithms.shared.on_policy.returns import explained_variance
from omnirl.algorithms.shared.on_policy.rollout_batch import RolloutBatch
from omnirl.algorithms.shared.on_policy.shards import Shard
from omnirl.algorithms.shared.training.flat_optimizers import FlatAdam, FlatOptimizer, FlatRMSprop
from omnirl.algorithms.shared.training.flat_parameters import FlatParameters, clip_gradient_
from omnirl.algorithms.shared.training.likelihoods import ArrayOrTensor, Likelihood
from omnirl.algorithms.shared.training.torch_masks import legal_logits
from omnirl.api import Array, Clock, EnvSpec, LearnerContext, value_at

_FIGURES = ("policy_loss", "value_loss", "entropy")
_NOTHING = (np.zeros(0, np.float32),) * 3

ValueLoss: TypeAlias = Callable[[ArrayOrTensor, ArrayOrTensor], tuple[ArrayOrTensor, ArrayOrTensor]]
"""``(values [N], targets [N])`` -> the loss of each sample [N] and the gradient [N] of their mean."""


class Estimate(NamedTuple):
    """Advantages and value targets, each [T, B], and further figures for the log, means over the samples."""

    advantages: Array
    targets: Array
    figures: tuple[float, ...] = ()


Estimator: TypeAlias = Callable[[RolloutBatch, Array, Array, Array], Estimate]
"""``(batch, log-probabilities of the actions now, values before, values after)``, each [T, B]."""


class _Seen(NamedTuple):
    """One forward pass: outputs and values of all inputs, the actions' likelihood, the values before them [T, B]."""

    outputs: ArrayOrTensor
    values: ArrayOrTensor
    likelihood: Likelihood
    before: Array
    estimate: Estimate

    def of_samples(self) -> tuple[Array, ...]:
        """Advantages, targets and values before, [N] each."""
        return tuple(array.reshape(-1) for array in (*self.estimate[:2], self.before))


class Loss(NamedTuple):
    """Policy and value loss of each sample [N], and the gradients of the whole loss by outputs [N, O], log_std [A] (of
    continuous actions) and values [N]."""

    policy_loss: ArrayOrTensor
    value_loss: ArrayOrTensor
    d_outputs: ArrayOrTensor
    d_log_std: ArrayOrTensor | None
    d_values: ArrayOrTensor


def loss_of(
    likelihood: Likelihood,
    advantages: ArrayOrTensor,
    values: ArrayOrTensor,
    targets: ArrayOrTensor,
    *,
    value_loss: ValueLoss,
    vf_coef: float,
    ent_coef: float,
    weight: float,
) -> Loss:
    """The loss is ``weight`` x the sum over samples of policy loss + vf_coef * value loss - ent_coef * entropy: 1 / N
    makes it a mean, 1 a sum."""
    total = weight * len(values)
    of_policy, d_log_prob = losses.policy_gradient(likelihood.log_prob, advantages)
    of_values, d_values = value_loss(values, targets)
    d_outputs, d_log_std = likelihood.gradient(d_log_prob * total, -ent_coef * weight)
    return Loss(of_policy, of_values, d_outputs, d_log_std, d_values * (vf_coef * total))


class PolicyGradientLearner(OnPolicyLearner):
    """See :mod:`omnirl.algorithms.shared.on_policy.learner`.

    ``estimate`` gives advantages and targets, constants to the gradient, and the ``figures`` of these names;
    ``standardize`` brings the advantages of an update to mean 0 and standard deviation 1; ``weight`` is what each of N
    samples weighs in the loss, see :func:`loss_of`.
    """

    config: PolicyGradientLearnerConfig

    def __init__(
        self,
        config: PolicyGradientConfig,
        spec: EnvSpec,
        context: LearnerContext,
        *,
        estimate: Estimator,
        value_loss: ValueLoss,
        weight: Callable[[int], float],
        standardize: bool = False,
        figures: tuple[str, ...] = (),
    ) -> None:
        optimizer = partial(_optimizer, config.learner)
        names = (*_FIGURES, *figures, "grad_norm")
        super().__init__(config, spec, context, optimizer=optimizer, figures=names, update=self._update)
        self._estimate, self._value_loss, self._weight = estimate, value_loss, weight
        self._standardize, self._figures = standardize, len(names) - 1
        self._zero, self._one = (torch.tensor(value, device=self.device) for value in (0.0, 1.0))

    def _update(self, batch: RolloutBatch | None, shard: Shard, clock: Clock) -> None:
        lr = value_at(self.config.lr, clock)
        # Every gradient is written over, but not the gaps between them, where a NaN would stay for ever.
        self.parameters.gradient.zero_()
        # A non-finite number is no surprise here: it is looked for at the end.
        with np.errstate(all="ignore"):
            seen = None if batch is None else self._forward(batch)
            advantages, targets, before = shard.gathered(*(_NOTHING if seen is None else seen.of_samples()))
            if self._standardize:
                flat = torch.from_numpy(advantages)
                advantages = losses.standardize_minibatches(flat, shard.count).numpy()
            explained = explained_variance(targets, before)
            if seen is None:
                figures = torch.zeros(self._figures, device=self.device)
            else:
                figures = self._learn_from(seen, advantages[shard.places], self._weight(shard.count), clock)
        self.group.sum_(self.parameters.gradient)
        self.group.average_(figures, 0 if batch is None else len(batch))
        norm = clip_gradient_(self.parameters.gradient, self.config.max_grad_norm)
        host = {"explained_variance": explained, "lr": lr}
        if self.device.type == "cpu":
            # Nothing to wait for: a few numbers are added in less time than one operation on a tensor takes.
            row = [*figures.tolist(), float(norm)]
            healthy = math.isfinite(sum(row[: len(_FIGURES)]) + row[-1])
            self.optimizer.step(lr, self._one if healthy else self._zero)
            self._metrics.add(row, float(healthy), host)
            return
        health = figures[: len(_FIGURES)].sum() + norm
        finite = (health - health).eq_(0.0)  # 1, and 0 where it is infinite or not a number
        self.optimizer.step(lr, finite)
        self._metrics.add((*figures.unbind(), norm), finite, host)

    def _forward(self, batch: RolloutBatch) -> _Seen:
        outputs, values = map(self._plain, self.backpropagation.forward(batch.inputs))
        mask = () if batch.mask is None else (self._plain(batch.mask),)
        likelihood = self._likelihood(legal_logits(outputs[: len(batch)], *mask), self._plain(batch.action))
        before, after = batch.values_before_and_after(_host(values))
        log_prob = _host(likelihood.log_prob).reshape(before.shape)
        return _Seen(outputs, values, likelihood, before, self._estimate(batch, log_prob, before, after))

    def _learn_from(self, seen: _Seen, advantages: Array, weight: float, clock: Clock) -> Tensor:
        """Write the gradient of the samples held here, and give the means of their figures."""
        of_samples = (advantages, seen.estimate.targets.reshape(-1))
        gains, targets = (self._plain(torch.from_numpy(array).to(self.device)) for array in of_samples)
        loss = loss_of(
            seen.likelihood,
            gains,
            seen.values[: len(gains)],
            targets,
            value_loss=self._value_loss,
            vf_coef=self.config.vf_coef,
            ent_coef=value_at(self.config.ent_coef, clock),
            weight=weight,
        )
        self._backward(
            _padded(loss.d_outputs, seen.outputs), loss.d_log_std, _padded(loss.d_values, seen.values)
        )
        parts = (loss.policy_loss, loss.value_loss, seen.likelihood.entropy)
        if self.device.type == "cpu":
            # numpy's mean of a few numbers takes several times as long as their sum.
            means = (float(part.sum()) / len(part) for part in parts)
            return torch.tensor([*means, *seen.estimate.figures])
        on_device = torch.stack([part.mean() for part in parts])
        return torch.cat((on_device, torch.tensor(seen.estimate.figures, device=self.device)))


def _optimizer(settings: PolicyGradientLearnerConfig, parameters: FlatParameters) -> FlatOptimizer:
    if settings.optimizer == "adam":
        return FlatAdam(parameters, settings.adam_epsilon)
    return FlatRMSprop(parameters, "tf", settings.rmsprop_epsilon, settings.rmsprop_decay)


def _host(array: ArrayOrTensor) -> Array:
    host: Array = array if isinstance(array, np.ndarray) else array.cpu().numpy()
    return host


def _padded(rows: ArrayOrTensor, like: ArrayOrTensor) -> Tensor:
    """``rows`` [N, ...] followed by zeros, as many as ``like`` is longer: what no loss sees has no gradient."""
    result = np.zeros(like.shape, like.dtype) if isinstance(like, np.ndarray) else torch.zeros_like(like)
    result[: len(rows)] = rows
    return torch.as_tensor(result)


def mean_weight(count: int) -> float:
    """The loss is the mean over samples."""
    return 1.0 / count


def sum_weight(count: int) -> float:
    """The loss is the sum over samples."""
    return 1.0
