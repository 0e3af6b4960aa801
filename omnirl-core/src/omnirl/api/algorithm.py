"""Write an algorithm: three plain classes that never see files, clocks, actors, YAML or an environment.

=========  ==========================================  ======================================================
part       runs in                                     does
=========  ==========================================  ======================================================
Policy     samplers and evaluators                     observations -> actions, with numpy for small networks
Memory     the learner's process                       rollouts in, batches out
Learner    the learner's process                       one update of the weights per batch
=========  ==========================================  ======================================================

Each is built from ``(config, EnvSpec, context)`` and is unit-tested with no Ray and no simulator. With several
learners (``Supports.learners``) there is a memory and a learner per rank, see :class:`Learner`. A fourth part,
``data_flow``, turns the config into the four numbers of :class:`DataFlow` that drive the event loop: lock-step
on-policy, bounded-lag and replay algorithms are the same loop with other numbers.

Letters: B environments of one sampler; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from omnirl.api.data import ActionSample, Array, Feedback, Obs, Rollout

BatchIn = TypeVar("BatchIn", contravariant=True)
BatchOut = TypeVar("BatchOut", covariant=True)
Reduce = Callable[[Array, Literal["sum", "max"]], Array]


@dataclass(frozen=True)
class ActContext:
    """The moment of an action. ``env_steps`` counts the steps requested in the whole run before this row,
    ``progress`` is the fraction of the stop target, ``first`` [B] bool marks the first rows of episodes."""

    rng: np.random.Generator
    env_steps: int
    progress: float
    first: Array


@dataclass(frozen=True)
class Clock:
    """The moment of an update: ``update`` counts the updates made before it; ``env_steps`` those collected;
    ``progress`` is update / (updates of the whole run); ``seed`` is the same on every learner."""

    update: int
    env_steps: int
    progress: float
    seed: int


@dataclass(frozen=True)
class FlowContext:
    """What ``data_flow`` may know: B and the number of samplers."""

    num_envs: int
    num_samplers: int


@dataclass(frozen=True)
class DataFlow:
    """The four numbers that pace a run.

    unroll_length     T, steps per environment in one rollout
    steps_per_update  environment steps collected per update
    warmup_steps      steps collected before the first update
    max_lead          how many updates' worth of steps may be requested ahead of the learner; 0 is lock-step
    bounded_lag       whether a rollout that acted more than ``max_lead`` versions before the update it is due in is
                      dropped; replay keeps it, since it learns from data of any age
    """

    unroll_length: int
    steps_per_update: int
    warmup_steps: int = 0
    max_lead: int = 0
    bounded_lag: bool = True


@dataclass(frozen=True)
class PolicyContext:
    """``role`` is ``"sampler"`` or ``"evaluator"``; ``index`` of ``count`` workers in that role; ``num_envs`` B."""

    role: str
    index: int
    count: int
    num_envs: int


@dataclass(frozen=True)
class MemoryContext:
    """``reduce(array, "sum" | "max")`` is the learner's reduction over the ranks (the identity with one). A memory of
    several gets the rollouts of the samplers whose index modulo ``world_size`` is ``rank``, perhaps none."""

    rank: int
    world_size: int
    reduce: Reduce


@dataclass(frozen=True)
class LearnerContext:
    """``rendezvous`` is ``host:port`` of rank 0 where there are several learners, free a moment ago; ``device`` is
    ``"cpu"`` or ``"cuda"``; ``threads`` is what this learner may use; ``seed`` initialises the networks, the same on
    every rank."""

    rank: int
    world_size: int
    rendezvous: str | None
    device: str
    threads: int
    seed: int


class Policy(Protocol):
    """Local inference, always batched."""

    def choose_action(self, obs: Obs, act: ActContext) -> Array:
        """The deterministic action, [B, *obs] -> [B, *act], in environment units."""

    def sample_action(self, obs: Obs, act: ActContext) -> ActionSample:
        """The exploring action [B, *act] and its extras [B, ...]. Random numbers come from ``act.rng`` alone.

        A policy may also define ``finish(extras) -> extras`` for what is cheaper once per rollout than once per
        step; it is called with name -> [T, B, ...] and ``"action"`` [T, B, *act] among them.
        """

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Act with these from now on. Strict: a missing or extra name is a KeyError."""

    def state_dict(self) -> Mapping[str, Any]:
        """What is held between rollouts (OU noise); {} if nothing."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` gave."""


class Learner(Protocol[BatchIn]):
    """One update of the weights per batch.

    With several learners all ranks are built at once, so a constructor may wait for the others at the context's
    ``rendezvous``. ``next_batch``, ``learn``, ``feedback`` and ``metrics`` are called on every rank at the same update
    and in the same order, so they may ``reduce`` (on every rank, or on none). Nothing else may: ``observe`` and ``add``
    are called with what a rank gets, the states are asked for one rank after the other, ``get_weights`` of rank 0
    alone. The log's figures are those of rank 0, so ``metrics`` says what all ranks together did.
    """

    @property
    def nonfinite_in_row(self) -> int:
        """How many of the latest updates in a row had a non-finite loss or gradient; read after every call."""

    def observe(self, rollout: Rollout) -> None:
        """See a rollout before ``Memory.add``: for normalisers only, which become active after the next update."""

    def learn(self, batch: BatchIn, clock: Clock) -> Feedback | None:
        """One update, which is one new version of the weights. A non-finite loss or gradient leaves all state
        unchanged, still counts, and shows in ``metrics``."""

    def metrics(self) -> Mapping[str, float]:
        """Means since the last call, by the names of ``AlgorithmSpec.metric_names``; clears them."""

    def get_weights(self) -> Mapping[str, Array]:
        """Exactly what ``Policy.set_weights`` takes, the normaliser included."""

    def reduce(self, array: Array, op: Literal["sum", "max"]) -> Array:
        """Reduce an array over the learners; the identity with one."""

    def state_dict(self) -> Mapping[str, Any]:
        """All that is needed to go on exactly: nested dicts of numpy arrays and JSON scalars, copied."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` gave."""


class Memory(Protocol[BatchOut]):
    """Rollouts in, batches out; lives in the learner's process.

    A memory that keeps much may also define the static method ``reserved(config, spec) -> int``: the bytes that it
    reserves at once. They are compared with what the machine has before anything starts.
    """

    def add(self, rollout: Rollout, due: int) -> None:
        """Take a rollout. A queue hands it out in the update number ``due``; replay ignores ``due``."""

    def next_batch(self, clock: Clock) -> BatchOut:
        """The batch of update ``clock.update``. Random numbers come from ``clock.seed`` and the rank alone."""

    def feedback(self, feedback: Feedback) -> None:
        """Take what the learner returned from ``learn``."""

    def state_dict(self) -> Mapping[str, Any]:
        """The whole content: nested dicts of numpy arrays and JSON scalars, copied."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` gave."""
