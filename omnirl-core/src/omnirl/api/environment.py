"""Write an environment backend: how a family of environments is built and stepped.

A backend is one :class:`EnvBackend` object of functions. Two of them are enough; the loops that collect rollouts
and run evaluations come from :mod:`omnirl.loops` unless the backend brings its own::

    def get_env_spec(config): ...            # -> EnvSpec
    def build_env(config, context): ...      # -> Environment of context.num_envs sub-environments

    BACKEND = EnvBackend(get_env_spec=get_env_spec, build_env=build_env)

Letters: B sub-environments stepped together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from omnirl.api.algorithm import Policy
from omnirl.api.data import Array, Episode, Obs, Rollout, Step
from omnirl.api.specs import EnvSpec


@dataclass(frozen=True)
class EnvContext:
    """Who builds an environment: ``role`` is ``"sampler"`` or ``"evaluator"``, ``index`` its number, ``num_envs`` B.

    view: what somebody watches, ``"frames"`` (``omnirl record``) or ``"window"`` (``omnirl enjoy``), of an evaluator
    with one environment; empty for all others. A backend is asked only for what its ``EnvBackend.views`` offers.
    """

    role: str
    index: int
    num_envs: int
    view: str = ""


class Environment(Protocol):
    """B sub-environments, stepped together.

    It may also define ``continues(index) -> bool``, asked after an end and before the reset: whether that reset goes on
    where the sub-environment stands instead of beginning anew, as after a lost life of a game. Such an end is one for
    the algorithm only; the seed is that of the game until it is over, so going on exactly after a restart still works.
    """

    num_envs: int
    """B."""
    seedable: bool
    """Whether ``reset`` honours its seed. An environment that cannot begin an episode from a seed (a vector
    environment that resets itself) says False, and the run is reported as not exactly repeatable."""

    def reset(self, index: int, seed: int) -> Obs:
        """Begin an episode of sub-environment ``index`` from ``seed``; return its first observation, ``[*obs]``.

        Called for every sub-environment before the first step, and for each that ended before the next one.
        """

    def step(self, action: Array) -> Step:
        """Step all sub-environments with ``action`` [B, *act] in environment units (clipped and cast here)."""

    def close(self) -> None:
        """Release what the environment holds. Called once."""


class ViewedEnvironment(Environment, Protocol):
    """What ``build_env`` returns for an ``EnvContext.view`` of ``"frames"``: an environment that can be filmed.

    For a ``"window"`` it returns an ordinary one that shows every reset and step itself, at a speed for people.
    """

    frames_per_second: float
    """How many steps are one second to look at."""

    def render(self) -> Array:
        """The picture of the state as it stands after a reset or a step: uint8 [height, width, 3], the same size
        each time."""


class MeasuredEnvironment(Environment, Protocol):
    """An environment that has more to say of an episode than its return and its length.

    The names belong into ``EnvSpec.eval_metrics`` too: they become columns ``eval_<name>`` of log.csv.
    """

    def episode_metrics(self, index: int) -> Mapping[str, float]:
        """Figures by name of the episode of sub-environment ``index`` that the last step ended.

        Asked in evaluations, before the next ``reset``; ``aggregate_evaluations`` sums them up.
        """


class Streams(Protocol):
    """The named random streams of one worker, and its view of the run's clock."""

    def policy(self, number: int) -> np.random.Generator:
        """The policy's generator for rollout ``number``."""

    def episode_seed(self, index: int, episode: int) -> int:
        """The seed of ``episode`` of sub-environment ``index``."""

    def progress(self, env_steps: int) -> float:
        """The fraction of the run's stop target reached at ``env_steps``, in [0, 1]."""


class Collector(Protocol):
    """Collects rollouts of one Environment with one Policy."""

    def collect(self, version: int, env_steps: int) -> Rollout:
        """Step T times with weights ``version``; ``env_steps`` were requested in the run before this rollout."""

    def state_dict(self) -> Mapping[str, Any]:
        """What is needed to go on exactly: nested dicts of numpy arrays and JSON scalars."""

    def load_state_dict(self, state: Mapping[str, Any]) -> bool:
        """Restore. False where the environments did not repeat exactly and new episodes were begun."""


CollectionLoop = Callable[[Any, Policy, int, Streams], Collector]
"""``(environment, policy, unroll_length T, streams) -> Collector``; the environment is what ``build_env`` returned."""
EvaluationLoop = Callable[[Any, Policy, int, Streams], Sequence[Episode]]
"""``(environment, policy, num_episodes, streams) -> episodes``; the same."""


@dataclass(frozen=True)
class EnvFinding:
    """Something wrong with an environment, as ``omnirl envs check`` tells it.

    name: what is wrong, the same for the same mistake. severity: ``"error"`` where training would fail or learn
    the wrong thing, ``"warning"`` where it works less well. remedy: how to mend it. text and remedy are one line each.
    """

    name: str
    severity: Literal["error", "warning"]
    text: str
    remedy: str


@dataclass(frozen=True)
class DecisionContext:
    """For whom a backend decides: ``num_envs`` B of each of ``num_samplers`` samplers."""

    num_envs: int
    num_samplers: int


@dataclass(frozen=True)
class Decision:
    """What a key of the ``env`` section that says ``auto`` becomes. reason: for the user, empty where it is of no
    interest."""

    key: str
    value: Any
    reason: str = ""


@dataclass(frozen=True)
class EnvBackend:
    """The functions of a backend.

    views: how an environment can be watched, ``"frames"`` and ``"window"``; see :class:`ViewedEnvironment`. check:
    ``(config, steps) -> findings``, what only the backend can see of an environment before it becomes an
    ``Environment``, which ``omnirl envs check`` looks at itself. decide: ``(config, DecisionContext) -> decisions`` for
    every ``auto``; asked once when a run begins, in the driver; what it says is written into run_config.yaml and kept
    when the run goes on.
    """

    get_env_spec: Callable[[Any], EnvSpec]
    build_env: Callable[[Any, EnvContext], Environment]
    collection_loop: CollectionLoop | None = None
    evaluation_loop: EvaluationLoop | None = None
    aggregate_evaluations: Callable[[Sequence[Episode]], Mapping[str, float]] | None = None
    views: tuple[str, ...] = ()
    check: Callable[[Any, int], Iterable[EnvFinding]] | None = None
    decide: Callable[[Any, DecisionContext], Iterable[Decision]] | None = None
