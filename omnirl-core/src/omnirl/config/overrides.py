"""``modules.learner.lr=3e-4``: single settings from the command line, read by the same rules as a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnirl.api.errors import ConfigError
from omnirl.config import yaml_text
from omnirl.config.files import Origin, Tree
from omnirl.config.yaml_text import Path

SOURCE = "override"


def parse(assignments: Sequence[str]) -> Tree:
    """Return a tree of dotted assignments.

    The value is YAML: a number, text, ``[64, 64]``, ``{kind: linear, ...}``; an empty one is null (unset).

    Raises ConfigError with one line for each that is not of the form KEY=VALUE, given twice or in conflict.
    """
    data: dict[str, Any] = {}
    origins: dict[Path, Origin] = {(): Origin(SOURCE)}
    lines: list[str] = []
    given: dict[str, str] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not equals or not all(key.split(".")):
            lines.append(f"{SOURCE} {assignment!r}: expected KEY=VALUE, such as runner.max_updates=100")
            continue
        if key in given:
            lines.append(f"{SOURCE} {key}: given twice ({given[key]!r} and {assignment!r})")
            continue
        given[key] = assignment
        try:
            value, _ = yaml_text.parse(text)
        except yaml_text.YamlMistake as mistake:
            lines.append(f"{SOURCE} {key}: {mistake} (quote the value: {key}='\"...\"')")
            continue
        conflict = _place(data, origins, tuple(key.split(".")), value)
        if conflict:
            lines.append(f"{SOURCE} {key}: in conflict with {given[conflict]!r}")
    if lines:
        raise ConfigError(lines)
    return Tree(data, origins)


def _place(
    data: dict[str, Any], origins: dict[Path, Origin], path: tuple[str, ...], value: Any
) -> str | None:
    """Put a value at its path; the key of an earlier override that stands in the way, if any."""
    for depth, key in enumerate(path[:-1], start=1):
        inner = data.setdefault(key, {})
        if not isinstance(inner, dict):
            return ".".join(path[:depth])
        data = inner
        origins.setdefault(path[:depth], Origin(SOURCE))
    if isinstance(data.get(path[-1]), dict) and not isinstance(value, dict):
        inside = ".".join(path) + "."
        return next(
            (".".join(map(str, known)) for known in origins if _dotted(known).startswith(inside)), None
        )
    data[path[-1]] = {**data[path[-1]], **value} if isinstance(data.get(path[-1]), dict) else value
    _mark(origins, path, value)
    return None


def _mark(origins: dict[Path, Origin], path: Path, value: Any) -> None:
    origins[path] = Origin(SOURCE)
    if isinstance(value, dict):
        for key, item in value.items():
            _mark(origins, (*path, key), item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _mark(origins, (*path, number), item)


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))
