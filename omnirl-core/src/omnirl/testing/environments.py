"""An environment backend for tests: known answers and planned failures, with neither a simulator nor torch.

In a configuration::

    env: {module: omnirl.testing.environments, id: probe_p4}
    env: {module: omnirl.testing.environments, id: bad, mode: nan_reward, at: 100}

===================  =====================================================  ================
id                   what it is                                             keys
===================  =====================================================  ================
probe_p1 ... p7      discrete probes, see :mod:`omnirl.testing.probes`
probe_c1 ... c4      continuous probes, the same place
two_step             a known distribution of returns
..._continuous       probe_p2, p3, p6, p7, two_step with a continuous action
chain5               five states with a known Q*
count, count_term    observes t; truncated, terminated at the end                   length
reuse                count in an environment that reuses its one array      length
box                  records the actions it is given                        low, high
bad                  goes wrong at step ``at``                              mode, at, times, length
sleepy               sleeps in every step                                   ms, length
pixels               small pictures, best return ``length``                 length, size
motion               ``length - 1``, with a frame_stack of 2 or more        length, size
compare, signpost    entries by name, see :mod:`omnirl.testing.dictionaries`
menu, fork           action masks, the same place
digits               two choices at once, the same place; masked_digits too
===================  =====================================================  ================

Every one whose observation is one array takes ``frame_stack``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import Field, model_validator

from omnirl.api.config import Config, NonNegative, Number, PositiveInt
from omnirl.api.environment import EnvBackend, EnvContext
from omnirl.api.plugin import EnvBackendSpec
from omnirl.api.specs import ArraySpec, DictSpec, DiscreteAction, EnvSpec
from omnirl.testing.chains import Box, Chain, Count
from omnirl.testing.dictionaries import Compare, Digits, Fork, Menu, Signpost
from omnirl.testing.faults import Bad, Mode, Sleepy
from omnirl.testing.inline import InlineEnvironment
from omnirl.testing.pixels import Motion, Pixels
from omnirl.testing.probes import IGNORED, ONLY, OneStep, Sequence, TwoStep, bandit, sign_matches
from omnirl.testing.single import SingleEnvironment


def count_term(length: int = 10) -> Count:
    """Count, terminated at the end."""
    return Count(length, terminate=True)


def count(length: int = 10) -> Count:
    """Count, truncated at the end."""
    return Count(length)


def reuse(length: int = 10) -> Count:
    """Count that returns the same array every time."""
    return Count(length, reuse=True)


ENVIRONMENTS: dict[str, Callable[..., SingleEnvironment]] = {
    "probe_p1": lambda: OneStep(DiscreteAction(1), lambda obs, action: 1.0),
    "probe_p2": lambda: OneStep(DiscreteAction(1), lambda obs, action: obs, signed=True),
    "probe_p3": lambda: Sequence((0.0, 1.0, 1.0), (0.0, 1.0)),
    "probe_p4": lambda: OneStep(DiscreteAction(2), lambda obs, action: 1.0 if action == 1.0 else -1.0),
    "probe_p5": lambda: OneStep(DiscreteAction(2), sign_matches, signed=True),
    "probe_p6": lambda: Sequence((0.0,) * 4, (1.0,) * 3, truncated=True),
    "probe_p7": lambda: Sequence((0.0, 1 / 3, 2 / 3, 1.0), (1.0,) * 3),
    "probe_c1": lambda: bandit(-1.0, 1.0, lambda obs, action: -((action - 0.5) ** 2)),
    "probe_c2": lambda: bandit(-1.0, 1.0, lambda obs, action: -((action - 0.5 * obs) ** 2), signed=True),
    "probe_c3": lambda: bandit(-2.0, 4.0, lambda obs, action: -((action - 2.5) ** 2)),
    "probe_c4": lambda: bandit(-1.0, 3.0, lambda obs, action: action),
    "two_step": lambda: TwoStep(ONLY),
    "probe_p2_continuous": lambda: OneStep(IGNORED, lambda obs, action: obs, signed=True),
    "probe_p3_continuous": lambda: Sequence((0.0, 1.0, 1.0), (0.0, 1.0), action=IGNORED),
    "probe_p6_continuous": lambda: Sequence((0.0,) * 4, (1.0,) * 3, truncated=True, action=IGNORED),
    "probe_p7_continuous": lambda: Sequence((0.0, 1 / 3, 2 / 3, 1.0), (1.0,) * 3, action=IGNORED),
    "two_step_continuous": lambda: TwoStep(IGNORED),
    "chain5": Chain,
    "count": count,
    "count_term": count_term,
    "reuse": reuse,
    "box": Box,
    "bad": Bad,
    "sleepy": Sleepy,
    "pixels": Pixels,
    "motion": Motion,
    "compare": Compare,
    "signpost": Signpost,
    "menu": Menu,
    "fork": Fork,
    "digits": partial(Digits, False),
    "masked_digits": partial(Digits, True),
}


class PropConfig(Config):
    """The ``env`` section of the testing backend. A key that the environment does not take is refused."""

    id: str = Field(description="which environment")
    length: PositiveInt | None = Field(default=None, description="steps of an episode")
    low: Number | None = Field(default=None, description="least action")
    high: Number | None = Field(default=None, description="greatest action")
    mode: Mode | None = Field(
        default=None, description="how it goes wrong: raise, nan_reward, nan_obs or hang"
    )
    at: PositiveInt | None = Field(
        default=None, description="step of its life at which it goes wrong, from 1"
    )
    times: PositiveInt | None = Field(
        default=None, description="steps for which it goes wrong; unset: ever after"
    )
    ms: NonNegative | None = Field(default=None, description="milliseconds that a step sleeps")
    size: PositiveInt | None = Field(default=None, description="height and width of a picture, in pixels")
    frame_stack: PositiveInt = Field(default=1, description="frames that make one observation")

    @model_validator(mode="after")
    def _known(self) -> PropConfig:
        if self.id not in ENVIRONMENTS:
            raise ValueError(f"no testing environment {self.id!r}; there are {', '.join(ENVIRONMENTS)}")
        taken = inspect.signature(ENVIRONMENTS[self.id]).parameters
        foreign = [key for key in self.arguments() if key not in taken]
        if foreign:
            known = ", ".join(taken) or "no key but id"
            raise ValueError(f"{self.id} does not take {', '.join(foreign)} (it takes {known})")
        if self.frame_stack > 1 and isinstance(build_single(self).observation, DictSpec):
            raise ValueError(f"{self.id} observes several arrays and takes no frame_stack")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"low ({self.low}) must be less than high ({self.high})")
        return self

    def arguments(self) -> dict[str, Any]:
        """The keys that were given, for the environment's constructor."""
        given = self.model_dump(exclude={"id", "frame_stack"})
        return {key: value for key, value in given.items() if value is not None}


def build_single(config: PropConfig) -> SingleEnvironment:
    """One environment of the configuration."""
    return ENVIRONMENTS[config.id](**config.arguments())


def get_env_spec(config: PropConfig) -> EnvSpec:
    """What the environment looks like."""
    single = build_single(config)
    observation = single.observation
    if isinstance(observation, ArraySpec):
        observation = replace(observation, frame_stack=config.frame_stack)
    return EnvSpec(observation=observation, action=single.action, id=config.id)


def build_env(config: PropConfig, context: EnvContext) -> InlineEnvironment:
    """``context.num_envs`` of them; every ``reuse`` environment hands out the same arrays each step."""
    singles = [build_single(config) for _ in range(context.num_envs)]
    return InlineEnvironment(singles, reuse=config.id == "reuse")


PROPS = EnvBackend(get_env_spec=get_env_spec, build_env=build_env)

BACKEND = EnvBackendSpec(
    name="testing",
    summary="environments with known answers and planned failures, for tests",
    config="omnirl.testing.environments:PropConfig",
    backend="omnirl.testing.environments:PROPS",
)
