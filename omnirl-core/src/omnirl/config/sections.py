"""The models of the runner's own sections. ``env`` belongs to the backend, ``modules`` to the algorithm."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from omnirl.api.config import Config, Flag, Int, NonNegative, NonNegativeInt, Number, Positive, PositiveInt

Auto: TypeAlias = Literal["auto"]
_MOST_PROCESSES, _MOST_ENVIRONMENTS, _MOST_THREADS = 10_000, 100_000, 4096
_LONGEST_NAME = 200  # bytes: file systems take 255, and a file that is being written has a longer name
_Seed: TypeAlias = Annotated[Int, Field(ge=0)]  # it is only hashed, so it may be as large as one likes

_ADDRESS = re.compile(r"(?:[^\s:/\[\]]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")
RAY_STORE_MINIMUM = 75 * 1024 * 1024
"""The smallest object store, in bytes, that Ray accepts."""


class RunnerConfig(Config):
    """How the run is laid out, when it stops and what it keeps."""

    ckpt_dir: str | None = Field(
        default=None,
        min_length=1,
        description="folder of the run's files; unset: runs/<preset or algorithm-environment>-seed<seed>",
    )
    eval_model: str | None = Field(
        default=None,
        min_length=1,
        description="model that test evaluates, such as agent_100 or best; unset: the last",
    )

    num_learners: PositiveInt = Field(
        default=1,
        le=_MOST_PROCESSES,
        description="number of learner processes, which share every batch out; more than 1 on Ray only",
    )
    num_samplers: Auto | Annotated[PositiveInt, Field(le=_MOST_PROCESSES)] = Field(
        default="auto",
        description="number of sampler processes; auto: CPU cores - learners, at least 1 per learner",
    )
    num_evaluators: NonNegativeInt = Field(
        default=1,
        le=_MOST_PROCESSES,
        description="number of evaluator processes; 0: no evaluation during training",
    )
    num_episodes: PositiveInt = Field(default=10, description="episodes of one evaluation per evaluator")
    num_envs_per_sampler: PositiveInt = Field(
        default=8, le=_MOST_ENVIRONMENTS, description="environments that one sampler steps together"
    )

    max_updates: PositiveInt | None = Field(
        default=None, description="updates after which training stops; unset: only max_steps counts"
    )
    max_steps: PositiveInt | None = Field(
        default=None,
        description="environment steps after which training stops; unset: only max_updates counts",
    )
    max_lead: NonNegativeInt | None = Field(
        default=None,
        description="updates that collection may run ahead of learning; 0: lock-step; unset: the algorithm's",
    )

    stop_return: Number | None = Field(
        default=None,
        description="return_mean of an evaluation that ends the run; updates then wait for each evaluation",
    )

    eval_interval: NonNegativeInt = Field(
        default=0, description="updates between evaluations; 0: only after the last update"
    )
    log_interval: NonNegative = Field(
        default=10.0, description="seconds between rows of the log; 0: one per update"
    )
    log_name: str = Field(
        default="log", min_length=1, description="name of the log: log is written to log.csv"
    )

    save_interval: NonNegative = Field(default=60.0, description="seconds between checkpoints")
    save_memory: Flag = Field(
        default=False,
        description="whether a checkpoint holds the replay memory (in lock-step it always does)",
    )
    keep_last: NonNegativeInt = Field(default=5, description="number of agent files kept; 0: all")
    keep_best: NonNegativeInt = Field(
        default=1,
        description="agent files of the best evaluations (by return_mean) kept beside the last ones",
    )
    step_timeout_s: Positive = Field(
        default=60.0,
        description="seconds without an environment step after which a sampler or evaluator on Ray is replaced",
    )
    on_nan: Literal["drop", "error"] = Field(
        default="drop",
        description="what a NaN or infinite observation or reward does: the rollout is dropped, or the run ends",
    )
    load_checkpoint: bool | None = Field(
        default=None,
        description="true: resume the run in ckpt_dir if there is one; false: never; unset: as --resume says",
    )

    @field_validator("ckpt_dir")
    @classmethod
    def _home_expanded(cls, value: str | None) -> str | None:
        if value is not None and "\0" in value:
            raise ValueError("must be a path, without the character NUL")
        return value if value is None else os.path.expanduser(value)

    @field_validator("log_name")
    @classmethod
    def _plain_name(cls, value: str) -> str:
        if os.path.basename(value) != value or value in (".", ".."):
            raise ValueError(f"must be a file name without a folder, not {value!r}")
        if "\0" in value or len(value.encode(errors="surrogateescape")) > _LONGEST_NAME:
            raise ValueError(
                f"must be a file name of at most {_LONGEST_NAME} bytes, without the character NUL"
            )
        return value


class DeviceConfig(Config):
    """Where the learner computes."""

    learner: Literal["auto", "cpu", "cuda", "gpu"] = Field(
        default="auto", description="device of the learner: cuda, cpu, or auto (cuda where there is one)"
    )
    threads: Auto | Annotated[PositiveInt, Field(le=_MOST_THREADS)] = Field(
        default="auto", description="CPU threads of each learner; auto: CPU cores - samplers, shared out"
    )

    @field_validator("learner")
    @classmethod
    def _gpu_is_cuda(cls, value: str) -> str:
        return "cuda" if value == "gpu" else value


class SeedConfig(Config):
    """One number for everything, or one per role."""

    learner: _Seed = Field(default=0, description="seed of the networks and of what the learner draws")
    sampler: _Seed = Field(default=0, description="seed of exploration and of training environments")
    evaluator: _Seed = Field(default=0, description="seed of the environments of evaluations")

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {"learner": value, "sampler": value, "evaluator": value}
        if not isinstance(value, Mapping):
            raise ValueError("must be a whole number, or one each for learner, sampler and evaluator")
        return value

    def plain(self) -> int | Mapping[str, int]:
        """One number where all are equal, else the mapping."""
        if self.learner == self.sampler == self.evaluator:
            return self.learner
        return {"learner": self.learner, "sampler": self.sampler, "evaluator": self.evaluator}


class RayConfig(Config):
    """The cluster that the workers run on."""

    address: str = Field(
        default="local",
        description="local: a cluster of this machine for this run; auto or host:port: join a running one",
    )
    num_cpus: PositiveInt | None = Field(
        default=None, description="logical CPUs of the local cluster; unset: as many as the workers need"
    )
    object_store_memory: PositiveInt | None = Field(
        default=None, description="bytes of the local cluster's object store; unset: Ray decides"
    )
    start_timeout_s: Positive = Field(
        default=60.0,
        description="seconds for Ray's start, and then without a worker's process coming up, after which a run ends",
    )

    @field_validator("address")
    @classmethod
    def _known_form(cls, value: str) -> str:
        match = _ADDRESS.fullmatch(value)
        if value not in ("local", "auto") and not (match and 0 < int(match[1]) < 65536):
            raise ValueError(f"must be local, auto or host:port, not {value!r}")
        return value

    @field_validator("object_store_memory")
    @classmethod
    def _enough(cls, value: int | None) -> int | None:
        if value is not None and value < RAY_STORE_MINIMUM:
            raise ValueError(f"must be at least {RAY_STORE_MINIMUM} (75 MiB, Ray's minimum), not {value}")
        return value


RUNNER_SECTIONS: dict[str, type[Config]] = {
    "runner": RunnerConfig,
    "device": DeviceConfig,
    "seed": SeedConfig,
    "ray": RayConfig,
}
"""The sections that are the runner's own, by their key in the file."""

SECTIONS = ("runner", "device", "seed", "env", "agent", "modules", "ray", "versions")
"""The top-level keys of a file. ``versions`` is written into run_config.yaml and ignored on reading."""
