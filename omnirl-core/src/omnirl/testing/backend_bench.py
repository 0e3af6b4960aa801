"""What the checks of backends stand on: the attributes and hooks of a subclass, and environments stepped by hand.

Letters: T steps, B sub-environments; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from omnirl.api.algorithm import ActContext
from omnirl.api.data import Array, Obs, Rollout
from omnirl.api.environment import Collector, EnvContext, Environment
from omnirl.api.plugin import EnvBackendSpec, load_object
from omnirl.api.specs import ArraySpec, DictSpec, EnvSpec, ObservationSpec
from omnirl.loops import observations
from omnirl.loops.collection import collect_loop
from omnirl.testing.fakes import FakePolicy, FakeStreams, RecordingEnvironment
from omnirl.testing.single import SingleEnvironment
from omnirl.testing.suite import parametrize


@dataclass(frozen=True)
class Steps:
    """Environments stepped by hand.

    before, obs, final_obs   [T, B, *obs]: what was acted on, what came, and what came where an episode ended
    action                   [T, B, *act]; given: what became of the array of actions, ``"kept"`` or what else
    reward, terminated, truncated, ended   [T, B]
    """

    before: Obs
    obs: Obs
    final_obs: Obs
    action: Array
    reward: Array
    terminated: Array
    truncated: Array
    given: str

    @property
    def ended(self) -> Array:
        """[T, B] bool."""
        result: Array = self.terminated | self.truncated
        return result

    def tree(self) -> dict[str, Any]:
        """All that depends on seeds and actions; after an end only the final observation counts."""
        return {
            "before": self.before,
            "next_obs": self._next(),
            "reward": self.reward,
            "terminated": self.terminated,
            "truncated": self.truncated,
        }

    def column(self, index: int) -> dict[str, Any]:
        """The same of one sub-environment, [T, 1, ...]."""
        return {name: _column(value, index) for name, value in self.tree().items()}

    def transitions(self) -> dict[str, Any]:
        """The same as a rollout has it, where terminated wins."""
        tree = self.tree()
        return {
            "obs": tree["before"],
            "next_obs": tree["next_obs"],
            "reward": self.reward,
            "terminated": self.terminated,
            "truncated": self.truncated & ~self.terminated,
        }

    def _next(self) -> Obs:
        if isinstance(self.obs, Mapping):
            finals = self.final_obs
            assert isinstance(finals, Mapping)
            return {name: _where(self.ended, finals[name], rows) for name, rows in self.obs.items()}
        assert not isinstance(self.final_obs, Mapping)
        return _where(self.ended, self.final_obs, self.obs)


class BackendBench:
    """The ground of :class:`omnirl.testing.BackendSuite`, which documents how it is used."""

    spec: ClassVar[EnvBackendSpec]
    environments: ClassVar[Mapping[str, Mapping[str, Any]]]
    """The ``env`` sections that are checked, without ``module``, by name."""
    simulators: ClassVar[tuple[str, ...]] = ()
    """Modules that the configuration's model must not import."""
    num_envs: ClassVar[int] = 3
    """B."""
    unroll_length: ClassVar[int] = 7
    """T of the rollouts."""
    steps: ClassVar[int] = 250
    """Steps that are made by hand: in them an episode must end."""

    def is_random(self, env: Mapping[str, Any]) -> bool:
        """Whether something in this environment is drawn from the episode's seed."""
        return True

    def reference(self, env: Mapping[str, Any]) -> SingleEnvironment | None:
        """A hand-written environment that does what the backend's does, from the same seeds; None if there is none."""
        return None

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Called by pytest: one test per environment."""
        parametrize(metafunc, "env", self.environments)

    def config(self, env: Mapping[str, Any]) -> Any:
        """The validated configuration."""
        return load_object(self.spec.config).model_validate(dict(env))

    def env_spec(self, env: Mapping[str, Any]) -> EnvSpec:
        """What the backend says that it looks like."""
        spec: EnvSpec = load_object(self.spec.backend).get_env_spec(self.config(env))
        return spec

    def build(
        self, env: Mapping[str, Any], role: str = "sampler", num_envs: int | None = None
    ) -> Environment:
        """A fresh environment."""
        context = EnvContext(role, 0, num_envs or self.num_envs)
        environment: Environment = load_object(self.spec.backend).build_env(self.config(env), context)
        return environment

    def collector(self, env: Mapping[str, Any]) -> Collector:
        """A fresh collector, by the backend's own loop where it has one, with a policy that acts at random."""
        spec = self.env_spec(env)
        own = load_object(self.spec.backend).collection_loop
        loop = own or partial(collect_loop, observation=spec.observation)
        policy = FakePolicy(spec, self.num_envs)
        collector: Collector = loop(self.build(env), policy, self.unroll_length, FakeStreams())
        return collector

    def collect(self, env: Mapping[str, Any]) -> list[Rollout]:
        """Rollouts of about ``steps`` steps."""
        collector, taken = self.collector(env), 0
        rollouts: list[Rollout] = []
        while len(rollouts) * self.unroll_length < self.steps:
            rollouts.append(collector.collect(0, taken))
            taken += rollouts[-1].steps
        return rollouts

    def play(
        self,
        env: Mapping[str, Any],
        *,
        num_envs: int | None = None,
        actions: Array | None = None,
        same_actions: bool = False,
    ) -> Steps:
        """Step by hand, episode k of sub-environment i from seed 1000 i + k; random ``actions`` [T, B, *act] unless
        given. Every row goes through a :class:`omnirl.testing.fakes.RecordingEnvironment`, which checks it."""
        spec = self.env_spec(env)
        environment = RecordingEnvironment(self.build(env, num_envs=num_envs), spec)
        envs = environment.num_envs
        streams = FakeStreams()
        policy = FakePolicy(replace(spec, observation=single_frames(spec.observation)), envs)
        rng, first = np.random.default_rng(3), np.zeros(envs, np.bool_)
        episodes = np.zeros(envs, np.int64)
        now = observations.reset_all(environment, lambda i: streams.episode_seed(i, 0))
        rows: list[tuple[Any, ...]] = []
        given = "kept"
        for t in range(self.steps if actions is None else len(actions)):
            if actions is None:
                action = policy.sample_action(now, ActContext(rng, 0, 0.0, first)).action
                action = np.repeat(action[:1], envs, axis=0) if same_actions else action
            else:
                action = actions[t]
            passed = action.copy()
            before = observations.copy(now)
            step = environment.step(passed)
            if given == "kept" and not np.array_equal(passed, action):
                given = f"changed in step {t}"
            obs, final_obs = observations.copy(step.obs), observations.copy(step.final_obs)
            flags = np.array(step.terminated), np.array(step.truncated)
            rows.append((before, obs, final_obs, action, np.array(step.reward), *flags))
            observations.write(now, slice(None), obs)
            for i in np.flatnonzero(flags[0] | flags[1]).tolist():
                episodes[i] += 1
                observations.write(now, i, environment.reset(i, streams.episode_seed(i, int(episodes[i]))))
        environment.close()
        before, obs, final_obs, taken, reward, *ends_of = map(_stacked, zip(*rows, strict=True))
        return Steps(before, obs, final_obs, taken, reward, ends_of[0], ends_of[1], given)


