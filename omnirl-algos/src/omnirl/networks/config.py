"""The ``network`` section that all algorithms share. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from omnirl.api import Config, IntTuple, PositiveInt

Activation = Literal["tanh", "relu"]


class NetworkConfig(Config):
    """Which network, and its size. ``kind: cnn`` changes the defaults of the other keys to those of Nature
    DQN."""

    _cnn_defaults: ClassVar[Mapping[str, Any]] = {"hidden_sizes": (512,), "activation": "relu"}

    kind: Literal["mlp", "cnn"] = Field(
        default="mlp",
        description="mlp for vector observations, cnn (the convolutions of Nature DQN) for images",
    )
    hidden_sizes: IntTuple = Field(
        default=(64, 64),
        description="units of each hidden layer; for cnn of those after the convolutions (512)",
    )
    activation: Activation = Field(
        default="tanh", description="non-linearity of the hidden layers: tanh or relu (for cnn relu)"
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_kind(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("kind") == "cnn":
            return {**cls._cnn_defaults, **data}
        return data


class ValueNetworkConfig(NetworkConfig):
    """The same with ReLU by default, as the value learners' references have it."""

    activation: Activation = Field(
        default="relu", description="non-linearity of the hidden layers: tanh or relu (for cnn relu)"
    )


class OffPolicyNetworkConfig(ValueNetworkConfig):
    """Actor and critics apart, of [256, 256] by default, as the references of SAC and TD3 have them."""

    hidden_sizes: IntTuple = Field(default=(256, 256), description="units of each hidden layer")
    critic_hidden_sizes: IntTuple | None = Field(
        default=None, description="units of the critics' hidden layers (unset: hidden_sizes)"
    )


class CriticsNetworkConfig(OffPolicyNetworkConfig):
    """The same with a number of critics."""

    num_critics: PositiveInt = Field(default=2, description="critics, each with a target network")
