"""The ``network`` section that all algorithms share. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from omnirl.api import Config, DictSpec, Flag, IntTuple, ObservationSpec, PositiveInt
from omnirl.networks.own_class import check_kwargs, load_class

Activation = Literal["tanh", "relu", "elu", "silu"]
ImageKind = Literal["cnn", "resnet", "minatar"]
_NATURE_SIDE = 36  # pixels: what the convolutions of Nature DQN need


class NetworkConfig(Config):
    """Which network, and its size. A ``kind`` for images changes the defaults of the other keys."""

    _kinds_with_a_class: ClassVar[tuple[str, ...]] = ("auto",)
    _image_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "cnn": {"hidden_sizes": (512,), "activation": "relu"},
        "resnet": {"hidden_sizes": (256,), "activation": "relu"},
        "minatar": {"hidden_sizes": (128,), "activation": "relu"},
    }

    kind: Literal["auto", "mlp", "cnn", "resnet", "minatar"] = Field(
        default="auto",
        description="mlp for vectors; for images cnn (Nature DQN, from 36 x 36 pixels), resnet (IMPALA), minatar (one "
        "small convolution); auto: mlp, or for images cnn, or minatar where they are smaller than cnn takes",
    )
    hidden_sizes: IntTuple = Field(
        default=(64, 64),
        description="units of each hidden layer; those after the convolutions of cnn 512, resnet 256, minatar 128",
    )
    activation: Activation = Field(
        default="tanh",
        description="non-linearity of the hidden layers: tanh, relu, elu or silu (for images relu)",
    )
    layer_norm: Flag = Field(
        default=False, description="normalise each hidden layer before its non-linearity (no convolutions)"
    )
    class_: str | None = Field(
        default=None,
        alias="class",
        description="package.module:Class, a torch module of your own that makes features of observations; the hidden "
        "layers and the heads follow",
    )
    kwargs: dict[str, Any] = Field(
        default_factory=dict, description="arguments of the class beside the observation"
    )

    @field_validator("class_")
    @classmethod
    def _usable(cls, value: str | None) -> str | None:
        if value is not None:
            load_class(value)
        return value

    @field_validator("kwargs")
    @classmethod
    def _taken_by_the_class(cls, value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        reference = info.data.get("class_")
        if reference is not None:
            check_kwargs(reference, value)
        elif value and "class_" in info.data:
            raise ValueError("are those of a class of your own, and none is named (modules.network.class)")
        return value

    @model_validator(mode="after")
    def _has_an_effect(self) -> NetworkConfig:
        if self.class_ is not None and self.kind not in self._kinds_with_a_class:
            raise ValueError(f"kind: {self.kind} has no effect beside class (leave it out)")
        if self.layer_norm and not self.hidden_sizes:
            raise ValueError("layer_norm has no effect: hidden_sizes is empty")
        return self

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_kind(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and isinstance(data.get("kind"), str):
            return {**cls._image_defaults.get(data["kind"], {}), **data}
        return data

    def undecided(self) -> frozenset[str]:
        """The fields whose defaults depend on what ``kind: auto`` becomes."""
        open_ = self.kind == "auto" and self.class_ is None
        own = {"hidden_sizes", "activation"} if open_ else set()
        return frozenset(own - self.model_fields_set)

    def for_observation(self, observation: ObservationSpec) -> NetworkConfig:
        """The same with ``kind: auto`` decided, and with the defaults of that kind where nothing was set."""
        if self.kind != "auto" or self.class_ is not None:
            return self
        entries = observation.entries if isinstance(observation, DictSpec) else (("", observation),)
        entries = getattr(observation, "images", entries)  # what joins the entries of a dictionary keeps them
        sides = [min(entry.shape[1:]) for _, entry in entries if entry.layout == "image"]
        kind = "mlp" if not sides else "cnn" if min(sides) >= _NATURE_SIDE else "minatar"
        given = {name: getattr(self, name) for name in self.model_fields_set - {"class_", "kwargs"}}
        return type(self).model_validate({**given, "kind": kind})


class ActorCriticNetworkConfig(NetworkConfig):
    """Policy and value, on a trunk each or on one."""

    shared_trunk: bool | None = Field(
        default=None,
        description="one trunk under policy and value, or one each (unset: one each for vectors, shared for images and "
        "own classes)",
    )


class ValueNetworkConfig(NetworkConfig):
    """The same with ReLU by default, as the value learners' references have it."""

    activation: Activation = Field(
        default="relu", description="non-linearity of the hidden layers: tanh, relu, elu or silu"
    )


class DuelingNetworkConfig(ValueNetworkConfig):
    """A trunk and two streams; each stream has the last of the hidden layers for itself."""

    rescale_gradient: bool = Field(
        default=True, description="multiply the gradient that the two streams give to the trunk by 1/sqrt(2)"
    )

    @model_validator(mode="after")
    def _streams_have_a_layer(self) -> DuelingNetworkConfig:
        if not self.hidden_sizes:
            raise ValueError("hidden_sizes needs at least one layer, which each of the two streams has")
        return self


class OffPolicyNetworkConfig(ValueNetworkConfig):
    """Actor and critics apart, of [256, 256] by default, as the references of SAC and TD3 have them."""

    kind: Literal["mlp"] = Field(default="mlp", description="mlp, the network for vectors")
    hidden_sizes: IntTuple = Field(default=(256, 256), description="units of each hidden layer")
    critic_hidden_sizes: IntTuple | None = Field(
        default=None, description="units of the critics' hidden layers (unset: hidden_sizes)"
    )
    critic_layer_norm: Flag | None = Field(
        default=None,
        description="normalise the critics' hidden layers before their non-linearity (unset: layer_norm)",
    )

    _kinds_with_a_class: ClassVar[tuple[str, ...]] = ("mlp",)

    @model_validator(mode="after")
    def _critics_have_layers(self) -> OffPolicyNetworkConfig:
        sizes, _ = self.of_critics()
        if self.critic_layer_norm and not sizes:
            raise ValueError("critic_layer_norm has no effect: the critics have no hidden layers")
        return self

    def of_critics(self) -> tuple[tuple[int, ...], bool]:
        """The units of the critics' hidden layers, and whether these are normalised."""
        sizes, normalized = self.critic_hidden_sizes, self.critic_layer_norm
        return (
            self.hidden_sizes if sizes is None else sizes,
            self.layer_norm if normalized is None else normalized,
        )


class CriticsNetworkConfig(OffPolicyNetworkConfig):
    """The same with a number of critics."""

    num_critics: PositiveInt = Field(default=2, description="critics, each with a target network")
