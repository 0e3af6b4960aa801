"""What an unknown key may have meant: a slip, a key of another section, or of another algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from omnirl.api.plugin import AlgorithmSpec, EnvBackendSpec, load_object
from omnirl.config import models
from omnirl.config.messages import suggestion
from omnirl.config.sections import RUNNER_SECTIONS, SECTIONS
from omnirl.config.yaml_text import Path
from omnirl.plugins import Registry

Model = type[BaseModel]


def unknown_section(key: str, known: Mapping[str, Model]) -> str:
    """The text for an unknown top-level key; ``known`` has the models of the sections."""
    if elsewhere := _places(key, known, ()):
        return f"unknown section (did you mean {elsewhere[0]!r}?)"
    return "unknown section" + (suggestion(key, list(SECTIONS)) or f" (there are: {', '.join(SECTIONS)})")


def unknown_key(
    path: Path,
    data: Any,
    known: Mapping[str, Model],
    *,
    owner: str,
    registry: Registry,
    spec: AlgorithmSpec | EnvBackendSpec | None,
) -> str:
    """The text for an unknown key at ``path`` of the file ``data``, whose section is ``owner``'s."""
    section, key = str(path[0]), str(path[-1])
    inside = data.get(section) if isinstance(data, Mapping) else None
    places = models.models_at(known[section], path[1:-1], inside)
    names = list(dict.fromkeys(name for model in places for name in models.keys(model)))
    hint = ""
    if elsewhere := _places(key, known, path):
        hint = f" (did you mean {elsewhere[0]!r}?)"
    elif others := [name for name, model in _others(section, registry, spec) if _has(model, path[1:], key)]:
        hint = f" ({key!r} is a key of {', '.join(others)})"
    elif not (hint := suggestion(key, names)) and names:
        hint = f" (there are: {', '.join(names)})" if len(names) <= 12 else ""
    return f"unknown key{hint} [{owner}]"


def _places(key: str, known: Mapping[str, Model], path: Path) -> list[str]:
    """The other places where a key of this name stands, the same section first, then the algorithm's."""
    found = [
        place
        for section, model in known.items()
        for place in models.all_keys(model, (section,))
        if place[-1] == key and place != path
    ]
    found.sort(key=lambda place: (place[:1] != path[:1], place[0] != "modules", len(place)))
    return [".".join(map(str, place)) for place in found]


def _others(
    section: str, registry: Registry, spec: AlgorithmSpec | EnvBackendSpec | None
) -> Iterator[tuple[str, Model]]:
    """The other installed algorithms (or backends) and their models."""
    specs: list[AlgorithmSpec | EnvBackendSpec] = []
    if section == "modules":
        specs += [item.spec for item in registry.algorithms()]
    elif section == "env":
        specs += [item.spec for item in registry.env_backends()]
    for other in specs:
        if other is spec:
            continue
        try:
            model = load_object(other.config)
        except Exception:  # another plugin's defect must not hide the user's mistake
            continue
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield other.name, model


def _has(model: Model, path: Path, key: str) -> bool:
    """Whether another algorithm has the key at this place, or at any place."""
    places = list(models.all_keys(model))
    return path in places or any(place[-1] == key for place in places)


def section_models(algorithm: Model | None, backend: Model | None) -> dict[str, Model]:
    """The model of each section of a file, as far as they are known."""
    known: dict[str, Model] = dict(RUNNER_SECTIONS)
    if backend is not None:
        known["env"] = backend
    if algorithm is not None:
        known["modules"] = algorithm
    return known
