"""pydantic's errors in plain words, one for each mistake in the file."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from omnirl.config import yaml_text
from omnirl.config.models import annotation_at, is_schedule, kinds_of
from omnirl.config.yaml_text import Path

_PREFIXED = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*): (.+)", re.DOTALL)
_FIRST_WORD = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)\b")
_ABSENT = object()


@dataclass(frozen=True)
class Mistake:
    """What is wrong at ``path``. ``at`` is the path whose position is shown, where it is another one."""

    path: Path
    text: str
    unknown_key: bool = False
    at: Path | None = None


_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dataclass_type": "a mapping",
    "none_required": "null",
}
_EXPECTED_WITH = {
    "greater_than": "greater than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
    "string_too_short": "text of at least {min_length} characters",
    "string_too_long": "text of at most {max_length} characters",
    "string_pattern_mismatch": "text of the form {pattern}",
}


def explain(error: ValidationError, model: type[BaseModel], data: Any, prefix: Path) -> list[Mistake]:
    """The mistakes behind an error of ``model`` for ``data``, which stands at ``prefix`` in the file."""
    mistakes: list[Mistake] = []
    expected: dict[Path, list[str]] = {}
    for detail in error.errors(include_url=False):
        path = _path_in(data, detail["loc"], missing=detail["type"] == "missing")
        context = detail.get("ctx", {})
        match detail["type"]:
            case "missing":
                mistakes.append(Mistake(prefix + path, "missing"))
            case "extra_forbidden":
                mistakes.append(Mistake(prefix + path, "unknown key", unknown_key=True))
            case "union_tag_invalid":
                name = context["discriminator"].strip("'")
                text = _must_be([context["expected_tags"].replace(", ", " or ")], context["tag"])
                mistakes.append(Mistake((*prefix, *path, name), text))
            case "union_tag_not_found":
                name = context["discriminator"].strip("'")
                kinds = ", ".join(kinds_of(annotation_at(model, path, data)))
                mistakes.append(
                    Mistake((*prefix, *path, name), f"missing (one of {kinds})" if kinds else "missing")
                )
            case "value_error" | "assertion_error":
                text = detail["msg"].partition(", ")[2] or detail["msg"]
                mistakes.append(located(prefix, path, " ".join(text.split()), model, data))
            case kind:
                phrase = _expectation(kind, context, detail["msg"])
                if kind == "model_attributes_type" and is_schedule(annotation_at(model, path, data)):
                    phrase = "a number or a schedule such as {kind: linear, start: 1, end: 0}"
                # A union gives one error per alternative: they are one mistake.
                expected.setdefault(path, []).append(phrase)
    for path, phrases in expected.items():
        mistakes.append(Mistake(prefix + path, _must_be(phrases, _value_at(data, path))))
    return mistakes


def located(prefix: Path, path: Path, text: str, model: type[BaseModel], data: Any) -> Mistake:
    """A validator's text at the key it speaks of: ``batch_size: must ...`` or ``batch_size must ...``."""
    prefixed = _PREFIXED.fullmatch(text)
    if prefixed:
        key = (*path, *prefixed[1].split("."))
        if annotation_at(model, key, data) is not None:
            return Mistake(prefix + key, prefixed[2])
    word = _FIRST_WORD.match(text)
    if word:
        key = (*path, *word[1].split("."))
        if annotation_at(model, key, data) is not None:
            return Mistake(prefix + path, text, at=prefix + key)
    return Mistake(prefix + path, text)


def shown(value: Any) -> str:
    """A value as a user wrote it, at most about 40 characters."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": ".nan", "inf": ".inf"}.get(str(value), "-.inf")
    if isinstance(value, list | tuple):
        text = "[" + ", ".join(shown(item) for item in value) + "]"
    elif isinstance(value, Mapping):
        text = "{" + ", ".join(f"{key}: {shown(item)}" for key, item in value.items()) + "}"
    else:
        text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def suggestion(word: str, names: list[str]) -> str:
    """`` (did you mean 'x'?)`` for the nearest of the names, or nothing."""
    nearest = difflib.get_close_matches(word, names, n=1)
    return f" (did you mean {nearest[0]!r}?)" if nearest else ""


def _path_in(data: Any, location: tuple[str | int, ...], *, missing: bool) -> Path:
    """pydantic's location without the names of union alternatives, which no file has."""
    path: list[str | int] = []
    for depth, key in enumerate(location):
        inside = _value_at(data, (key,))
        if inside is not _ABSENT:
            path.append(key)
            data = inside
        elif missing and depth == len(location) - 1:
            path.append(key)
    return tuple(path)


def _value_at(data: Any, path: Path) -> Any:
    for key in path:
        in_mapping = isinstance(data, Mapping) and key in data
        if in_mapping or (isinstance(data, list | tuple) and isinstance(key, int) and key < len(data)):
            data = data[key]
        else:
            return _ABSENT
    return data


def _expectation(kind: str, context: Mapping[str, Any], message: str) -> str:
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    if kind in _EXPECTED_WITH:
        numbers = {name: f"{item:g}" if isinstance(item, float) else item for name, item in context.items()}
        return _EXPECTED_WITH[kind].format(**numbers)
    return message.removeprefix("Input should be ")


def _must_be(phrases: list[str], value: Any) -> str:
    # Only one alternative of "auto or a whole number, at least 1" can have got as far as the range.
    text = f"must be {' or '.join(dict.fromkeys(phrases))}"
    if value is _ABSENT:
        return text
    text += f", not {shown(value)}"
    if isinstance(value, str):
        if any("number" in phrase for phrase in phrases) and isinstance(yaml_text.scalar(value), int | float):
            return text + " (text: remove the quotes)"
        choices = re.findall(r"'([^']*)'", " ".join(phrases))
        text += suggestion(value, choices)
    return text
