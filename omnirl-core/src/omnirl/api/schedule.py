"""Numbers that change over a run: pure functions of the clock, so exact after a resume.

In YAML a plain number is constant; otherwise a mapping names its kind::

    lr: 3e-4
    lr: {kind: linear, start: 1e-3, end: 0}                           # over the whole run
    epsilon: {kind: linear, start: 1, end: 0.05, steps: 10000}        # over environment steps
    epsilon: {kind: linear, start: 1, end: 0.04, until: 0.16}         # until 16 % of the run
    lr: {kind: linear, start: 1e-3, end: 0, after: 0.5}               # constant for the first half

``after`` and ``until`` are fractions of the run's stop target (``progress``); ``steps`` counts environment steps.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, Protocol, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from omnirl.api.config import Config, Fraction, Number, PositiveInt


class ScheduleClock(Protocol):
    """What a schedule is a function of: Clock and ActContext both are one."""

    @property
    def env_steps(self) -> int:
        """Environment steps so far."""

    @property
    def progress(self) -> float:
        """Fraction of the stop target, in [0, 1]."""


class Constant(Config):
    """The same value always."""

    kind: Literal["constant"] = Field(default="constant", description="the kind of schedule")
    value: Number = Field(description="the value")

    def at(self, clock: ScheduleClock) -> float:
        """The value."""
        return self.value


class _Ramp(Config):
    start: Number = Field(description="value at the beginning")
    end: Number = Field(description="value at the end and beyond")
    after: Fraction = Field(default=0.0, description="fraction of the run at which the change begins")
    until: Fraction = Field(default=1.0, description="fraction of the run at which the change ends")
    steps: PositiveInt | None = Field(
        default=None, description="environment steps the change takes, instead of after and until"
    )

    @model_validator(mode="after")
    def _ordered(self) -> _Ramp:
        if self.until <= self.after:
            raise ValueError(f"until ({self.until}) must be greater than after ({self.after})")
        if self.steps is not None and (self.after, self.until) != (0.0, 1.0):
            raise ValueError("give either steps, or after and until")
        return self

    def position(self, clock: ScheduleClock) -> float:
        """How far the change has come, in [0, 1]."""
        if self.steps is not None:
            position = clock.env_steps / self.steps
        else:
            position = (clock.progress - self.after) / (self.until - self.after)
        return min(1.0, max(0.0, position))


class Linear(_Ramp):
    """From start to end in a straight line."""

    kind: Literal["linear"] = Field(description="the kind of schedule")

    def at(self, clock: ScheduleClock) -> float:
        """The value at this moment."""
        return self.start + (self.end - self.start) * self.position(clock)


class Exponential(_Ramp):
    """From start to end by a constant factor; both of one sign, neither zero."""

    kind: Literal["exponential"] = Field(description="the kind of schedule")

    @model_validator(mode="after")
    def _same_sign(self) -> Exponential:
        if self.start * self.end <= 0:
            raise ValueError("start and end must have the same sign and not be 0")
        return self

    def at(self, clock: ScheduleClock) -> float:
        """The value at this moment."""
        return float(self.start * (self.end / self.start) ** self.position(clock))


def _points(value: Any) -> Any:
    return (
        tuple(tuple(point) if isinstance(point, list) else point for point in value)
        if isinstance(value, list)
        else value
    )


class Piecewise(Config):
    """Straight lines between points ``[fraction of the run, value]``; constant before the first and after the last."""

    kind: Literal["piecewise"] = Field(description="the kind of schedule")
    points: Annotated[tuple[tuple[Fraction, Number], ...], BeforeValidator(_points), Field(min_length=1)] = (
        Field(description="[fraction of the run, value] in rising order of the fraction")
    )

    @model_validator(mode="after")
    def _rising(self) -> Piecewise:
        fractions = [point[0] for point in self.points]
        if any(b <= a for a, b in pairwise(fractions)):
            raise ValueError("the fractions of the points must rise")
        return self

    def at(self, clock: ScheduleClock) -> float:
        """The value at this moment."""
        previous = self.points[0]
        for point in self.points:
            if clock.progress < point[0]:
                if point is previous:
                    return point[1]
                share = (clock.progress - previous[0]) / (point[0] - previous[0])
                return previous[1] + (point[1] - previous[1]) * share
            previous = point
        return previous[1]


def _from_number(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Constant(value=float(value))
    return value


Schedule: TypeAlias = Annotated[
    Annotated[Constant | Linear | Exponential | Piecewise, Field(discriminator="kind")],
    BeforeValidator(_from_number, json_schema_input_type=float | Constant | Linear | Exponential | Piecewise),
]
"""A field that takes a number or a schedule."""


def value_at(schedule: Constant | Linear | Exponential | Piecewise, clock: ScheduleClock) -> float:
    """The schedule's value at the clock's moment."""
    return schedule.at(clock)


def extremes(schedule: Constant | Linear | Exponential | Piecewise) -> tuple[float, float]:
    """The least and the greatest value a schedule takes: for range checks."""
    if isinstance(schedule, Constant):
        return schedule.value, schedule.value
    values = (
        [point[1] for point in schedule.points]
        if isinstance(schedule, Piecewise)
        else [schedule.start, schedule.end]
    )
    return min(values), max(values)
