"""Config fields that take a number or a schedule within a range. Imports no torch."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from omnirl.api import Schedule, extremes


def _non_negative(schedule: Schedule) -> Schedule:
    least, _ = extremes(schedule)
    if least < 0:
        raise ValueError(f"must be at least 0 throughout, and is {least:g} at its least")
    return schedule


def _fraction(schedule: Schedule) -> Schedule:
    least, greatest = extremes(schedule)
    for value in (least, greatest):
        if not 0 <= value <= 1:
            raise ValueError(f"must be between 0 and 1 throughout, and reaches {value:g}")
    return schedule


NonNegativeSchedule: TypeAlias = Annotated[Schedule, AfterValidator(_non_negative)]
"""At least 0 at every moment: learning rates, coefficients."""
FractionSchedule: TypeAlias = Annotated[Schedule, AfterValidator(_fraction)]
"""Between 0 and 1 at every moment: probabilities."""
