"""Spaces by what ``Supports`` calls them: those an algorithm must work with, and those OmniRL refuses for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnirl.api.errors import ConfigError
from omnirl.api.plugin import AlgorithmSpec, Supports
from omnirl.api.specs import (
    ActionSpec,
    ArraySpec,
    ContinuousAction,
    DictSpec,
    DiscreteAction,
    EnvSpec,
    MultiDiscreteAction,
    ObservationSpec,
)
from omnirl.config.check import check_spaces
from omnirl.config.files import from_mapping
from omnirl.config.resolve import resolve
from omnirl.plugins import PluginSource, Provided, Registry
from omnirl.testing.environments import BACKEND

_INF = float("inf")
ACTIONS: Mapping[str, ActionSpec] = {
    "discrete": DiscreteAction(3),
    "multi_discrete": MultiDiscreteAction((2, 3)),
    "bounded_continuous": ContinuousAction((-1.0, -2.0), (1.0, 3.0)),
    "continuous": ContinuousAction((-_INF, -1.0), (_INF, 1.0)),
}
_COVERED = {"bounded_continuous": {"continuous", "bounded_continuous"}}
"""What an algorithm may say to be given a kind: one for all continuous actions takes bounded ones too."""


def spaces_of(supports: Supports, features: int = 3) -> dict[str, EnvSpec]:
    """One EnvSpec for each kind of action: of vectors where the algorithm takes them."""
    layout = "vector" if "vector" in supports.observations else supports.observations[0]
    return {
        name: EnvSpec(_observation(layout, features), action, id=name)
        for name, action in ACTIONS.items()
        if _takes(supports, name)
    }


def refusals(algorithm: AlgorithmSpec, modules: Mapping[str, Any]) -> dict[str, bool]:
    """For every kind of space outside ``supports``: whether the configuration's check refuses it."""
    source = PluginSource("conformance", "conformance", "0")
    registry = Registry(
        {
            "omnirl_algorithms": [Provided(algorithm, source)],
            "omnirl_env_backends": [Provided(BACKEND, source)],
        }
    )
    data = {
        "runner": {"max_updates": 1},
        "env": {"module": BACKEND.name, "id": "count"},
        "agent": {"module": algorithm.name},
        "modules": dict(modules),
    }
    config = resolve(from_mapping(data, "conformance"), registry)
    supports = algorithm.supports
    good = next(iter(spaces_of(supports).values()))
    wrong = {
        f"{name} actions": EnvSpec(good.observation, action)
        for name, action in ACTIONS.items()
        if not _takes(supports, name)
    }
    for kind in ("vector", "image", "dict"):
        if kind not in supports.observations:
            wrong[f"{kind} observations"] = EnvSpec(_observation(kind, 3), good.action)
    result = {}
    for name, spec in wrong.items():
        try:
            check_spaces(config, spec)
            result[name] = False
        except ConfigError:
            result[name] = True
    return result


def _takes(supports: Supports, action: str) -> bool:
    return bool(_COVERED.get(action, {action}) & set(supports.actions))


def _observation(kind: str, features: int) -> ObservationSpec:
    if kind == "image":
        return ArraySpec((1, 36 + features, 36 + features), "uint8", "image")
    if kind == "dict":
        return DictSpec((("position", ArraySpec((features,))), ("speed", ArraySpec((1,)))))
    return ArraySpec((features,))
