"""The table of a configuration model's keys: generated from the model, so that it is never out of date."""

from __future__ import annotations

import types
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def parameter_rows(model: type[BaseModel], prefix: str = "") -> list[dict[str, str]]:
    """One row per key, ``{"key", "default", "description"}``, sections in their order; keys are dotted."""
    return list(_rows(model, prefix))


def _rows(model: type[BaseModel], prefix: str) -> Iterator[dict[str, str]]:
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        section = section_model(field)
        if section is not None:
            yield from _rows(section, key + ".")
        else:
            yield {"key": key, "default": default_text(field), "description": field.description or ""}


def section_model(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a field that is a section of further keys, or None for a field that holds a value.

    A union of several models (a schedule) is a value: its keys depend on the kind that is chosen.
    """
    models = [
        part for part in _parts(field.annotation) if isinstance(part, type) and issubclass(part, BaseModel)
    ]
    return models[0] if len(models) == 1 else None


def item_models(field: FieldInfo) -> list[type[BaseModel]]:
    """The models that an item of a list may have, in their order; none for any other field."""
    if get_origin(field.annotation) not in (list, tuple):
        return []
    items = (part for argument in get_args(field.annotation) for part in _parts(argument))
    return [item for item in items if isinstance(item, type) and issubclass(item, BaseModel)]


def default_text(field: FieldInfo) -> str:
    """The default as it would be written in YAML; ``required`` where there is none, ``unset`` for null."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "unset" if value is None else yaml_text(value)


def yaml_text(value: Any) -> str:
    """A value in one line of YAML."""
    if value is None:
        return "null"
    if isinstance(value, BaseModel):
        items = {name: getattr(value, name) for name in type(value).model_fields}
        items = {name: item for name, item in items.items() if item is not None}
        if items.get("kind") == "constant":  # a schedule that is written as a plain number
            return yaml_text(items["value"])
        return yaml_text(dict(sorted(items.items(), key=lambda item: item[0] != "kind")))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(yaml_text, value)) + "]"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _parts(annotation: Any) -> Iterator[Any]:
    """The members of a union, with ``Annotated`` taken off."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _parts(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _parts(member)
    else:
        yield annotation
