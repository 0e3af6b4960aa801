"""A network class of the user's own: what it is given, what it must give, and how it stands in our networks.

::

    class MyNet(torch.nn.Module):
        def __init__(self, observation: ObservationSpec, *, width: int = 64) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(observation.size, width), nn.ReLU())

        def forward(self, observation: Tensor) -> Tensor:
            return self.layers(observation)

The constructor gets the observation's spec, stacked frames included and without the action mask, and the arguments of
``modules.network.kwargs``. ``forward`` gets float32 tensors: [N, *shape], images in [0, 1]; of a dictionary a mapping
of names to such tensors. It gives features, float32 [N, F] for an F of its own. Hidden layers and heads are ours, so
one class does for every algorithm.

A row's features depend on that row and the parameters alone: then a policy sees what the learner saw, and a resumed run
goes on exactly. What random numbers, batch statistics or buffers would add is refused. Initial values are the class's
own, drawn from the learner's seed.

Letters: N batch rows, F features, M critics, A action size, O outputs.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Generator, Tensor, nn

from omnirl.api import ArraySpec, ConfigError, DictSpec, ObservationSpec
from omnirl.networks.config import NetworkConfig
from omnirl.networks.ensemble import EnsembleMLP
from omnirl.networks.features import Features, FeaturesUnderHead
from omnirl.networks.joined import JoinedSpec
from omnirl.networks.own_class import load_class, typed_kwargs
from omnirl.networks.rows import Inputs

_ROWS = 3  # of the observations that a new network is tried with
_Result = TypeVar("_Result")


class OwnClass(nn.Module):
    """An instance of the user's class: rows of observations -> [N, output_size]. ConfigError, one line, where it
    does not keep to what the module's docstring says."""

    def __init__(self, config: NetworkConfig, observation: ArraySpec) -> None:
        super().__init__()
        assert config.class_ is not None
        self._reference = config.class_
        self._kwargs = typed_kwargs(config.class_, config.kwargs)
        self._spec = observation.entries() if isinstance(observation, JoinedSpec) else observation
        self._inputs = Inputs(observation)
        # Learner and policy begin alike, also in what is neither a parameter nor a buffer.
        self.network, self.output_size = self._made(0)

    def forward(self, rows: Tensor) -> Tensor:
        """[N, ...] -> [N, output_size]."""
        features: Tensor = self.network(self._inputs(rows))
        return features

    def init_orthogonal(self, rng: Generator) -> None:
        """As :meth:`init_uniform`: the class knows its own initial values."""
        self.init_uniform(rng)

    def init_uniform(self, rng: Generator) -> None:
        """The parameters of an instance that is made with random numbers of ``rng``."""
        drawn, _ = self._made(int(torch.randint(2**62, (), generator=rng)))
        with torch.no_grad():
            for parameter, value in zip(self.network.parameters(), drawn.parameters(), strict=True):
                parameter.copy_(value)

    def _made(self, seed: int) -> tuple[nn.Module, int]:
        """An instance, tried out, and F."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            made = self._run("", lambda: load_class(self._reference)(self._spec, **self._kwargs))
            self._check_state(made)
            with torch.no_grad():
                size = self._tried(made)
        return made, size

    def _tried(self, made: nn.Module) -> int:
        """F, after ``forward`` has kept to its contract on a few rows."""
        example = _example(self._spec)
        features: Any = self._run(".forward", lambda: made(example))
        if not isinstance(features, Tensor) or features.dim() != 2 or len(features) != _ROWS:
            shape = (
                f"a tensor {list(features.shape)}"
                if isinstance(features, Tensor)
                else type(features).__name__
            )
            raise self._error(f".forward must give features [N, F], and gave {shape} for N = {_ROWS}")
        if features.dtype != torch.float32:
            raise self._error(f".forward must give float32, and gave {features.dtype}")
        if not torch.isfinite(features).all():
            raise self._error(".forward gives NaN or infinity for observations that are finite")
        if not torch.equal(features, self._run(".forward", lambda: made(example))):
            raise self._error(
                ".forward gives other features for the same observation (leave out what is random)"
            )
        alone: Any = self._run(".forward", lambda: made(_row(example)))
        if not torch.allclose(alone, features[:1], rtol=1e-3, atol=1e-4):
            raise self._error(
                ".forward: a row's features depend on the other rows (layer norm does not do that)"
            )
        return features.shape[1]

    def _check_state(self, made: nn.Module) -> None:
        """What is to be kept of an instance are its parameters, and all of them are float32."""
        parameters = dict(made.named_parameters(remove_duplicate=False))
        buffers = [name for name in made.state_dict() if name not in parameters]
        if buffers:
            raise self._error(
                f" has the buffer {buffers[0]!r}, which no weights carry (batch statistics: use layer norm; "
                "a constant: register it with persistent=False)"
            )
        for name, parameter in parameters.items():
            if parameter.dtype != torch.float32:
                raise self._error(f": the parameter {name!r} must be float32, not {parameter.dtype}")

    def _run(self, what: str, call: Callable[[], _Result]) -> _Result:
        """The result of the user's code; what it raises as one line, with the place in the file."""
        try:
            return call()
        except (Exception, SystemExit) as error:
            text = f"{what} raised {type(error).__name__}: {' '.join(str(error).split())}"
            own = getattr(sys.modules.get(load_class(self._reference).__module__), "__file__", None)
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == own]
            place = f" ({own}:{lines[-1]})" if lines else ""
            raise self._error(text + place) from error

    def _error(self, text: str) -> ConfigError:
        return ConfigError(f"modules.network.class: {self._reference}{text}")


