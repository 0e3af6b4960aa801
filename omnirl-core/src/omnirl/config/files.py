"""Trees of settings that know where each value came from.

A run's settings are one tree, merged from a preset, files and overrides in this order; the later wins.
Mappings are merged key by key, everything else is replaced. Of two mappings that differ in ``kind``
(schedules, networks) the later replaces the earlier, for the keys of one kind mean nothing to another.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path as FilePath
from typing import Any

from omnirl.api.errors import ConfigError, NotFoundError
from omnirl.api.plugin import PresetSpec
from omnirl.config import yaml_text
from omnirl.config.yaml_text import Path

MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class Origin:
    """Where a value was written. ``line`` and ``column`` count from 1; line 0 means that there is none."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True)
class Tree:
    """Settings, and the origin of every key and list item by its path; ``()`` is the whole's."""

    data: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, Origin] = field(default_factory=dict)


def load_file(path: str | os.PathLike[str]) -> Tree:
    """Read a YAML file. Raises NotFoundError, or ConfigError with one line per mistake."""
    name = os.fspath(path)
    if not os.path.exists(name):
        raise NotFoundError(f"{name}: no such file")
    if os.path.isdir(name):
        raise NotFoundError(f"{name}: {_use_of_folder(name)}")
    try:
        with open(name, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise NotFoundError(f"{name}: cannot be read ({error.strerror})") from error
    return _load_bytes(content, name)


def load_preset(spec: PresetSpec) -> Tree:
    """Read the YAML of a preset out of its package."""
    package, _, file = spec.resource.partition(":")
    try:
        content = resources.files(package).joinpath(file).read_bytes()
    except (ModuleNotFoundError, OSError, TypeError) as error:  # TypeError: a module that is no package
        raise NotFoundError(f"preset {spec.name!r}: its file {spec.resource} is missing ({error})") from error
    return _load_bytes(content, f"preset {spec.name}")


def load_text(text: str, source: str) -> Tree:
    """Read YAML text; ``source`` is named in errors. Raises ConfigError with one line per mistake."""
    try:
        data, positions = yaml_text.parse(text)
    except yaml_text.YamlMistake as mistake:
        lines = [f"{Origin(source, line, column)} {what}" for line, column, what in mistake.mistakes]
        raise ConfigError(lines) from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ConfigError(
            f"{Origin(source, 1, 1)} a configuration is a mapping of sections, not {_named(data)}"
        )
    origins: dict[Path, Origin] = {(): Origin(source)}
    origins.update((path, Origin(source, *position)) for path, position in positions.items())
    return Tree(data, origins)


def from_mapping(data: Mapping[str, Any], source: str) -> Tree:
    """A tree of settings made in Python; ``source`` is named as their origin."""
    origins: dict[Path, Origin] = {}
    copied = _copied(data, (), Origin(source), origins)
    return Tree(copied, origins)


def load_pair(runner: str | os.PathLike[str], agent: str | os.PathLike[str]) -> Tree:
    """The two-file form: runner, device, seed, env and agent in the one file, modules in the other.

    Raises ConfigError where the two are swapped.
    """
    trees = load_file(runner), load_file(agent)
    swapped = "modules" in trees[0].data and "runner" not in trees[0].data
    swapped = swapped or ("runner" in trees[1].data and "modules" not in trees[1].data)
    if swapped and trees[0].data and trees[1].data:
        holds = [", ".join(tree.data) for tree in trees]
        raise ConfigError(
            f"the runner file and the agent file are swapped: {os.fspath(runner)} (runner) holds {holds[0]}; "
            f"{os.fspath(agent)} (agent) holds {holds[1]}"
        )
    return merge(*trees)


def merge(*trees: Tree) -> Tree:
    """One tree of several; the later wins."""
    data: dict[str, Any] = {}
    origins: dict[Path, Origin] = {}
    for tree in trees:
        _merge_into(data, origins, tree.data, tree.origins, ())
        if () in tree.origins:
            # Sections that no tree has are reported against a file rather than against an override.
            known = origins.get(())
            if known is None or tree.origins[()].source not in ("override", ""):
                origins[()] = tree.origins[()]
    return Tree(data, origins)


def dump(data: Mapping[str, Any]) -> str:
    """YAML text that reads back equal."""
    return yaml_text.write(dict(data))


def _load_bytes(content: bytes, source: str) -> Tree:
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{source}: larger than {MAX_BYTES // 1_000_000} MB, so this is no configuration")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise ConfigError(
            f"{Origin(source, line, column)} the byte 0x{content[error.start]:02x} is not UTF-8 text"
        ) from None
    return load_text(text, source)


def _copied(value: Any, path: Path, origin: Origin, origins: dict[Path, Origin]) -> Any:
    origins[path] = origin
    if isinstance(value, Mapping):
        return {str(key): _copied(item, (*path, str(key)), origin, origins) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(item, (*path, number), origin, origins) for number, item in enumerate(value)]
    return os.fspath(value) if isinstance(value, FilePath) else value


def _merge_into(
    data: dict[str, Any],
    origins: dict[Path, Origin],
    new: Mapping[str, Any],
    new_origins: Mapping[Path, Origin],
    path: Path,
) -> None:
    for key, value in new.items():
        here = (*path, key)
        old = data.get(key)
        if isinstance(old, dict) and isinstance(value, Mapping) and not _differ_in_kind(old, value):
            # An emptied or extended section keeps the origin of where it began.
            _merge_into(old, origins, value, new_origins, here)
            continue
        for known in [known for known in origins if known[: len(here)] == here]:
            del origins[known]
        nested: dict[Path, Origin] = {}
        data[key] = _copied(value, here, Origin(""), nested)
        origins.update((known, new_origins.get(known, Origin(""))) for known in nested)


def _differ_in_kind(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return "kind" in old and "kind" in new and old["kind"] != new["kind"]


def _use_of_folder(name: str) -> str:
    file = os.path.join(name, "run_config.yaml")
    if not os.path.isfile(file):
        return "is a folder, not a YAML file"
    return f"is the folder of a run: `omnirl resume {name}` goes on with it, `omnirl train {file}` repeats it"


def _named(data: object) -> str:
    return "a list" if isinstance(data, list) else f"the single value {data!r}"
