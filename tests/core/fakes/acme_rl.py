"""A plugin's configuration side for tests: algorithms and a backend, as models and import strings."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from omnirl.api import (
    AlgorithmSpec,
    Config,
    ConfigError,
    Constant,
    DataFlow,
    EnvBackendSpec,
    FlowContext,
    Fraction,
    IntTuple,
    NonNegativeInt,
    PositiveInt,
    Schedule,
    Supports,
)
from omnirl.api.schedule import extremes


class Network(Config):
    kind: Literal["mlp", "cnn"] = Field(default="mlp", description="kind of network")
    hidden_sizes: IntTuple = Field(default=(64, 64), description="units per layer")


class QLearner(Config):
    lr: Schedule = Field(default=Constant(value=1e-3), description="learning rate")
    gamma: Fraction = Field(default=0.99, description="discount per step")
    batch_size: PositiveInt = Field(default=32, description="transitions per update")
    n_step: PositiveInt = Field(default=1, description="steps of the return")
    double: bool = Field(default=False, description="whether targets are double")

    @model_validator(mode="after")
    def _positive_rate(self) -> QLearner:
        if extremes(self.lr)[0] < 0:
            raise ValueError(f"lr: must not be negative, not {extremes(self.lr)[0]:g}")
        return self


class QMemory(Config):
    capacity: PositiveInt = Field(default=10_000, description="transitions kept")
    warmup_steps: NonNegativeInt = Field(default=1_000, description="steps before the first update")
    alpha: Fraction = Field(default=0.6, description="exponent of priorities")


class QConfig(Config):
    learner: QLearner = Field(default=QLearner(), description="the update")
    memory: QMemory = Field(default=QMemory(), description="the replay memory")
    network: Network = Field(default=Network(), description="the network")

    @model_validator(mode="after")
    def _fits(self) -> QConfig:
        if self.learner.batch_size > self.memory.capacity:
            raise ValueError(
                f"learner.batch_size: {self.learner.batch_size} is more than memory.capacity, "
                f"{self.memory.capacity}"
            )
        return self


def q_flow(config: QConfig, context: FlowContext) -> DataFlow:
    if config.memory.warmup_steps > config.memory.capacity:
        raise ConfigError(
            f"modules.memory.warmup_steps: {config.memory.warmup_steps} is more than the capacity, "
            f"{config.memory.capacity}"
        )
    return DataFlow(4, steps_per_update=4, warmup_steps=config.memory.warmup_steps, max_lead=2)


class GradientLearner(Config):
    lr: Schedule = Field(default=Constant(value=1e-3), description="learning rate")
    clip: Schedule = Field(default=Constant(value=0.2), description="clip of the ratio")
    minibatch_size: PositiveInt = Field(default=64, description="samples per step")


class GradientMemory(Config):
    unroll_length: PositiveInt = Field(default=16, description="steps per rollout")


class GradientConfig(Config):
    learner: GradientLearner = Field(default=GradientLearner(), description="the update")
    memory: GradientMemory = Field(default=GradientMemory(), description="the rollouts")


def gradient_flow(config: GradientConfig, context: FlowContext) -> DataFlow:
    length = config.memory.unroll_length
    steps = length * context.num_envs * context.num_samplers
    if config.learner.minibatch_size > steps:
        raise ConfigError(
            f"learner.minibatch_size: {config.learner.minibatch_size} is more than a rollout, {steps}"
        )
    return DataFlow(length, steps_per_update=steps)


class EnvConfig(Config):
    id: str = Field(min_length=1, description="name of the environment")
    render_mode: Literal["human", "rgb_array"] | None = Field(default=None, description="how it renders")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="arguments")


class BrokenConfig(Config):
    @model_validator(mode="after")
    def _broken(self) -> BrokenConfig:
        raise TypeError("a defect of the plugin")


def algorithm(name: str, config: str, flow: str, supports: Supports, module: str) -> AlgorithmSpec:
    return AlgorithmSpec(
        name=name,
        summary="for tests",
        family="test",
        supports=supports,
        config=f"acme_rl:{config}",
        data_flow=f"acme_rl:{flow}",
        policy=f"{module}.policy:Policy",
        memory=f"{module}.memory:Memory",
        learner=f"{module}.learner:Learner",
        agent_file=f"{module}.files:AGENT_FILE",
        metric_names=("loss",),
    )


Q = algorithm("acme_q", "QConfig", "q_flow", Supports(actions=("discrete",)), "acme.algorithms.q")
GRADIENT = algorithm(
    "acme_pg",
    "GradientConfig",
    "gradient_flow",
    Supports(actions=("discrete", "continuous"), observations=("vector", "image"), learners=True),
    "acme.algorithms.pg",
)
BOUNDED = algorithm(
    "acme_ac", "QConfig", "q_flow", Supports(actions=("bounded_continuous",)), "acme.algorithms.ac"
)
BROKEN = algorithm(
    "broken", "BrokenConfig", "q_flow", Supports(actions=("discrete",)), "acme.algorithms.broken"
)
ENVS = EnvBackendSpec("acme_envs", "for tests", "acme_rl:EnvConfig", "acme.envs:BACKEND")
ALGORITHM = algorithm("draft", "QConfig", "q_flow", Supports(actions=("discrete",)), "acme.draft")
