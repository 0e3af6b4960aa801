"""The base of every configuration model, and field types that read YAML as people write it.

A model's field has one description line with its unit; that line is also the reference documentation::

    class LearnerConfig(Config):
        lr: Schedule = Field(default=Constant(value=3e-4), description="learning rate of Adam")
        gamma: Fraction = Field(default=0.99, description="discount per environment step")

Models are strict (a string is no number), frozen, refuse unknown keys and NaN. ``1e5`` is accepted where an integer
is meant, and a list where a tuple is. Counts fit into the 64 bits and other numbers into the single precision that
numpy and torch compute with; wider ones would fail, or become infinite, only there.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MOST = 2**63 - 1
"""The greatest count."""
LARGEST = 3.4e38
"""The largest size of any other number."""


class Config(BaseModel):
    """Base of every configuration model."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )


def _integral(value: Any) -> Any:
    """1e5 is an integer to people; 1.5 is left for pydantic to refuse."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _tuple(value: Any) -> Any:
    return tuple(_integral(item) for item in value) if isinstance(value, list | tuple) else value


Int: TypeAlias = Annotated[int, BeforeValidator(_integral)]
PositiveInt: TypeAlias = Annotated[int, BeforeValidator(_integral), Field(ge=1, le=MOST)]
NonNegativeInt: TypeAlias = Annotated[int, BeforeValidator(_integral), Field(ge=0, le=MOST)]
Number: TypeAlias = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Positive: TypeAlias = Annotated[float, Field(gt=0, le=LARGEST)]
NonNegative: TypeAlias = Annotated[float, Field(ge=0, le=LARGEST)]
Fraction: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Flag: TypeAlias = bool
IntTuple: TypeAlias = Annotated[tuple[PositiveInt, ...], BeforeValidator(_tuple)]
