"""Toys that each do one thing wrong, for the checks of the conformance suites; and a tiny learner of values."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from omnirl.api import ActionSample, DataFlow
from omnirl.testing.toy import NpzAgentFile, ToyLearner, ToyPolicy


class SilentConfig(BaseModel):
    gamma: float = 0.9


def fractional_flow(config, context):
    return DataFlow(8, 8 * context.num_envs / 2)


class WrongDtype(ToyPolicy):
    def choose_action(self, obs, act):
        return super().choose_action(obs, act).astype(np.float64)


class OneExtraForAll(ToyPolicy):
    def sample_action(self, obs, act):
        return ActionSample(super().sample_action(obs, act).action, {"stamp": np.zeros(1)})


class GlobalNoise(ToyPolicy):
    def sample_action(self, obs, act):
        scores = self._scores(obs)
        action = self._act(scores + 3 * np.random.standard_normal(scores.shape))
        return ActionSample(action, {"stamp": np.full(len(action), self._version, np.int64)})


class RandomChoice(ToyPolicy):
    def choose_action(self, obs, act):
        scores = self._scores(obs)
        return self._act(act.rng.standard_normal(scores.shape))


class InPlace(ToyPolicy):
    def choose_action(self, obs, act):
        obs *= 0.5
        return super().choose_action(obs, act)


class Lenient(ToyPolicy):
    def set_weights(self, weights):
        super().set_weights({"weight": self._weight, "version": np.zeros(1, np.int64), **weights})


class LenientAboutMore(ToyPolicy):
    def set_weights(self, weights):
        super().set_weights({name: weights[name] for name in ("weight", "version")})


class OwnStatistics(ToyPolicy):
    """Shifts observations by a mean that it gathers itself instead of getting it with the weights."""

    _mean = 0.0

    def sample_action(self, obs, act):
        self._mean = 0.9 * self._mean + 0.1 * obs.mean()
        return super().sample_action(obs, act)

    def _scores(self, obs):
        return super()._scores(obs + self._mean * 10)


class Stuck(ToyLearner):
    def learn(self, batch, clock):
        weight = self._weight
        super().learn(batch, clock)
        self._weight = weight


class Forgetful(ToyLearner):
    def load_state_dict(self, state):
        super().load_state_dict({**state, "momentum": np.zeros_like(state["momentum"])})


class DisturbedBySaving(ToyLearner):
    def state_dict(self):
        state = super().state_dict()
        self._momentum = self._momentum * 0.5
        return state


class KeepsItsState(ToyLearner):
    """Hands out an array that it goes on writing to."""

    def learn(self, batch, clock):
        momentum = self._momentum
        super().learn(batch, clock)
        momentum[:] = self._momentum
        self._momentum = momentum

    def state_dict(self):
        return {**super().state_dict(), "momentum": self._momentum}


class StateOfObjects(ToyLearner):
    def state_dict(self):
        return {**super().state_dict(), "generator": np.random.default_rng(0)}


class GloballyRandom(ToyLearner):
    def learn(self, batch, clock):
        super().learn(batch, clock)
        self._weight = self._weight + np.random.standard_normal(self._weight.shape)


class TakesAnyState(ToyLearner):
    def load_state_dict(self, state):
        self._weight = np.array(state["weight"])


class DividesByDeviation(ToyLearner):
    def learn(self, batch, clock):
        super().learn(batch, clock)
        with np.errstate(all="ignore"):
            self._weight = self._weight * (batch[0].reward.std() / batch[0].reward.std())


class LearnsFromNaN(ToyLearner):
    def learn(self, batch, clock):
        super().learn(batch, clock)
        self._weight = self._weight + batch[0].reward.mean()


class DoesNotCountNaN(ToyLearner):
    def learn(self, batch, clock):
        super().learn(batch, clock)
        self.nonfinite_in_row = 0


class WritesIntoRollouts(ToyLearner):
    def learn(self, batch, clock):
        for rollout in batch:
            np.clip(rollout.reward, -1.0, 1.0, out=rollout.reward)
        super().learn(batch, clock)


class UnannouncedMetric(ToyLearner):
    def metrics(self):
        return {**super().metrics(), "surprise": 1.0}


class TableLearner(ToyLearner):
    """Values of a table by the observation, each moved a tenth of the way to its target, TD(0)."""

    def __init__(self, config, spec, context):
        super().__init__(config, spec, context)
        self.values: dict[float, float] = {}

    def learn(self, batch, clock):
        super().learn(batch, clock)
        for rollout in batch:
            continues, next_obs = self.continues(rollout), self.next_obs(rollout)
            for t, b in np.ndindex(rollout.reward.shape):
                obs, after = float(rollout.obs[t, b, 0]), float(next_obs[t, b, 0])
                target = rollout.reward[t, b] + 0.9 * continues[t, b] * self.values.get(after, 0.0)
                self.values[obs] = self.values.get(obs, 0.0) + 0.1 * (target - self.values.get(obs, 0.0))

    def continues(self, rollout):
        return ~rollout.terminated

    def next_obs(self, rollout):
        return rollout.next_obs()


class NoTermination(TableLearner):
    """Adds the value of the next row whatever happened, so that episodes never end."""

    def continues(self, rollout):
        return np.ones_like(rollout.terminated)

    def next_obs(self, rollout):
        return rollout.obs[1:]


class TruncationAsEnd(TableLearner):
    def continues(self, rollout):
        return ~(rollout.terminated | rollout.truncated)


class _Rounding:
    """Agent files in half precision."""

    def save(self, path: str, weights: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        NpzAgentFile.save(path, {name: array.astype(np.float16) for name, array in weights.items()}, meta)

    load = NpzAgentFile.load


class _Pickled:
    """Agent files that run whatever is in them."""

    def save(self, path: str, weights: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        Path(path).write_bytes(pickle.dumps((dict(weights), json.dumps(meta))))

    def load(self, path: str) -> tuple[Any, Any]:
        from omnirl.api import CheckpointError

        try:
            weights, meta = pickle.loads(Path(path).read_bytes())
            return weights, json.loads(meta)
        except Exception as error:
            raise CheckpointError(str(error)) from error


class _Trusting:
    """Agent files that are taken for empty where they cannot be read."""

    save = NpzAgentFile.save

    def load(self, path: str) -> tuple[Any, Any]:
        try:
            return NpzAgentFile.load(path)
        except Exception:
            return {}, {}


ROUNDING, PICKLED, TRUSTING = _Rounding(), _Pickled(), _Trusting()
