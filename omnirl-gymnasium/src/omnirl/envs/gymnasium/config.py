"""What may stand under ``env`` in a configuration file when ``module`` is ``gymnasium``.

Needs no Gymnasium: files are checked before any environment is imported. Whether the id exists, whether the
environment takes these kwargs and whether its spaces are supported is asked of Gymnasium in the next stage.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from omnirl.api.config import Config, PositiveInt
from omnirl.envs.gymnasium import metric_config
from omnirl.envs.gymnasium.wrapper_config import WrapperEntry

MOST_FRAMES = 1000
"""Of a stack; what goes on for longer is nothing that a stack is for."""


def _entries(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError(f"must be a list of wrappers, such as [{value}]")
    return tuple(value) if isinstance(value, list) else value


def _modules(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError(f"must be a list of module names, such as [{value}]")
    return tuple(value) if isinstance(value, list) else value


def _metrics(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError(f"must be a list of entries of info, such as [{value}]")
    return tuple(value) if isinstance(value, list) else value


class GymnasiumConfig(Config):
    """Which environment, built how."""

    id: str = Field(min_length=1, description="registered name, such as CartPole-v1 or ALE/Pong-v5")
    kwargs: dict[str, Any] = Field(
        default_factory=dict,
        description="arguments of gymnasium.make: the environment's own, and max_episode_steps",
    )
    imports: Annotated[tuple[str, ...], BeforeValidator(_modules, json_schema_input_type=list[str])] = Field(
        default=(), description="modules to import first, because importing them registers their environments"
    )
    layout: Literal["auto", "hwc", "chw"] = Field(
        default="auto",
        description="axes of image observations: hwc (height, width, channels) or chw, which then every array of three "
        "axes is; auto: uint8 arrays are images, and the layout is inferred and told",
    )
    frame_stack: PositiveInt = Field(
        default=1,
        description="latest frames that make one observation, stored singly (4 for Atari; at most 1000)",
    )
    action_mask: Literal["observation", "info", "method", "none"] = Field(
        default="observation",
        description="where the legal actions are told: entry action_mask of a Dict observation, "
        "info['action_mask'], the method action_masks(), or none to ignore them",
    )
    vectorization: Literal["auto", "inline", "process", "native"] = Field(
        default="auto",
        description="how the environments of one sampler are stepped: inline, one after the other; process, in "
        "processes of their own; native, by the id's vector version; auto: inline or process, measured at the start",
    )
    wrappers: Annotated[
        tuple[WrapperEntry, ...], BeforeValidator(_entries, json_schema_input_type=list[WrapperEntry])
    ] = Field(
        default=(),
        description="wrappers around each environment, the first innermost: names, or {name: parameters}",
    )
    render_mode: Literal["human", "rgb_array"] | None = Field(
        default=None,
        description="how evaluators' environments render: human opens a window; never in training",
    )
    metrics: Annotated[tuple[str, ...], BeforeValidator(_metrics, json_schema_input_type=list[str])] = Field(
        default=(),
        description="entries of info that evaluations report as eval_<name>: success, name (its last value in an "
        "episode), sum:name or mean:name (over the episode's steps)",
    )

    @field_validator("kwargs")
    @classmethod
    def _not_in_kwargs(cls, kwargs: dict[str, Any]) -> dict[str, Any]:
        for key in ("id", "render_mode"):
            if key in kwargs:
                raise ValueError(f"{key} belongs beside kwargs, as env.{key}")
        return kwargs

    @field_validator("frame_stack")
    @classmethod
    def _few_frames(cls, frames: int) -> int:
        if frames > MOST_FRAMES:
            raise ValueError(
                f"must be at most {MOST_FRAMES}, not {frames}: every number of every frame is an input of the network "
                "at each step"
            )
        return frames

    @field_validator("metrics")
    @classmethod
    def _columns(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        return metric_config.check(metrics)

    @field_validator("imports")
    @classmethod
    def _module_names(cls, modules: tuple[str, ...]) -> tuple[str, ...]:
        for module in modules:
            if not all(part.isidentifier() for part in module.split(".")):
                raise ValueError(f"{module!r} is not the name of a module, such as acme_envs.register")
        return modules
