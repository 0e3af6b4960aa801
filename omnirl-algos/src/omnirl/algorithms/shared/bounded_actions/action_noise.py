"""Noise for policies that are not random by themselves: the keys, and the noise. Imports no torch.

All in half ranges of the action: 0.1 is a tenth of the way from the middle to a bound, whatever the units.

Letters: B environments, A size of an action.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

from omnirl import api
from omnirl.algorithms.shared.acting.bounded_heads import ActionScale, Stateless
from omnirl.algorithms.shared.acting.distributions import NoiseBlock, normal
from omnirl.algorithms.shared.schedule_fields import NonNegativeSchedule
from omnirl.api import ActContext, Array, Constant, ContinuousAction, Fraction, Positive, value_at


class GaussianNoiseConfig(api.Config):
    """Independent noise in every step."""

    kind: Literal["gaussian"] = Field(default="gaussian", description="the kind of noise")
    std: NonNegativeSchedule = Field(
        default=Constant(value=0.1), description="standard deviation in half ranges of the action"
    )


class OrnsteinUhlenbeckConfig(api.Config):
    """Noise that drifts, so that an inert system is pushed one way for a while."""

    kind: Literal["ou"] = Field(description="the kind of noise")
    std: NonNegativeSchedule = Field(
        default=Constant(value=0.2), description="sigma, in half ranges of the action"
    )
    theta: Fraction = Field(default=0.15, description="share by which it returns to 0 per unit of time")
    dt: Positive = Field(
        default=1.0, description="time of a step: 1 in the DDPG paper, 0.01 in Stable-Baselines3"
    )


NoiseConfig: TypeAlias = Annotated[GaussianNoiseConfig | OrnsteinUhlenbeckConfig, Field(discriminator="kind")]


class GaussianNoise(Stateless):
    """std times a normal sample, drawn ``rows`` steps at a time."""

    def __init__(self, config: GaussianNoiseConfig, shape: tuple[int, int], rows: int) -> None:
        self._std = config.std
        self._noise = NoiseBlock(normal, rows, shape)

    def next(self, act: ActContext) -> Array:
        """[B, A] float32, a new array."""
        noise: Array = self._noise.next(act.rng) * np.float32(value_at(self._std, act))
        return noise


class OrnsteinUhlenbeckNoise:
    """Each environment's noise begins at 0 with its episode (Lillicrap et al. 2016, arXiv:1509.02971, section 7)."""

    def __init__(self, config: OrnsteinUhlenbeckConfig, shape: tuple[int, int], rows: int) -> None:
        self._config = config
        self._noise = NoiseBlock(normal, rows, shape)
        self._value = np.zeros(shape, np.float32)

    def next(self, act: ActContext) -> Array:
        """[B, A] float32, a new array."""
        config = self._config
        before = np.where(act.first[:, None], np.float32(0.0), self._value)
        xi = self._noise.next(act.rng)
        self._value = ou_step(before, xi, theta=config.theta, sigma=value_at(config.std, act), dt=config.dt)
        return np.copy(self._value)

    def state_dict(self) -> dict[str, Any]:
        """The noise of the last step, [B, A]."""
        return {"noise": self._value.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there; a run that had no such noise begins at 0. ValueError on another shape."""
        if "noise" in state:
            value = np.array(state["noise"], np.float32)
            if value.shape != self._value.shape:
                raise ValueError(f"the noise's shape {value.shape} does not fit {self._value.shape}")
            self._value = value


def ou_step(x: Array, xi: Array, *, theta: float, sigma: float, dt: float) -> Array:
    """x - theta x dt + sigma sqrt(dt) xi, in float32: the Ornstein-Uhlenbeck process around 0."""
    result: Array = x - np.float32(theta * dt) * x + np.float32(sigma * math.sqrt(dt)) * xi
    return result


class TanhHead:
    """Outputs [B, A]: tanh, and noise on top when exploring, kept within the bounds."""

    def __init__(self, spec: ContinuousAction, noise: NoiseConfig, num_envs: int, rows: int) -> None:
        self.outputs = len(spec.low)
        self._scale = ActionScale(spec)
        shape = (num_envs, self.outputs)
        self._noise = (
            GaussianNoise(noise, shape, rows)
            if isinstance(noise, GaussianNoiseConfig)
            else OrnsteinUhlenbeckNoise(noise, shape, rows)
        )

    def mode(self, outputs: Array) -> Array:
        """Without noise."""
        return self._scale.to_environment(np.tanh(outputs))

    def explore(self, outputs: Array, act: ActContext) -> Array:
        """With the noise of this step."""
        action = self._noise.next(act)
        action += np.tanh(outputs)
        return self._scale.to_environment(action)

    def state_dict(self) -> dict[str, Any]:
        """The noise's."""
        return self._noise.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the noise."""
        self._noise.load_state_dict(state)
