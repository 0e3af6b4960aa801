"""The sampler: collects rollouts of one environment with one policy. A plain class, run by any transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from omnirl.api.algorithm import PolicyContext
from omnirl.api.data import Array, Rollout
from omnirl.api.environment import EnvContext
from omnirl.api.plugin import load_object
from omnirl.loops.collection import collect_loop
from omnirl.runtime.first_look import FirstLook
from omnirl.runtime.plan import Started, WorkerPlan
from omnirl.runtime.seeding import SamplerStreams
from omnirl.runtime.versions import versions
from omnirl.runtime.vital_signs import CountedEnvironment, nonfinite_value
from omnirl.runtime.weights import Weights, act_with, stamped


@dataclass(frozen=True)
class CollectReport:
    """What the driver needs to know of a rollout. episodes: (return, length) of those that ended in it; nonfinite:
    where it holds a NaN or an infinity, if it does."""

    sampler: int
    version: int
    episodes: tuple[tuple[float, int], ...]
    nonfinite: str = ""


class EpisodeTotals:
    """Returns and lengths of training episodes, which may span rollouts."""

    def __init__(self, num_envs: int) -> None:
        self.total = np.zeros(num_envs, np.float64)
        self.length = np.zeros(num_envs, np.int64)

    def add(self, rollout: Rollout) -> list[tuple[float, int]]:
        """Add a rollout; return (return, length) of the episodes that ended in it, in order of time."""
        # An episode may begin here without an end before: after a restart that could not repeat the last one.
        self.total[rollout.first[0]], self.length[rollout.first[0]] = 0.0, 0
        # Lists of Python's floats: an episode's span is short, and a call of numpy takes longer than its sum.
        rewards = rollout.reward.T.tolist()
        finished: list[tuple[float, int]] = []
        start = [0] * len(rewards)
        for t, b in np.argwhere(rollout.terminated | rollout.truncated).tolist():
            total = float(self.total[b]) + sum(rewards[b][start[b] : t + 1])
            finished.append((total, int(self.length[b]) + t + 1 - start[b]))
            self.total[b], self.length[b], start[b] = 0.0, 0, t + 1
        for b, own in enumerate(rewards):
            self.total[b] += sum(own[start[b] :])
            self.length[b] += len(own) - start[b]
        return finished

    def state_dict(self) -> dict[str, Array]:
        """The episodes under way."""
        return {"total": self.total.copy(), "length": self.length.copy()}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Restore."""
        self.total = np.array(state["total"], np.float64)
        self.length = np.array(state["length"], np.int64)


class Sampler:
    """One sampler; ``incarnation`` counts its restarts within the run."""

    def __init__(self, plan: WorkerPlan, index: int, incarnation: int) -> None:
        backend = plan.env_backend
        self.index, self.incarnation = index, incarnation
        context = PolicyContext("sampler", index, plan.num_samplers, plan.num_envs)
        self.policy = load_object(plan.algorithm.policy)(plan.agent_config, plan.env_spec, context)
        env_context = EnvContext("sampler", index, plan.num_envs)
        look = FirstLook(plan, plan.num_envs)
        built = look.environment(backend.build_env(plan.env_config, env_context))
        self.environment = CountedEnvironment(built, look)
        streams = SamplerStreams(plan.seeds.sampler, index, incarnation, plan.target_steps)
        loop = backend.collection_loop or partial(collect_loop, observation=plan.env_spec.observation)
        self.collector = loop(self.environment, self.policy, plan.flow.unroll_length, streams)
        self.totals = EpisodeTotals(plan.num_envs)
        self.version: int | None = None

    def start(self) -> Started:
        """What the driver compares before training."""
        return Started(bool(self.environment.seedable), versions())

    @property
    def pulse(self) -> int:
        """How often the environment was asked something."""
        return self.environment.count

    def collect(self, weights: Weights, env_steps: int, epoch: int) -> tuple[CollectReport, Rollout]:
        """Collect one rollout with ``weights``."""
        if weights.version != self.version:
            act_with(self.policy, weights)
            self.version = weights.version
        rollout = stamped(
            self.collector.collect(weights.version, env_steps),
            sampler=self.index,
            incarnation=self.incarnation,
            epoch=epoch,
        )
        episodes = tuple(self.totals.add(rollout))
        nonfinite = nonfinite_value(rollout, rollout.number * len(rollout.reward))
        return CollectReport(self.index, rollout.version, episodes, nonfinite), rollout

    def state(self) -> dict[str, Any]:
        """All that is needed to go on exactly."""
        return {"collector": dict(self.collector.state_dict()), "totals": self.totals.state_dict()}

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Restore; False where the environments did not repeat exactly."""
        exact = self.collector.load_state_dict(state["collector"])
        self.totals.load_state_dict(state["totals"])
        return bool(exact)

    def close(self) -> None:
        """Close the environment."""
        self.environment.close()