def observation_of(obs: Obs, place: tuple[int, int]) -> Obs:
    """The observation [*obs] at (t, b)."""
    return observations.read(obs, place)


def single_frames(observation: ObservationSpec) -> ObservationSpec:
    """The same without stacks: what an environment itself hands out."""
    if isinstance(observation, DictSpec):
        return DictSpec(tuple((name, replace(entry, frame_stack=1)) for name, entry in observation.entries))
    return replace(observation, frame_stack=1)


def newest_frames(obs: Obs, spec: EnvSpec) -> Obs:
    """The last frame of each stack: [T, B, k * C, ...] -> [T, B, C, ...]; what is not stacked as it is."""
    if isinstance(obs, Mapping):
        assert isinstance(spec.observation, DictSpec)
        return {name: _newest(obs[name], entry) for name, entry in spec.observation.entries}
    assert isinstance(spec.observation, ArraySpec)
    return _newest(obs, spec.observation)


def _newest(obs: Array, spec: ArraySpec) -> Array:
    return obs if spec.frame_stack == 1 else obs[:, :, -spec.shape[0] :]


def ends(ended: Array) -> list[list[int]]:
    """The (t, b) of the ends, sorted."""
    places: list[list[int]] = np.argwhere(ended).tolist()
    return places


def _stacked(rows: Sequence[Any]) -> Any:
    if isinstance(rows[0], Mapping):
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return np.stack(rows)


def _column(value: Any, index: int) -> Any:
    if isinstance(value, Mapping):
        return {name: array[:, index : index + 1] for name, array in value.items()}
    return value[:, index : index + 1]


def _where(chosen: Array, a: Array, b: Array) -> Array:
    result: Array = np.where(chosen.reshape(chosen.shape + (1,) * (a.ndim - 2)), a, b)
    return result
