"""What a worker is built from: import strings and plain data, the same for every transport.

Nothing here is a plugin's object: each process imports the one part that it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from omnirl.api.algorithm import DataFlow
from omnirl.api.environment import EnvBackend
from omnirl.api.plugin import AlgorithmSpec, EnvBackendSpec, load_object
from omnirl.api.specs import EnvSpec


@dataclass(frozen=True)
class Seeds:
    """The seeds of the three roles."""

    learner: int
    sampler: int
    evaluator: int


@dataclass(frozen=True)
class Started:
    """What a worker says when it is built. seedable: its environments can begin an episode from a seed."""

    seedable: bool
    versions: Mapping[str, str]


@dataclass(frozen=True)
class WorkerPlan:
    """Everything a worker needs to build itself.

    agent, env: the validated configurations as plain data. num_envs: B of a sampler. episodes: of one evaluator.
    threads: of one learner.
    """

    algorithm: AlgorithmSpec
    agent: Mapping[str, Any]
    backend: EnvBackendSpec
    env: Mapping[str, Any]
    env_spec: EnvSpec
    flow: DataFlow
    num_envs: int
    num_samplers: int
    num_evaluators: int
    episodes: int
    seeds: Seeds
    target_updates: int
    target_steps: int
    device: str = "cpu"
    threads: int = 1
    num_learners: int = 1

    @cached_property
    def agent_config(self) -> Any:
        """The algorithm's configuration model."""
        return load_object(self.algorithm.config).model_validate(dict(self.agent))

    @cached_property
    def env_config(self) -> Any:
        """The backend's configuration model."""
        return load_object(self.backend.config).model_validate(dict(self.env))

    @cached_property
    def env_backend(self) -> EnvBackend:
        """The backend's functions; imports its simulator."""
        backend: EnvBackend = load_object(self.backend.backend)
        return backend

    @property
    def rollout_steps(self) -> int:
        """T * B."""
        return self.flow.unroll_length * self.num_envs

    def __getstate__(self) -> dict[str, Any]:
        names = self.__dataclass_fields__
        return {name: value for name, value in self.__dict__.items() if name in names}
