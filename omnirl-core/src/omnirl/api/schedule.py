"""Numbers that change over a run: pure functions of the clock, so exact after a resume.

In YAML a plain number is constant; otherwise a mapping names its kind::

    lr: 3e-4
    lr: {kind: linear, start: 1e-3, end: 0}                           # over the whole run
    epsilon: {kind: linear, start: 1, end: 0.05, steps: 10000}        # over environment steps
    epsilon: {kind: linear, start: 1, end: 0.04, until: 0.16}         # until 16 % of the run
    lr: {kind: linear, start: 1e-3, end: 0, after: 0.5}               # constant for the first half
    lr: {kind: exponential, start: 1e-3, end: 1e-5}                   # by a constant factor
    lr: {kind: piecewise, points: [[0, 0], [0.1, 1e-3], [1, 0]]}      # up for a tenth of the run, then down
    epsilon: {kind: piecewise, steps: [[0, 1], [10000, 0.1], [50000, 0.01]]}

``after``, ``until`` and ``points`` are fractions of the run's stop target (``progress``); ``steps`` counts environment
steps.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, Protocol, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from omnirl.api.config import Config, Fraction, NonNegativeInt, Number, PositiveInt


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


_Fractions = Annotated[tuple[tuple[Fraction, Number], ...], Field(min_length=1)]
_Steps = Annotated[tuple[tuple[NonNegativeInt, Number], ...], Field(min_length=1)]


class Piecewise(Config):
    """Straight lines between points ``[moment, value]``; constant before the first and after the last."""

    kind: Literal["piecewise"] = Field(description="the kind of schedule")
    points: Annotated[_Fractions | None, BeforeValidator(_points)] = Field(
        default=None, description="[fraction of the run, value] in rising order of the fraction"
    )
    steps: Annotated[_Steps | None, BeforeValidator(_points)] = Field(
        default=None, description="[environment steps, value] in rising order, instead of points"
    )

    @model_validator(mode="after")
    def _rising(self) -> Piecewise:
        if (self.points is None) == (self.steps is None):
            raise ValueError("give either points, of fractions of the run, or steps, of environment steps")
        if any(b <= a for (a, _), (b, _) in pairwise(self.corners)):
            moments = "fractions of the points" if self.steps is None else "numbers of the steps"
            raise ValueError(f"the {moments} must rise")
        return self

    @property
    def corners(self) -> tuple[tuple[float, float], ...]:
        """The points, whichever clock they follow."""
        return self.steps if self.steps is not None else self.points or ()

    def at(self, clock: ScheduleClock) -> float:
        """The value at this moment."""
        now = clock.progress if self.steps is None else clock.env_steps
        previous = self.corners[0]
        for corner in self.corners:
            if now < corner[0]:
                if corner is previous:
                    return corner[1]
                share = (now - previous[0]) / (corner[0] - previous[0])
                return previous[1] + (corner[1] - previous[1]) * share
            previous = corner
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
        [value for _, value in schedule.corners]
        if isinstance(schedule, Piecewise)
        else [schedule.start, schedule.end]
    )
    return min(values), max(values)
