"""PPO's update: epochs of minibatches over the samples of one rollout per sampler.

Schulman et al. 2017 (arXiv:1707.06347), with the details of Huang et al. 2022, "The 37 implementation
details of proximal policy optimization". Nothing in the loop waits for the device: figures stay there until
``metrics()``.

Letters: N samples of an update, M of a minibatch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from omnirl.algorithms.ppo.config import Config
from omnirl.algorithms.shared import likelihoods, losses
from omnirl.algorithms.shared.action_head import make_head, num_outputs
from omnirl.algorithms.shared.actor_critic import Samples, prepare_samples
from omnirl.algorithms.shared.flat_optimizers import FlatAdam
from omnirl.algorithms.shared.flat_parameters import FlatParameters, clip_gradient_
from omnirl.algorithms.shared.likelihoods import ArrayOrTensor
from omnirl.algorithms.shared.metric_sums import MetricSums
from omnirl.algorithms.shared.normalization import ObservationNormalizer, ReturnNormalizer
from omnirl.algorithms.shared.observations import (
    network_input,
    network_observation,
    time_rows,
    vector_size,
    vectors_of,
    with_vectors,
)
from omnirl.algorithms.shared.torch_masks import legal_logits
from omnirl.api import (
    Array,
    Clock,
    ConfigError,
    ContinuousAction,
    EnvSpec,
    LearnerContext,
    MultiDiscreteAction,
    Obs,
    Rollout,
    value_at,
)
from omnirl.networks.actor_critic import ActorCritic
from omnirl.networks.backpropagation import backpropagation, gradient_of
from omnirl.networks.initialization import generator

_FIGURES = ("policy_loss", "value_loss", "entropy", "grad_norm", "approx_kl", "clip_fraction")


class Learner:
    """One update learns from the tuple of rollouts that the memory hands out; see
    :mod:`omnirl.api.algorithm`."""

    def __init__(self, config: Config, spec: EnvSpec, context: LearnerContext) -> None:
        torch.set_num_threads(context.threads)
        self.config = config.learner
        self.device = torch.device(context.device)
        self._observation = network_observation(config.network, spec)
        vectors = vector_size(self._observation)
        if vectors == 0 and self.config.normalize_observations:
            raise ConfigError(
                "modules.learner.normalize_observations: images are scaled in the network already "
                "(set it to false)"
            )
        self._action = spec.action
        self._head = make_head(spec.action, num_envs=1, rows=1)
        log_std_init = config.policy.log_std_init if isinstance(spec.action, ContinuousAction) else None
        self.network = ActorCritic(
            config.network, self._observation, num_outputs(spec.action), log_std_init, generator(context.seed)
        )
        self.parameters = FlatParameters(self.network, self.device)
        self.backpropagation = backpropagation(self.network)
        self.optimizer = FlatAdam(self.parameters, self.config.adam_epsilon)
        self.observations = ObservationNormalizer(vectors) if self.config.normalize_observations else None
        self.returns = ReturnNormalizer(self.config.gamma) if self.config.normalize_returns else None
        self._metrics = MetricSums(_FIGURES, self.device)
        self._finite = torch.ones((), device=self.device)

    @property
    def nonfinite_in_row(self) -> int:
        """The latest updates in a row that changed nothing, as of the last ``metrics()``."""
        return self._metrics.nonfinite_in_row

    def observe(self, rollout: Rollout) -> None:
        """Add to the pending statistics. The last row of observations is the next rollout's first."""
        if self.observations is not None:
            rows = network_input(time_rows(rollout.observations(), slice(-1)), self._observation)
            self.observations.observe(vectors_of(rows, self._observation))
        if self.returns is not None:
            self.returns.observe(rollout)

    def learn(self, batch: Sequence[Rollout], clock: Clock) -> None:
        """One update. An empty batch changes nothing but the version."""
        if batch:
            if self.returns is not None:
                self.returns.activate_first()
            self._update(self._samples(batch), clock)
        for normalizer in (self.observations, self.returns):
            if normalizer is not None:
                normalizer.activate()

    def _samples(self, batch: Sequence[Rollout]) -> Samples:
        return prepare_samples(
            batch,
            network_input=self._network_input,
            actions=self._head.network_action,
            rewards=self.returns or _unchanged,
            values=self.network.values,
            device=self.device,
            gamma=self.config.gamma,
            gae_lambda=self.config.gae_lambda,
        )

    def _network_input(self, obs: Obs) -> Array:
        rows = network_input(obs, self._observation)
        return rows if self.observations is None else with_vectors(rows, self._observation, self.observations)

    def _update(self, samples: Samples, clock: Clock) -> None:
        config, count = self.config, len(samples)
        size = min(config.minibatch_size, count)
        lr, clip, ent_coef = (value_at(s, clock) for s in (config.lr, config.clip, config.ent_coef))
        step = partial(self._step, lr=lr, clip=clip, ent_coef=ent_coef)
        rng = np.random.default_rng(clock.seed)
        state = (self.parameters.values, *self.optimizer.tensors())
        before = [tensor.clone() for tensor in state]
        # Every gradient is written over, but not the gaps between them, where a NaN would stay for ever.
        self.parameters.gradient.zero_()

        terms: list[tuple[ArrayOrTensor, ...]] = []
        norms: list[Tensor] = []
        begins = range(0, count, size)
        for _ in range(config.epochs):
            order = torch.from_numpy(rng.permutation(count)).to(self.device)
            shuffled = [tensor.index_select(0, order) for tensor in samples.tensors()]
            if config.normalize_advantages:
                shuffled[4] = losses.standardize_minibatches(shuffled[4], size)
            arrays = [shuffled[0], *map(self._plain, shuffled[1:])]
            # A non-finite number is no surprise here: it is looked for at the end.
            with np.errstate(all="ignore"):
                for minibatch in zip(*([array[i : i + size] for i in begins] for array in arrays)):
                    of_samples, norm = step(minibatch)
                    terms.append(of_samples)
                    norms.append(norm)
            # The one wait for the device, once per epoch and only where it was asked for.
            if (
                config.target_kl is not None
                and float(_kl(_joined(terms[-len(begins) :])[3])) > config.target_kl
            ):
                break

        figures = _joined(terms)
        means = torch.stack((*figures[:3].mean(1).unbind(), torch.stack(norms).mean()))
        # The log ratios of the last epoch say how far the update went from the policy that acted.
        moved = figures[3, -count:]
        kl = _kl(moved)
        clipped = (moved.expm1().abs() > clip).float().mean()
        finite = torch.isfinite(means.sum()).float()
        # A non-finite minibatch spoils all that follow it, so the update is undone as a whole.
        for tensor, old in zip(state, before):
            tensor.copy_(torch.where(finite > 0, tensor, old))
        host = {"explained_variance": samples.explained_variance, "lr": lr}
        self._metrics.add((*means.unbind(), kl, clipped), finite, host)

    def _step(
        self, minibatch: tuple[ArrayOrTensor, ...], *, lr: float, clip: float, ent_coef: float
    ) -> tuple[tuple[ArrayOrTensor, ...], Tensor]:
        """One gradient step on M samples: their policy loss, value loss, entropy and log ratio, each [M], and
        the norm of the gradient. Observations come as a tensor, the rest as ``_plain`` gives it."""
        obs, action, old_log_prob, old_values, advantages, returns, *mask = minibatch
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
        self.backpropagation.backward(torch.as_tensor(d_outputs), torch.as_tensor(d_values))
        if self.network.log_std is not None and d_log_std is not None:
            gradient_of(self.network.log_std).copy_(torch.as_tensor(d_log_std))
        norm = clip_gradient_(self.parameters.gradient, self.config.max_grad_norm)
        self.optimizer.step(lr, self._finite)
        return (policy_loss, value_loss, likelihood.entropy, log_ratio), norm

    def _likelihood(self, outputs: ArrayOrTensor, action: ArrayOrTensor) -> likelihoods.Likelihood:
        if self.network.log_std is not None:
            return likelihoods.gaussian(outputs, self._plain(self.network.log_std.detach()), action)
        if isinstance(self._action, MultiDiscreteAction):
            return likelihoods.multi_categorical(outputs, action, self._action.nvec)
        return likelihoods.categorical(outputs, action)

    def _plain(self, tensor: Tensor) -> ArrayOrTensor:
        """The tensor as the loss takes it: on the CPU as a numpy array of the same memory."""
        return tensor.numpy() if self.device.type == "cpu" else tensor

    def metrics(self) -> Mapping[str, float]:
        """Means since the last call; see the plugin's ``metric_names``."""
        return self._metrics.take()

    def get_weights(self) -> Mapping[str, Array]:
        """The policy's parameters and the active statistics."""
        weights = self.parameters.arrays(self.network.acting_names())
        return weights if self.observations is None else {**weights, **self.observations.weights()}

    def reduce(self, array: Array, op: Literal["sum", "max"]) -> Array:
        """The identity: there is one learner."""
        return array

    def state_dict(self) -> dict[str, Any]:
        """Parameters, optimizer, statistics and the sums behind the unfinished row of the log."""
        return {
            "parameters": self.parameters.arrays(),
            "optimizer": self.optimizer.state_dict(),
            "observations": {} if self.observations is None else self.observations.state_dict(),
            "returns": {} if self.returns is None else self.returns.state_dict(),
            "metrics": self._metrics.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore. KeyError or ValueError where the state is of another network or configuration."""
        self.parameters.load(state["parameters"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.observations is not None:
            self.observations.load_state_dict(state["observations"])
        if self.returns is not None:
            self.returns.load_state_dict(state["returns"])
        self._metrics.load_state_dict(state["metrics"])


def _joined(terms: Sequence[tuple[ArrayOrTensor, ...]]) -> Tensor:
    """The terms of all minibatches side by side: four rows."""
    return torch.stack([torch.cat([torch.as_tensor(part) for part in parts]) for parts in zip(*terms)])


def _kl(log_ratios: Tensor) -> Tensor:
    return losses.kl_estimates(log_ratios)[1]


def _unchanged(rewards: Array) -> Array:
    return rewards
