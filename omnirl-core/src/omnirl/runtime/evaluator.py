"""The evaluator: plays episodes with the deterministic policy of one version. A plain class."""

from __future__ import annotations

from functools import partial

from omnirl.api.algorithm import PolicyContext
from omnirl.api.data import Episode
from omnirl.api.environment import EnvContext
from omnirl.api.plugin import load_object
from omnirl.loops.evaluation import evaluation_loop
from omnirl.runtime.first_look import FirstLook
from omnirl.runtime.plan import Started, WorkerPlan
from omnirl.runtime.seeding import EvaluatorStreams
from omnirl.runtime.versions import versions
from omnirl.runtime.vital_signs import CountedEnvironment
from omnirl.runtime.weights import Weights, act_with

_MOST_ENVIRONMENTS = 8


class Evaluator:
    """One evaluator with environments of its own; with a ``view`` (see EnvContext) one environment."""

    def __init__(self, plan: WorkerPlan, index: int, view: str = "") -> None:
        self.plan, self.index = plan, index
        num_envs = 1 if view else min(plan.episodes, _MOST_ENVIRONMENTS)
        context = PolicyContext("evaluator", index, plan.num_evaluators, num_envs)
        self.policy = load_object(plan.algorithm.policy)(plan.agent_config, plan.env_spec, context)
        env_context = EnvContext("evaluator", index, num_envs, view)
        look = FirstLook(plan, num_envs)
        built = look.environment(plan.env_backend.build_env(plan.env_config, env_context))
        self.environment = CountedEnvironment(built, look)

    def start(self) -> Started:
        """What the driver compares before training."""
        return Started(bool(self.environment.seedable), versions())

    @property
    def pulse(self) -> int:
        """How often the environment was asked something."""
        return self.environment.count

    def evaluate(self, weights: Weights) -> tuple[Episode, ...]:
        """Play the plan's number of episodes with ``weights``."""
        act_with(self.policy, weights)
        streams = EvaluatorStreams(self.plan.seeds.evaluator, weights.version, self.index)
        own = partial(evaluation_loop, observation=self.plan.env_spec.observation)
        loop = self.plan.env_backend.evaluation_loop or own
        return tuple(loop(self.environment, self.policy, self.plan.episodes, streams))

    def close(self) -> None:
        """Close the environment."""
        self.environment.close()
