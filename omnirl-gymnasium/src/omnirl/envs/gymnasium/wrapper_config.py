"""What may stand in the list ``env.wrappers``: a model for each wrapper, which checks its parameters.

An entry is a name (``atari``), a mapping of one name to its parameters (``resize: {height: 84, width: 84}``), or a
class of anybody's (``class: acme_envs.wrappers:Reach``). Needs no Gymnasium, as all of the configuration.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from omnirl.api.config import Config, Flag, NonNegativeInt, Number, PositiveInt

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


class Atari(Config):
    """The preprocessing of Atari games. In evaluation no life ends an episode and no reward is clipped."""

    noop_max: NonNegativeInt = Field(default=30, description="most no-op actions that begin a game")
    frame_skip: PositiveInt = Field(
        default=4, description="frames per step, whose last two are merged by their maximum"
    )
    screen_size: PositiveInt = Field(default=84, description="height and width of the picture, in pixels")
    grey: Flag = Field(default=True, description="one grey channel instead of red, green and blue")
    life_loss: Flag = Field(
        default=True, description="in training a lost life ends the episode, while the game goes on"
    )
    fire: Flag = Field(
        default=True, description="press FIRE where a life begins, in games that have that as second action"
    )
    clip_reward: Flag = Field(default=True, description="in training replace rewards by their sign")


class Resize(Config):
    """Another size of the picture."""

    height: PositiveInt = Field(description="rows, in pixels")
    width: PositiveInt = Field(description="columns, in pixels")


class Grey(Config):
    """A grey picture of a red, green and blue one."""


class Crop(Config):
    """A picture without some of its border."""

    top: NonNegativeInt = Field(default=0, description="rows cut off at the top, in pixels")
    bottom: NonNegativeInt = Field(default=0, description="rows cut off at the bottom, in pixels")
    left: NonNegativeInt = Field(default=0, description="columns cut off at the left, in pixels")
    right: NonNegativeInt = Field(default=0, description="columns cut off at the right, in pixels")

    @model_validator(mode="after")
    def _crops_something(self) -> Crop:
        if not (self.top or self.bottom or self.left or self.right):
            raise ValueError("needs top, bottom, left or right")
        return self


class FrameSkip(Config):
    """Each action is repeated; the rewards are summed."""

    frames: PositiveInt = Field(description="steps of the environment per step of the agent")
    max_last_two: Flag = Field(
        default=False, description="observe the maximum of the last two frames instead of the last one"
    )


class TimeLimit(Config):
    """Episodes are truncated, in training and in evaluation."""

    steps: PositiveInt = Field(description="most steps of an episode, counted where this wrapper stands")


class RewardScale(Config):
    """Scaled rewards, in training only."""

    factor: Number = Field(description="every training reward is multiplied by it")


class RewardClip(Config):
    """Clipped rewards, in training only."""

    low: Number = Field(default=-1.0, description="least training reward")
    high: Number = Field(default=1.0, description="greatest training reward")

    @model_validator(mode="after")
    def _ordered(self) -> RewardClip:
        if self.low >= self.high:
            raise ValueError(f"low: must be less than high ({self.high:g}), not {self.low:g}")
        return self


class Flatten(Config):
    """One vector of all numbers of an observation."""


class AtariEntry(Config):
    """``atari``."""

    atari: Atari = Field(
        description="no-op start, frame skip, lives, FIRE, a small grey picture, signs as rewards"
    )


class ResizeEntry(Config):
    """``resize``."""

    resize: Resize = Field(description="a picture of another size, each pixel the mean of its area")


class GreyEntry(Config):
    """``grey``."""

    grey: Grey = Field(description="a grey picture of a red, green and blue one")


class CropEntry(Config):
    """``crop``."""

    crop: Crop = Field(description="a picture without some of its border")


class FrameSkipEntry(Config):
    """``frame_skip``."""

    frame_skip: FrameSkip = Field(description="each action is repeated and the rewards are summed")


class TimeLimitEntry(Config):
    """``time_limit``."""

    time_limit: TimeLimit = Field(description="episodes are truncated after so many steps")


class RewardScaleEntry(Config):
    """``reward_scale``."""

    reward_scale: RewardScale = Field(
        description="training rewards are multiplied; evaluation sees them as they are"
    )


class RewardClipEntry(Config):
    """``reward_clip``."""

    reward_clip: RewardClip = Field(
        description="training rewards are clipped; evaluation sees them as they are"
    )


class FlattenEntry(Config):
    """``flatten``."""

    flatten: Flatten = Field(description="one vector of all numbers of an observation")


class ClassEntry(Config):
    """Any wrapper, by its dotted path."""

    class_: str = Field(
        alias="class", description="package.module:Class, called with the environment and kwargs"
    )
    kwargs: dict[str, Any] = Field(
        default_factory=dict, description="arguments of the class beside the environment"
    )
    training_only: Flag = Field(default=False, description="leave it out in evaluation")

    @field_validator("class_")
    @classmethod
    def _reference(cls, value: str) -> str:
        if not _REFERENCE.fullmatch(value):
            raise ValueError(f"must be of the form package.module:Class, not {value!r}")
        return value


_ENTRIES = (
    AtariEntry,
    ResizeEntry,
    GreyEntry,
    CropEntry,
    FrameSkipEntry,
    TimeLimitEntry,
    RewardScaleEntry,
    RewardClipEntry,
    FlattenEntry,
)
NAMES = tuple(next(iter(entry.model_fields)) for entry in _ENTRIES)
"""The wrappers that a name chooses."""


def _entry(value: Any) -> Any:
    """A name, or a name with nothing after it, as a mapping of it to no parameters; one of several is refused."""
    if isinstance(value, str):
        value = {value: None}
    if not isinstance(value, Mapping) or "class" in value:
        return value
    if len(value) != 1:
        shown = ", ".join(map(str, value)) or "none"
        raise ValueError(f"each entry of the list names one wrapper, not several or none ({shown})")
    ((name, parameters),) = value.items()
    if name not in NAMES:
        near = difflib.get_close_matches(str(name), [*NAMES, "class"], n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(NAMES)}, class"
        raise ValueError(f"unknown wrapper {name!r} ({hint})")
    return {name: {} if parameters is None else parameters}


def _tag(value: Any) -> str | None:
    keys = value if isinstance(value, Mapping) else getattr(type(value), "model_fields", {})
    if "class" in keys or "class_" in keys:
        return "class"
    return next((name for name in NAMES if name in keys), None)


WrapperEntry: TypeAlias = Annotated[
    Annotated[AtariEntry, Tag("atari")]
    | Annotated[ResizeEntry, Tag("resize")]
    | Annotated[GreyEntry, Tag("grey")]
    | Annotated[CropEntry, Tag("crop")]
    | Annotated[FrameSkipEntry, Tag("frame_skip")]
    | Annotated[TimeLimitEntry, Tag("time_limit")]
    | Annotated[RewardScaleEntry, Tag("reward_scale")]
    | Annotated[RewardClipEntry, Tag("reward_clip")]
    | Annotated[FlattenEntry, Tag("flatten")]
    | Annotated[ClassEntry, Tag("class")],
    Discriminator(
        _tag,
        custom_error_type="wrapper",
        custom_error_message="Input should be the name of a wrapper, or a mapping of one to its parameters",
    ),
    BeforeValidator(_entry),
]
"""One entry of ``env.wrappers``."""
