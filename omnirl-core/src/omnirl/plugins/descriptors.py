"""Checks of what a plugin's hook returned, so that a wrong descriptor is reported where it was made."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from typing import Any

from omnirl.api.plugin import (
    AlgorithmSpec,
    CommandSpec,
    EnvBackendSpec,
    ObserverSpec,
    PresetSpec,
    Supports,
)

Descriptor = AlgorithmSpec | EnvBackendSpec | PresetSpec | ObserverSpec | CommandSpec

SPEC_TYPES: dict[str, type[Descriptor]] = {
    "omnirl_algorithms": AlgorithmSpec,
    "omnirl_env_backends": EnvBackendSpec,
    "omnirl_presets": PresetSpec,
    "omnirl_observers": ObserverSpec,
    "omnirl_commands": CommandSpec,
}
"""What each hook returns."""

ACTIONS = ("discrete", "multi_discrete", "continuous", "bounded_continuous")
OBSERVATIONS = ("vector", "image", "dict")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:\S+")
_REFERENCES = {
    "config",
    "data_flow",
    "policy",
    "memory",
    "learner",
    "agent_file",
    "backend",
    "resource",
    "load",
}


class DescriptorError(Exception):
    """A hook returned something that is no valid descriptor."""


def checked(hook: str, returned: object) -> tuple[Descriptor, ...]:
    """Return the descriptors that ``hook`` returned, or raise DescriptorError."""
    if returned is None or isinstance(returned, str) or not isinstance(returned, Iterable):
        raise DescriptorError(
            f"{hook} returned {_shown(returned)}, not a list of {SPEC_TYPES[hook].__name__}"
        )
    descriptors = tuple(returned)
    for descriptor in descriptors:
        check(descriptor, SPEC_TYPES[hook], hook)
    return descriptors


def check(descriptor: object, expected: type[Descriptor], where: str) -> None:
    """Raise DescriptorError unless ``descriptor`` is an ``expected`` whose fields all have their types."""
    if not isinstance(descriptor, expected):
        raise DescriptorError(f"{where}: {_shown(descriptor)} is no {expected.__name__}")
    name = descriptor.name
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DescriptorError(
            f"{where}: {name!r} is no name (letters, digits, '_' and '-', beginning with a letter or digit)"
        )
    for item in dataclasses.fields(descriptor):
        _check_field(f"{expected.__name__} {name!r}", item, getattr(descriptor, item.name))
    for alias in getattr(descriptor, "aliases", ()):
        if not _NAME.fullmatch(alias):
            raise DescriptorError(f"{expected.__name__} {name!r}: the alias {alias!r} is no name")


def _check_field(owner: str, item: dataclasses.Field[Any], value: object) -> None:
    # The descriptors are written with postponed annotations, so a field's type is its source text.
    if item.type == "str":
        if not isinstance(value, str):
            raise DescriptorError(f"{owner}: {item.name} is {_shown(value)}, not a string")
        if item.name in _REFERENCES and not _REFERENCE.fullmatch(value):
            raise DescriptorError(f"{owner}: {item.name} is {value!r}, not of the form 'package.module:name'")
    elif item.type == "bool":
        if not isinstance(value, bool):
            raise DescriptorError(f"{owner}: {item.name} is {_shown(value)}, not True or False")
    elif item.type == "Supports":
        _check_supports(owner, value)
    elif not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
        raise DescriptorError(f"{owner}: {item.name} is {_shown(value)}, not a tuple of strings")


def _check_supports(owner: str, value: object) -> None:
    if not isinstance(value, Supports):
        raise DescriptorError(f"{owner}: supports is {_shown(value)}, not a Supports")
    for field, allowed in (("actions", ACTIONS), ("observations", OBSERVATIONS)):
        kinds = getattr(value, field)
        if not isinstance(kinds, tuple) or not kinds:
            raise DescriptorError(f"{owner}: supports.{field} is {_shown(kinds)}, not a tuple of kinds")
        for kind in kinds:
            if kind not in allowed:
                raise DescriptorError(
                    f"{owner}: supports.{field} has {_shown(kind)}, which is none of {', '.join(allowed)}"
                )


def _shown(value: object) -> str:
    if value is None or isinstance(value, str | int | float | tuple | list):
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    return f"an object of type {type(value).__name__}"
