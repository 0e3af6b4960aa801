"""The parts of :mod:`omnirl.testing.algorithm`.

Letters: B environments; A action size or number of actions; F features of an observation.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from omnirl.api.algorithm import ActContext, Clock, LearnerContext, MemoryContext, PolicyContext
from omnirl.api.data import ActionSample, Array, Feedback, Obs, Rollout, Transitions
from omnirl.api.errors import CheckpointError
from omnirl.api.specs import ArraySpec, DiscreteAction, EnvSpec
from omnirl.buffers.replay import ReplayMemory, ReplaySettings
from omnirl.buffers.rollout_queue import RolloutQueue
from omnirl.testing.algorithm import ToyConfig


def _sizes(spec: EnvSpec) -> tuple[int, int]:
    assert isinstance(spec.observation, ArraySpec)
    actions = spec.action.n if isinstance(spec.action, DiscreteAction) else int(np.prod(spec.action.shape))
    return spec.observation.stacked().size, actions


class ToyPolicy:
    """Linear scores: the best or a sampled action; continuous actions are tanh of the scores plus noise."""

    def __init__(self, config: ToyConfig, spec: EnvSpec, context: PolicyContext) -> None:
        self._spec = spec
        self._weight = np.zeros(_sizes(spec), np.float64)
        self._version = -1

    def choose_action(self, obs: Obs, act: ActContext) -> Array:
        """The action of the greatest score."""
        return self._act(self._scores(obs))

    def sample_action(self, obs: Obs, act: ActContext) -> ActionSample:
        """Gumbel noise on the scores samples from their softmax; ``stamp`` [B] is the version that acted."""
        scores = self._scores(obs)
        action = self._act(scores + act.rng.gumbel(size=scores.shape))
        return ActionSample(action, {"stamp": np.full(len(action), self._version, np.int64)})

    def _scores(self, obs: Obs) -> Array:
        assert isinstance(obs, np.ndarray)
        return np.asarray(obs.reshape(len(obs), -1) @ self._weight)

    def _act(self, scores: Array) -> Array:
        if isinstance(self._spec.action, DiscreteAction):
            return np.asarray(scores.argmax(axis=1))
        return np.tanh(scores).astype(np.float32)

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Strict: exactly ``weight`` and ``version``."""
        if set(weights) != {"weight", "version"}:
            raise KeyError(f"expected the weights weight and version, got {sorted(weights)}")
        self._weight = weights["weight"]
        self._version = int(weights["version"][0])

    def state_dict(self) -> Mapping[str, Any]:
        """Nothing is held between rollouts."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""


def toy_memory(config: ToyConfig, spec: EnvSpec, context: MemoryContext) -> RolloutQueue | ReplayMemory:
    """A queue or a replay memory."""
    if config.memory.kind == "queue":
        return RolloutQueue()
    settings = ReplaySettings(config.memory.capacity, config.memory.batch_size)
    return ReplayMemory(spec.observation, spec.action, settings, context)


class ToyLearner:
    """Adds a fixed function of the batch, the clock's seed and a momentum to the weights."""

    device = "cpu"
    nonfinite_in_row = 0

    def __init__(self, config: ToyConfig, spec: EnvSpec, context: LearnerContext) -> None:
        self._config = config.learner
        generator = np.random.default_rng(context.seed)
        self._weight = generator.standard_normal(_sizes(spec))
        self._momentum = np.zeros_like(self._weight)
        self._version = 0
        self._batch_means: list[float] = []
        self._oldest: list[int] = []

    def observe(self, rollout: Rollout) -> None:
        """Check that every row was acted with the version the rollout names."""
        stamps = rollout.extras["stamp"]
        if not (stamps == rollout.version).all():
            raise AssertionError(f"a rollout of version {rollout.version} was acted with {np.unique(stamps)}")

    def learn(self, batch: Sequence[Rollout] | Transitions, clock: Clock) -> Feedback | None:
        """One made-up update by the mean over the batch, of all learners together where there are several."""
        if clock.update != self._version:
            raise AssertionError(f"update {clock.update} was asked of a learner at version {self._version}")
        time.sleep(self._config.sleep)
        values, oldest = _values(batch, clock)
        total, count = self.reduce(np.array([np.sum(values), len(values)], np.float64), "sum")
        self._oldest.append(int(-self.reduce(np.array([-oldest]), "max")[0]))
        mean = float(total / count)
        self._version += 1
        if not np.isfinite(mean):
            self.nonfinite_in_row += 1
            return None
        self.nonfinite_in_row = 0
        noise = np.random.default_rng(clock.seed).standard_normal(self._weight.shape)
        self._momentum = 0.9 * self._momentum + mean * noise
        self._weight = self._weight + self._config.lr * (1.0 - clock.progress) * self._momentum
        self._batch_means.append(mean)
        return None

    def metrics(self) -> Mapping[str, float]:
        """Means since the last call; the oldest version learned from."""
        result = {"weight_mean": float(self._weight.mean())}
        if self._batch_means:
            result["batch_mean"] = float(np.mean(self._batch_means))
            result["oldest_version"] = float(min(self._oldest))
        self._batch_means, self._oldest = [], []
        return result

    def get_weights(self) -> Mapping[str, Array]:
        """The weight [F, A] and the version [1]."""
        return {"weight": self._weight, "version": np.array([self._version], np.int64)}

    def reduce(self, array: Array, op: Literal["sum", "max"]) -> Array:
        """The array itself: there is one learner. A subclass that can talk to others may override it."""
        return array

    def state_dict(self) -> Mapping[str, Any]:
        """Weights, momentum, version and what the metrics have gathered."""
        return {
            "weight": self._weight.copy(),
            "momentum": self._momentum.copy(),
            "version": self._version,
            "batch_means": list(self._batch_means),
            "oldest": list(self._oldest),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore."""
        if state["weight"].shape != self._weight.shape:
            raise CheckpointError(f"weight has shape {state['weight'].shape}, expected {self._weight.shape}")
        self._weight, self._momentum = np.array(state["weight"]), np.array(state["momentum"])
        self._version = int(state["version"])
        self._batch_means, self._oldest = list(state["batch_means"]), list(state["oldest"])


def _values(batch: Sequence[Rollout] | Transitions, clock: Clock) -> tuple[Array, int]:
    """What the update is made of, a number per rollout or transition, perhaps none; and the oldest version in it."""
    if isinstance(batch, Transitions):
        return batch.reward + batch.discount, clock.update
    versions = [rollout.version for rollout in batch]
    means = [rollout.reward.mean() + rollout.action.mean() for rollout in batch]
    return np.array(means), min(versions, default=clock.update)


class _NpzAgentFile:
    """Agent files as numpy archives, for an algorithm without torch."""

    def save(self, path: str, weights: Mapping[str, Array], meta: Mapping[str, Any]) -> None:
        """Write the file."""
        with open(path, "wb") as stream:
            arrays: dict[str, Any] = {"__meta__": np.array(json.dumps(meta)), **weights}
            np.savez(stream, **arrays)  # before numpy 2.2 allow_pickle=False would be one more array

    def load(self, path: str) -> tuple[dict[str, Array], dict[str, Any]]:
        """``(weights, meta)``. Raises CheckpointError."""
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            meta = json.loads(str(arrays.pop("__meta__")))
        except Exception as error:
            # Whatever a damaged or hostile file makes numpy raise, the answer is the same.
            raise CheckpointError(f"{path}: refused: not a weights-only file ({error})") from error
        return arrays, meta


NpzAgentFile = _NpzAgentFile()
