"""Backends that each do one thing wrong, for the checks of the conformance suite."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from pydantic import BaseModel

from omnirl.api import ArraySpec, ContinuousAction, EnvBackend, EnvSpec
from omnirl.loops.aggregate import aggregate
from omnirl.loops.collection import RolloutCollector
from omnirl.loops.evaluation import evaluation_loop
from omnirl.testing import environments
from omnirl.testing.chains import Chain
from omnirl.testing.inline import InlineEnvironment


class CarelessConfig(BaseModel):
    id: str = "chain5"


def environment(kind):
    """A backend whose environment is ``kind``."""

    def build_env(config, context):
        return kind([environments.build_single(config) for _ in range(context.num_envs)])

    return EnvBackend(get_env_spec=environments.get_env_spec, build_env=build_env)


def changed(**functions):
    return dataclasses.replace(environments.PROPS, **functions)


class DoublePrecision(InlineEnvironment):
    def step(self, action):
        step = super().step(action)
        return dataclasses.replace(step, obs=step.obs.astype(np.float64))


class NotFinite(InlineEnvironment):
    def step(self, action):
        step = super().step(action)
        return dataclasses.replace(step, reward=np.full_like(step.reward, np.inf))


class GloballyRandom(InlineEnvironment):
    def reset(self, index, seed):
        return super().reset(index, int(np.random.default_rng().integers(1000)))


class Coupled(InlineEnvironment):
    """What the first does decides for all."""

    def step(self, action):
        return super().step(np.repeat(action[-1:], len(action), axis=0))


class SeedIgnored(InlineEnvironment):
    def reset(self, index, seed):
        return super().reset(index, 0)


class WritesActions(InlineEnvironment):
    def step(self, action):
        action[:] = 0
        return super().step(action)


class WrongReward(InlineEnvironment):
    def step(self, action):
        step = super().step(action)
        return dataclasses.replace(step, reward=step.reward + step.terminated.astype(np.float32))


class CloseOnce(InlineEnvironment):
    def close(self):
        if self.closed:
            raise RuntimeError("closed already")
        super().close()


class Steering:
    """Moves by the action, in bounds that nobody enforces."""

    observation = ArraySpec((1,))
    action = ContinuousAction((-1.0,), (1.0,))

    def __init__(self):
        self.place, self.steps = 0.0, 0

    def reset(self, seed):
        self.place, self.steps = float(seed % 7), 0
        return self.observe()

    def step(self, action):
        self.place += float(action[0])
        self.steps += 1
        return self.observe(), 0.0, False, self.steps == 5

    def observe(self):
        return np.array([self.place], np.float32)


class BothFlags(RolloutCollector):
    def collect(self, version, env_steps):
        rollout = super().collect(version, env_steps)
        return dataclasses.replace(rollout, truncated=rollout.truncated | rollout.terminated)


class ResetAsFinal(RolloutCollector):
    """The row after an end, which belongs to the next episode, as the final observation."""

    def collect(self, version, env_steps):
        rollout = super().collect(version, env_steps)
        finals = rollout.obs[rollout.final_at[:, 0] + 1, rollout.final_at[:, 1]]
        return dataclasses.replace(rollout, final_obs=finals)


class DummyRows(RolloutCollector):
    """Next-step autoreset taken as it comes: every other row is none."""

    def collect(self, version, env_steps):
        rollout = super().collect(version, env_steps)
        rollout.reward[::2] = 0.0
        rollout.obs[1::2] = rollout.obs[:-1:2]
        return rollout


class SameArrays(RolloutCollector):
    _reward = None

    def collect(self, version, env_steps):
        rollout = super().collect(version, env_steps)
        if self._reward is None:
            self._reward = rollout.reward
        self._reward[:] = rollout.reward + rollout.number
        return dataclasses.replace(rollout, reward=self._reward)


class ForgetsEpisodes(RolloutCollector):
    def state_dict(self):
        state = super().state_dict()
        return {**state, "episodes": np.zeros_like(state["episodes"])}


class NeverFinishes(RolloutCollector):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._finish = None


class StandingClock(RolloutCollector):
    def collect(self, version, env_steps):
        return super().collect(version, 0)


def one_too_few(env, policy, num_episodes, streams):
    return evaluation_loop(env, policy, num_episodes - 1, streams)


_counter = itertools.count()


def another_spec(config):
    return EnvSpec(Chain.observation, Chain.action, id=f"chain{next(_counter)}")


def unclipped(config, context):
    return InlineEnvironment([Steering() for _ in range(context.num_envs)])


NO_BACKEND = object()
SHAPELESS = changed(get_env_spec=lambda config: EnvSpec(5, Chain.action))
DOUBLE, NAN, GLOBAL, COUPLED = map(environment, (DoublePrecision, NotFinite, GloballyRandom, Coupled))
SEED, WRITES, REWARD, CLOSE = map(environment, (SeedIgnored, WritesActions, WrongReward, CloseOnce))
ANOTHER_SPEC = changed(get_env_spec=another_spec)
UNCLIPPED = changed(
    get_env_spec=lambda c: EnvSpec(Steering.observation, Steering.action), build_env=unclipped
)
BOTH, FINAL, DUMMY = (changed(collection_loop=loop) for loop in (BothFlags, ResetAsFinal, DummyRows))
SAME, FORGETS = (changed(collection_loop=loop) for loop in (SameArrays, ForgetsEpisodes))
UNFINISHED, STANDING = (changed(collection_loop=loop) for loop in (NeverFinishes, StandingClock))
FEW = changed(evaluation_loop=one_too_few)
OTHER_FIGURES = changed(aggregate_evaluations=lambda episodes: {**aggregate(episodes), "surprise": 1.0})
