"""The ``network`` section that all algorithms share. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from omnirl.api import Config, DictSpec, Flag, IntTuple, ObservationSpec, PositiveInt

Activation = Literal["tanh", "relu", "elu", "silu"]
ImageKind = Literal["cnn", "resnet", "minatar"]
_NATURE_SIDE = 36  # pixels: what the convolutions of Nature DQN need


class NetworkConfig(Config):
    """Which network, and its size. A ``kind`` for images changes the defaults of the other keys."""

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

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_kind(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and isinstance(data.get("kind"), str):
            return {**cls._image_defaults.get(data["kind"], {}), **data}
        return data

    def undecided(self) -> frozenset[str]:
        """The fields whose defaults depend on what ``kind: auto`` becomes."""
        own = {"hidden_sizes", "activation"} if self.kind == "auto" else set()
        return frozenset(own - self.model_fields_set)

    def for_observation(self, observation: ObservationSpec) -> NetworkConfig:
        """The same with ``kind: auto`` decided, and with the defaults of that kind where nothing was set."""
        if self.kind != "auto":
            return self
        entries = observation.entries if isinstance(observation, DictSpec) else (("", observation),)
        entries = getattr(observation, "images", entries)  # what joins the entries of a dictionary keeps them
        sides = [min(entry.shape[1:]) for _, entry in entries if entry.layout == "image"]
        kind = "mlp" if not sides else "cnn" if min(sides) >= _NATURE_SIDE else "minatar"
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self).model_validate({**given, "kind": kind})


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


class OffPolicyNetworkConfig(ValueNetworkConfig):
    """Actor and critics apart, of [256, 256] by default, as the references of SAC and TD3 have them."""

    kind: Literal["mlp"] = Field(default="mlp", description="mlp, the network for vectors")
    hidden_sizes: IntTuple = Field(default=(256, 256), description="units of each hidden layer")
    critic_hidden_sizes: IntTuple | None = Field(
        default=None, description="units of the critics' hidden layers (unset: hidden_sizes)"
    )
    critic_layer_norm: Flag = Field(
        default=False, description="normalise the critics' hidden layers before their non-linearity"
    )


class CriticsNetworkConfig(OffPolicyNetworkConfig):
    """The same with a number of critics."""

    num_critics: PositiveInt = Field(default=2, description="critics, each with a target network")
