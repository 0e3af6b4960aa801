"""What the checks of algorithms stand on: the attributes and hooks that a subclass sets, and what is built from them.

Letters: N observations; B environments; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from omnirl.api.algorithm import ActContext, PolicyContext
from omnirl.api.data import Array
from omnirl.api.plugin import AlgorithmSpec, load_object
from omnirl.api.specs import EnvSpec
from omnirl.testing.miniature import Miniature
from omnirl.testing.noise import Noise, NoiseEnvironment
from omnirl.testing.spaces import spaces_of
from omnirl.testing.suite import parametrize

EDGES = {
    "episodes of one step": Noise(terminates=1.0, truncates=0.0),
    "every step truncated": Noise(terminates=0.0, truncates=1.0),
    "no end at all": Noise(terminates=0.0, truncates=0.0),
    "constant reward": Noise(reward=1.0),
    "no reward": Noise(reward=0.0),
    "constant observations": Noise(scale=0.0),
    "extreme observations": Noise(scale=1e6),
    "extreme rewards": Noise(reward=1e6),
}

"""Odd but legal data, by name."""


class AlgorithmBench:
    """The ground of :class:`omnirl.testing.AlgorithmSuite`, which documents how it is used."""

    spec: ClassVar[AlgorithmSpec]
    modules: ClassVar[Mapping[str, Any]] = {}
    """The ``modules`` section that is checked."""
    num_envs: ClassVar[int] = 4
    """B, environments of the one sampler."""
    torch_parts: ClassVar[tuple[str, ...]] = ("learner", "agent_file")
    """Parts that may import torch; a policy of images may, where its docstring says so."""
    probe_modules: ClassVar[Mapping[str, Any]] = {}
    """The ``modules`` section that learns the probes, with gamma 0.9."""
    probe_updates: ClassVar[int] = 1000
    """Updates in which it does."""
    probe_tolerance: ClassVar[float] = 0.15
    """How far the value 2.71 may be missed; the value 10 by ten times as much."""

    def env_specs(self) -> Mapping[str, EnvSpec]:
        """The spaces to check with, by name: all that ``spec.supports`` promises."""
        return spaces_of(self.spec.supports)

    def value(self, learner: Any, obs: Array) -> Array | None:
        """What ``learner`` thinks that the states ``obs`` [N, *obs] are worth, [N]; None if it has no values."""
        return None

    def greedy_action(self, learner: Any, obs: Array) -> Array | None:
        """The action [N, *act] that ``learner`` itself thinks best in ``obs`` [N, *obs]; None if it cannot say."""
        return None

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Called by pytest: one test per space, and per edge."""
        parametrize(metafunc, "env_spec", self.env_specs())
        parametrize(metafunc, "noise", EDGES)

    def miniature(self, env_spec: EnvSpec, noise: Noise | None = None, *, frozen: bool = False) -> Miniature:
        """A small run in an environment of random numbers."""
        environment = NoiseEnvironment(env_spec, self.num_envs, noise)
        return Miniature(self.spec, self.modules, env_spec, environment, frozen=frozen)

    def policy(self, env_spec: EnvSpec, role: str = "sampler") -> Any:
        """A fresh policy."""
        config = load_object(self.spec.config).model_validate(dict(self.modules))
        context = PolicyContext(role, 0, 1, self.num_envs)
        return load_object(self.spec.policy)(config, env_spec, context)

    def observations(self, env_spec: EnvSpec) -> Any:
        """Random observations [B, *obs]."""
        return next(self.many_observations(env_spec, 1))

    def many_observations(self, env_spec: EnvSpec, batches: int) -> Iterator[Any]:
        """``batches`` of them."""
        spec = replace(env_spec, observation=env_spec.observation.stacked())
        environment = NoiseEnvironment(spec, self.num_envs)
        for i in range(self.num_envs):
            environment.reset(i, i)
        for _ in range(batches):
            yield environment.step(np.zeros(self.num_envs)).obs

    def context(self, seed: int = 0) -> ActContext:
        """The moment of an action."""
        return ActContext(np.random.default_rng(seed), 0, 0.0, np.zeros(self.num_envs, np.bool_))
