"""What a configuration model allows at a path: used to explain mistakes and to suggest keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from omnirl.api.schedule import Constant, Linear
from omnirl.config.yaml_text import Path

Model = type[BaseModel]


def models_at(model: Model, path: Path, data: Any) -> list[Model]:
    """The models that may describe the mapping at ``path`` of ``data``; several for a union."""
    found = [model]
    for key in path:
        data = _inside(data, key)
        if isinstance(key, int):  # an item of a list: its models were found with the list's key
            found = _narrowed(found, data)
            continue
        annotations = [_annotation(item, key) for item in found]
        found = [inner for annotation in annotations for inner in _narrowed(models_in(annotation), data)]
    return found


def annotation_at(model: Model, path: Path, data: Any) -> Any:
    """The annotation of the field at ``path``, or None where there is none."""
    if not path:
        return model
    for owner in models_at(model, path[:-1], data):
        annotation = _annotation(owner, path[-1])
        if annotation is not None:
            return annotation
    return None


def models_in(annotation: Any) -> list[Model]:
    """The models that an annotation names, through unions, Annotated and containers."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [model for argument in get_args(annotation) for model in models_in(argument)]


def is_schedule(annotation: Any) -> bool:
    """Whether a field takes a number or a schedule."""
    return {Constant, Linear} <= set(models_in(annotation))


def kinds_of(annotation: Any) -> list[str]:
    """The values of ``kind`` that tell the models of a union apart."""
    return [kind for model in models_in(annotation) for kind in _kinds(model)]


def keys(model: Model) -> list[str]:
    """The keys of a model, as they are written in a file."""
    return [_key(model, name) for name in model.model_fields]


def all_keys(model: Model, prefix: Path = ()) -> Iterator[Path]:
    """Every key of a model and of the models in it, by its path; the keys of schedules are left out."""
    for name, info in model.model_fields.items():
        path = (*prefix, _key(model, name))
        yield path
        if not is_schedule(info.annotation):
            for inner in models_in(info.annotation):
                if inner is not model:
                    yield from all_keys(inner, path)


def undescribed(model: Model, prefix: str = "") -> Iterator[str]:
    """The dotted keys of a model, and of the models in it, that have no description."""
    for name, item in model.model_fields.items():
        if not item.description:
            yield prefix + _key(model, name)
        for inner in models_in(item.annotation):
            yield from undescribed(inner, f"{prefix}{_key(model, name)}.")


def plain(value: Any) -> Any:
    """A model as the plain data of its file: numbers for constant schedules, lists for tuples.

    A model may define ``undecided()``: the names of fields that wait for an ``auto`` beside them, and are left out.
    """
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, BaseModel):
        undecided = value.undecided() if hasattr(value, "undecided") else ()
        names = (name for name in type(value).model_fields if name not in undecided)
        fields = {_key(type(value), name): plain(getattr(value, name)) for name in names}
        return {**fields, **{key: plain(item) for key, item in (value.model_extra or {}).items()}}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    # What remains are the value types that pydantic knows: paths, enumerations and the like.
    from pydantic import TypeAdapter

    return TypeAdapter(type(value)).dump_python(value, mode="json")


def _key(model: Model, name: str) -> str:
    alias = model.model_fields[name].alias
    return alias if alias is not None else name


def _annotation(model: Model, key: str | int) -> Any:
    for name, info in model.model_fields.items():
        if key in (_key(model, name), name):
            return info.annotation
    return None


def _inside(data: Any, key: str | int) -> Any:
    if isinstance(data, Mapping):
        return data.get(key)
    if isinstance(data, list | tuple) and isinstance(key, int) and key < len(data):
        return data[key]
    return None


def _narrowed(models: list[Model], data: Any) -> list[Model]:
    """Of the models of a union those that the mapping's ``kind`` names, where it names any."""
    kind = data.get("kind") if isinstance(data, Mapping) else None
    named = [model for model in models if kind in _kinds(model)]
    return named or models


def _kinds(model: Model) -> tuple[str, ...]:
    info = model.model_fields.get("kind")
    return get_args(info.annotation) if info and get_origin(info.annotation) is Literal else ()
