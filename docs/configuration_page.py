"""The generated page of all keys of the configuration, from the models that check files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from omnirl import plugins
from omnirl.api import load_object
from omnirl.cli.parameters import item_models, parameter_rows, section_model
from omnirl.config.schema import json_schema
from omnirl.config.sections import RUNNER_SECTIONS

BOUNDS = {"minimum": ">= ", "exclusiveMinimum": "> ", "maximum": "<= ", "exclusiveMaximum": "< "}

INTRODUCTION = """# Configuration

Every key, from the models that check your files. In a file the keys are nested; on the command line they are dotted,
as here: `omnirl train cartpole-ppo modules.learner.lr=3e-4`. An unknown key is a mistake, told with file, line and
column. `omnirl config show PRESET --origin` shows what a run would use and where each value comes from.

Besides the sections below a file has `agent.module` and `env.module`, which name an algorithm and an environment
backend: the name of an installed one, or a dotted path such as `omnirl.algorithms.ppo`. The section `versions` is
written into `run_config.yaml` and ignored on reading."""

SCHEDULES = """
## Schedules

Where the value may be a schedule, a plain number is constant over the run, and a mapping changes with it:

```yaml
lr: 3e-4
lr: {kind: linear, start: 1e-3, end: 0}                    # over the whole run
lr: {kind: linear, start: 1e-3, end: 0, after: 0.5}        # constant for the first half
epsilon: {kind: linear, start: 1, end: 0.05, steps: 10000} # over environment steps
epsilon: {kind: linear, start: 1, end: 0.04, until: 0.16}  # until 16 % of the run
lr: {kind: exponential, start: 1e-3, end: 1e-5}            # by a constant factor
lr: {kind: piecewise, points: [[0, 0], [0.1, 1e-3], [1, 0]]}   # [fraction of the run, value]
epsilon: {kind: piecewise, steps: [[0, 1], [10000, 0.1]]}      # [environment steps, value]
```

The kinds are `constant`, `linear`, `exponential` and `piecewise`: see [omnirl.api.schedule][omnirl.api.schedule]."""


def configuration() -> Iterator[str]:
    """The page of all keys."""
    registry = plugins.load()
    yield INTRODUCTION
    schema = json_schema(registry)
    for name, model in RUNNER_SECTIONS.items():
        yield from _section(f"`{name}`", model, name, schema)
    for backend in (provided.spec for provided in registry.env_backends()):
        schema = json_schema(registry, backend=backend)
        model = load_object(backend.config)
        yield from _section(f"`env` of {backend.name}", model, "env", schema, backend.summary)
        yield from _lists(model, "env", backend.name, schema)
    for algorithm in (provided.spec for provided in registry.algorithms()):
        schema = json_schema(registry, algorithm)
        model = load_object(algorithm.config)
        yield from _section(f"`modules` of {algorithm.name}", model, "modules", schema, algorithm.summary)
    yield SCHEDULES


def _section(
    title: str, model: type[BaseModel], section: str, schema: Mapping[str, Any], summary: str = ""
) -> Iterator[str]:
    """One model's keys as a table below a heading."""
    yield from (
        "",
        f"## {title}",
        "",
        f"{sentence(summary or model.__doc__ or '').rstrip('.')}. Keys below `{section}`:",
        "",
    )
    yield from key_table(model, section, schema)


def key_table(model: type[BaseModel], section: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """The table."""
    yield "| key | default | value | meaning |"
    yield "| --- | --- | --- | --- |"
    for row in parameter_rows(model, f"{section}."):
        allowed = _allowed(_property(schema, row["key"].split(".")), schema)
        key, meaning = row["key"].partition(".")[2], row["description"].replace("<", "&lt;")
        cells = (f"`{key}`", f"`{row['default']}`", allowed, meaning)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _lists(model: type[BaseModel], section: str, owner: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """What may stand in each list whose items have keys of their own: a table below a heading of its own."""
    for name, field in model.model_fields.items():
        items = item_models(field)
        if items:
            yield from (
                "",
                f"### Items of `{section}.{name}` of {owner}",
                "",
                f"{_capital(field.description)}.",
                "",
            )
            yield "| item | key | default | value | meaning |"
            yield "| --- | --- | --- | --- | --- |"
        for item in items:
            yield from _item(item, schema)


def _item(model: type[BaseModel], whole: Mapping[str, Any]) -> Iterator[str]:
    """An item's rows: what it is, then its keys. It is named by its first key, which holds the rest where that is a
    section."""
    name, field = next(iter(model.model_fields.items()))
    name, section = field.alias or name, section_model(field)
    meaning = field.description if section else sentence(model.__doc__ or "").rstrip(".")
    yield f"| `{name}` |  |  |  | {_small(meaning)} |"
    keys = section or model
    schema = {**whole["$defs"][keys.__name__], "$defs": whole["$defs"]}
    for row in parameter_rows(keys):
        allowed = _allowed(_property(schema, row["key"].split(".")), schema)
        cells = (f"`{row['key']}`", f"`{row['default']}`", allowed, row["description"].replace("<", "&lt;"))
        yield "|  | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _capital(text: str | None) -> str:
    return (text or "")[:1].upper() + (text or "")[1:]


def _small(text: str | None) -> str:
    return (text or "")[:1].lower() + (text or "")[1:]


def _property(schema: Mapping[str, Any], keys: list[str]) -> Mapping[str, Any]:
    """The schema of a key, through the references of its sections and the shorter forms of a section."""
    found: Mapping[str, Any] = schema
    for key in keys:
        forms = [_resolved(form, schema) for form in found.get("anyOf", [found])]
        found = next(form["properties"][key] for form in forms if key in form.get("properties", {}))
    return found


def _resolved(part: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part


def _allowed(part: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """What may stand there, in words."""
    members = part.get("anyOf") or part.get("oneOf")
    if members:
        kinds = [_allowed(_resolved(member, schema), schema) for member in members]
        return " or ".join(dict.fromkeys(kind for kind in kinds if kind != "null"))
    part = _resolved(part, schema)
    if "properties" in part:
        return "[schedule](#schedules)" if "kind" in part["properties"] else "mapping"
    if "enum" in part or "const" in part:
        return ", ".join(f"`{value}`" for value in part.get("enum", [part.get("const")]))
    if part.get("type") == "array":
        return f"list of {_allowed(part.get('items', {}), schema)}"
    bounds = " and ".join(f"{sign}{part[name]:g}" for name, sign in BOUNDS.items() if name in part)
    names = {"object": "mapping", "boolean": "`true`, `false`", "string": "text"}
    kind = part.get("type", "any")
    return f"{names.get(kind, kind)} {bounds}".strip()


def sentence(text: str) -> str:
    """The first sentence of a docstring, without its line breaks."""
    return " ".join(text.partition("\n\n")[0].split())