def _example(spec: ObservationSpec) -> Tensor | dict[str, Tensor]:
    """Observations as ``forward`` gets them."""
    if isinstance(spec, DictSpec):
        return {name: torch.rand((_ROWS, *entry.shape)) for name, entry in spec.entries}
    return torch.rand((_ROWS, *spec.shape))


def _row(example: Tensor | dict[str, Tensor]) -> Tensor | dict[str, Tensor]:
    return example[:1] if isinstance(example, Tensor) else {name: part[:1] for name, part in example.items()}


class OwnFeatures(Features):
    """The class under the hidden layers: [N, ...] -> [N, output_size]."""

    def __init__(self, config: NetworkConfig, observation: ArraySpec) -> None:
        own = OwnClass(config, observation)
        sizes, activation = config.hidden_sizes, config.activation
        super().__init__("own", own, own.output_size, sizes, activation, config.layer_norm)

    def encode(self, x: Tensor) -> Tensor:
        """[N, ...] -> [N, encoded]."""
        encoded: Tensor = self.encoders[0](x)
        return encoded


class OwnNetwork(FeaturesUnderHead):
    """The same under one linear head: [N, ...] -> [N, outputs]."""

    def __init__(self, config: NetworkConfig, observation: ArraySpec, outputs: int) -> None:
        super().__init__(OwnFeatures(config, observation), outputs, config.activation)


class OwnCritics(nn.Module):
    """Critics with an instance of the class each: observations with actions behind them -> [M, N, O]. The action joins
    the features, and the hidden layers follow."""

    def __init__(
        self,
        config: NetworkConfig,
        observation: ArraySpec,
        members: int,
        action_size: int,
        sizes: tuple[int, ...],
        normalized: bool,
    ) -> None:
        super().__init__()
        self._size = observation.size
        owns = [OwnClass(config, observation) for _ in range(members)]
        self.owns = nn.ModuleList(owns)
        self._owns = tuple(owns)
        self.joined = EnsembleMLP(
            members, (owns[0].output_size + action_size, *sizes), config.activation, normalized
        )

    def forward(self, x: Tensor, members: int | None = None) -> Tensor:
        """Rows [N, observation and A] -> [M, N, O], of the first ``members`` (all)."""
        obs, action = x[:, : self._size], x[:, self._size :]
        joined = torch.stack([torch.cat((own(obs), action), 1) for own in self._owns[:members]])
        outputs: Tensor = self.joined(joined, members)
        return outputs

    def init_uniform(self, rng: Generator) -> None:
        """Each by itself."""
        for own in self._owns:
            own.init_uniform(rng)
        self.joined.init_uniform(rng)
