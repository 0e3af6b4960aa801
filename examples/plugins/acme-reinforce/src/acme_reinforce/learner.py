"""The update: Williams 1992, "Simple statistical gradient-following algorithms", with a linear baseline.

Letters: T steps, B environments, N = T * B samples, F features (the observation and a 1), A actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from acme_reinforce.config import ReinforceConfig
from acme_reinforce.policy import features, weight_shape
from omnirl.api import Array, CheckpointError, Clock, EnvSpec, LearnerContext, Obs, Rollout


class Learner:
    """See :class:`omnirl.api.Learner`. The state is plain arrays, so saving it is copying it."""

    def __init__(self, config: ReinforceConfig, spec: EnvSpec, context: LearnerContext) -> None:
        self.config = config.learner
        shapes: dict[str, tuple[int, ...]] = {"policy": weight_shape(spec)}
        shapes["baseline"] = shapes["policy"][:1]
        # Parameters and Adam's two moments (Kingma and Ba 2015) of each.
        self._state: dict[str, Array] = {
            f"{name}/{part}": np.zeros(shape, np.float32)
            for name, shape in shapes.items()
            for part in ("value", "first", "second")
        }
        self._updates = 0
        self._sums = dict.fromkeys(("baseline_loss", "entropy", "return_to_go"), 0.0)
        self._count = 0
        self._nonfinite = 0
        self.nonfinite_in_row = 0

    def values(self, obs: Obs, leading: int = 1) -> Array:
        """What the baseline expects from observations with ``leading`` axes before their own."""
        expected: Array = features(obs, leading) @ self._state["baseline/value"]
        return expected

    def observe(self, rollout: Rollout) -> None:
        """Nothing is normalised."""

    def learn(self, batch: Sequence[Rollout], clock: Clock) -> None:
        """One step of each parameter along the mean gradient of all samples."""
        x = np.concatenate([_flat(features(rollout.observations(), leading=2)[:-1]) for rollout in batch])
        action = np.concatenate([rollout.action.reshape(-1) for rollout in batch])
        target = np.concatenate([self.returns(rollout).reshape(-1) for rollout in batch])
        error = target - x @ self._state["baseline/value"]
        scores = x @ self._state["policy/value"]
        probability = np.exp(scores - scores.max(axis=1, keepdims=True))
        probability /= probability.sum(axis=1, keepdims=True)
        log_probability = np.log(probability + 1e-12)
        entropy = -(probability * log_probability).sum(axis=1)
        # d log pi(a) / d scores = onehot(a) - pi;  d entropy / d scores = -pi (log pi + entropy)
        chosen = np.eye(probability.shape[1], dtype=np.float32)[action]
        slope = (chosen - probability) * error[:, None]
        slope -= self.config.entropy_coef * probability * (log_probability + entropy[:, None])
        gradients = {"policy": x.T @ slope / len(x), "baseline": x.T @ error / len(x)}
        if not all(np.isfinite(gradient).all() for gradient in gradients.values()):
            self._nonfinite += 1
            self.nonfinite_in_row += 1
            return
        self.nonfinite_in_row = 0
        self._updates += 1
        self._ascend("policy", gradients["policy"], self.config.lr)
        self._ascend("baseline", gradients["baseline"], self.config.baseline_lr)
        self._count += 1
        for name, values in (("baseline_loss", error**2), ("entropy", entropy), ("return_to_go", target)):
            self._sums[name] += float(values.mean())

    def returns(self, rollout: Rollout) -> Array:
        """Discounted rewards to go, [T, B]. A terminal state is worth nothing; where an episode is cut, or the rollout
        ends in the middle of one, the baseline stands for the rest."""
        beyond = self.values(rollout.next_obs(), leading=2)
        result = np.empty_like(rollout.reward)
        rest = beyond[-1]
        for t in reversed(range(len(result))):
            rest = np.where(rollout.truncated[t], beyond[t], rest)
            result[t] = rollout.reward[t] + self.config.gamma * np.where(rollout.terminated[t], 0.0, rest)
            rest = result[t]
        return result

    def _ascend(self, name: str, gradient: Array, lr: float) -> None:
        """Adam, towards greater values."""
        state, t = self._state, self._updates
        state[f"{name}/first"] = 0.9 * state[f"{name}/first"] + 0.1 * gradient
        state[f"{name}/second"] = 0.999 * state[f"{name}/second"] + 0.001 * gradient**2
        step = (
            state[f"{name}/first"] / (1 - 0.9**t) / (np.sqrt(state[f"{name}/second"] / (1 - 0.999**t)) + 1e-8)
        )
        state[f"{name}/value"] = (state[f"{name}/value"] + lr * step).astype(np.float32)

    def metrics(self) -> Mapping[str, float]:
        """Means since the last call."""
        means = {name: total / self._count for name, total in self._sums.items()} if self._count else {}
        self._sums, self._count = dict.fromkeys(self._sums, 0.0), 0
        return {**means, "nonfinite_updates": float(self._nonfinite)}

    def get_weights(self) -> Mapping[str, Array]:
        """The policy's weight [F, A]."""
        return {"policy": self._state["policy/value"]}

    def reduce(self, array: Array, op: str) -> Array:
        """There is one learner."""
        return array

    def state_dict(self) -> dict[str, Any]:
        """Everything, copied."""
        return {
            "arrays": {name: array.copy() for name, array in self._state.items()},
            "updates": self._updates,
            "sums": dict(self._sums),
            "counts": [self._count, self._nonfinite, self.nonfinite_in_row],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore. CheckpointError where the state is of other spaces."""
        for name, array in self._state.items():
            saved = state["arrays"][name]
            if saved.shape != array.shape:
                raise CheckpointError(f"{name} has shape {saved.shape} in the checkpoint, {array.shape} here")
            self._state[name] = np.array(saved)
        self._updates, self._sums = int(state["updates"]), dict(state["sums"])
        self._count, self._nonfinite, self.nonfinite_in_row = state["counts"]


def _flat(rows: Array) -> Array:
    """[T, B, F] -> [N, F]."""
    return rows.reshape(-1, rows.shape[-1])
