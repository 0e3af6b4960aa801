"""A network class of the user's own, named in the ``network`` section: found, its arguments checked by its signature.

Imports no torch itself; the user's module does. What the class must be stands in :mod:`omnirl.networks.own_network`.
"""

from __future__ import annotations

import difflib
import inspect
import json
import re
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from omnirl.api import Int
from omnirl.api.plugin import load_object

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def load_class(reference: str) -> Any:
    """The class that ``"package.module:Class"`` names. ValueError, one line, where it is none or none of networks."""
    if not _REFERENCE.fullmatch(reference):
        raise ValueError(f"must be of the form package.module:Class, not {reference!r}")
    try:
        found = load_object(reference)
    except ModuleNotFoundError as error:
        if not (reference.partition(":")[0] + ".").startswith(f"{error.name}."):
            raise ValueError(f"{reference}: its module cannot be imported: {_line(error)}") from error
        raise ValueError(
            f"{reference}: there is no module {error.name!r} (install it, or put its folder into PYTHONPATH)"
        ) from error
    except AttributeError as error:
        module = sys.modules.get(reference.partition(":")[0])
        if module is None:
            raise ValueError(f"{reference}: its module cannot be imported: {_line(error)}") from error
        name = reference.partition(":")[2]
        near = difflib.get_close_matches(name, vars(module), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"{reference}: the module has no {name!r}{hint}") from error
    except Exception as error:
        raise ValueError(f"{reference}: its module cannot be imported: {_line(error)}") from error
    # Whoever has a class of torch modules has imported torch.
    torch: Any = sys.modules.get("torch")
    if torch is None or not (isinstance(found, type) and issubclass(found, torch.nn.Module)):
        raise ValueError(f"{reference}: must be a subclass of torch.nn.Module")
    return found


def check_kwargs(reference: str, kwargs: Mapping[str, Any]) -> None:
    """Raise pydantic's ValidationError with a line for each argument that the class does not take, lacks, or takes of
    another type, as far as its annotations are those of plain data."""
    found = _signature(reference)
    errors: list[Any] = []
    for name in [] if found.any_name else [name for name in kwargs if name not in found.names]:
        near = difflib.get_close_matches(name, found.names, n=1)
        takes = f"it takes {', '.join(found.names)}" if found.names else "it takes none"
        hint = f"did you mean {near[0]!r}?" if near else takes
        errors.append(_mistake(f"{reference} takes no such argument ({hint})", (name,), kwargs[name]))
    for name in found.needed:
        if name not in kwargs:
            text = f"{reference} needs the argument {name!r} (set modules.network.kwargs.{name})"
            errors.append(_mistake(text, (), dict(kwargs)))
    try:
        given = {name: value for name, value in kwargs.items() if name in found.names}
        found.model.model_validate_json(json.dumps(given), strict=True)
    except ValidationError as error:
        errors += [
            {"type": item["type"], "loc": item["loc"], "input": item["input"], "ctx": item.get("ctx", {})}
            for item in error.errors(include_url=False)
        ]
    if errors:
        raise ValidationError.from_exception_data(reference, errors)


def typed_kwargs(reference: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the annotations have them: a tuple where a file can only write a list."""
    found = _signature(reference)
    given = {name: value for name, value in kwargs.items() if name in found.names}
    values = found.model.model_validate_json(json.dumps(given), strict=True)
    typed = {
        info.alias: getattr(values, name)
        for name, info in type(values).model_fields.items()
        if name in values.model_fields_set
    }
    return {**kwargs, **{str(name): value for name, value in typed.items()}}


class _Signature:
    """What a class takes beside the observation: names, which of them it needs, and a model of their types."""

    def __init__(self, found: type) -> None:
        parameters = list(inspect.signature(found).parameters.values())[1:]
        taken = [item for item in parameters if item.kind in _NAMED]
        self.any_name = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters)
        self.names = [item.name for item in taken]
        self.needed = [item.name for item in taken if item.default is inspect.Parameter.empty]
        # Under names of its own: an argument may be called as a method of pydantic's models is.
        fields: dict[str, Any] = {
            f"argument_{index}": (_hint(item, found), Field(default=None, alias=item.name))
            for index, item in enumerate(taken)
        }
        self.model: type[BaseModel] = create_model(
            found.__name__, __config__=ConfigDict(arbitrary_types_allowed=True, strict=True), **fields
        )


def _signature(reference: str) -> _Signature:
    return _Signature(load_class(reference))


def _hint(parameter: inspect.Parameter, found: type) -> Any:
    """The parameter's annotation where pydantic understands it, else Any; 1e5 is a whole number, as everywhere."""
    if parameter.annotation is inspect.Parameter.empty:
        return Any
    annotated = SimpleNamespace(__annotations__={"value": parameter.annotation})
    try:
        hint = get_type_hints(annotated, vars(sys.modules[found.__module__]))["value"]
        create_model("Hint", __config__=ConfigDict(arbitrary_types_allowed=True), value=(hint, None))
    except Exception:  # a name that is imported for type checkers alone, or what is no type
        return Any
    return Int if hint is int else hint


def _mistake(text: str, place: tuple[str, ...], value: Any) -> dict[str, Any]:
    return {"type": "value_error", "loc": place, "input": value, "ctx": {"error": ValueError(text)}}


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
