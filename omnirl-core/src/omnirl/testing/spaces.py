"""Spaces by what ``Supports`` calls them: those an algorithm must work with, and those OmniRL refuses for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnirl.api.errors import ConfigError
from omnirl.api.plugin import AlgorithmSpec, Supports
from omnirl.api.specs import (
    ACTION_MASK,
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
_OBSERVATIONS: Mapping[str, ObservationSpec] = {
    "vector": ArraySpec((3,)),
    "image": ArraySpec((2, 40, 40), "uint8", "image"),
    "dict": DictSpec((("position", ArraySpec((3,))), ("speed", ArraySpec((1,))))),
}
_WITH_IMAGE = DictSpec((("speed", ArraySpec((2,))), ("camera", ArraySpec((1, 10, 10), "uint8", "image"))))
_COVERED = {"bounded_continuous": {"continuous", "bounded_continuous"}}
"""What an algorithm may say to be given a kind: one for all continuous actions takes bounded ones too."""


def spaces_of(supports: Supports) -> dict[str, EnvSpec]:
    """One EnvSpec for each kind of action: of vectors where the algorithm takes them. Then one for dictionaries, one
    with an image among their entries, and one for each kind of action that may have a mask, as far as they are
    supported."""
    layout = "vector" if "vector" in supports.observations else supports.observations[0]
    specs = {
        name: EnvSpec(_OBSERVATIONS[layout], action, id=name)
        for name, action in ACTIONS.items()
        if _takes(supports, name)
    }
    action = next(iter(specs.values())).action
    if "dict" in supports.observations:
        specs["dict"] = EnvSpec(_OBSERVATIONS["dict"], action, id="dict")
        if "image" in supports.observations:
            specs["dict with an image"] = EnvSpec(_WITH_IMAGE, action, id="dict with an image")
        if supports.action_mask:
            specs |= {f"masked {name}": spec for name, spec in _masked(supports).items()}
    return specs


def _masked(supports: Supports) -> dict[str, EnvSpec]:
    """One EnvSpec with a mask for each kind of action that can have one."""
    sizes = {"discrete": 3, "multi_discrete": 5}
    return {
        name: EnvSpec(
            DictSpec((("position", ArraySpec((3,))), (ACTION_MASK, ArraySpec((size,), "bool")))),
            ACTIONS[name],
            id=f"masked {name}",
        )
        for name, size in sizes.items()
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
            wrong[f"{kind} observations"] = EnvSpec(_OBSERVATIONS[kind], good.action)
    if "image" not in supports.observations:
        wrong["dict observations with an image"] = EnvSpec(_WITH_IMAGE, good.action)
    if not supports.action_mask:
        wrong |= {f"{name} actions with a mask": spec for name, spec in _masked(supports).items()}
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


def resized(spec: EnvSpec) -> EnvSpec:
    """The same with one number more along an axis of what is observed."""
    observation = spec.observation
    if isinstance(observation, DictSpec):
        (name, entry), *rest = observation.entries
        return replace(spec, observation=DictSpec(((name, _longer(entry)), *rest)))
    return replace(spec, observation=_longer(observation))


def _longer(spec: ArraySpec) -> ArraySpec:
    """Images get a further channel, since other sizes may lead to the same weights."""
    first, *rest = spec.shape
    return replace(spec, shape=(first + 1, *rest))
