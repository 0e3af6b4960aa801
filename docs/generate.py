"""Writes docs/reference: the configuration's keys from the models, the command line from the Typer app, and which
algorithm takes which space from what the algorithms declare, and the end of each algorithm's page.

Beside them a sentence for each page of measurements that is there, which other pages include.

Run by ``nox -s docs`` before the site is built. Nothing of it is committed, so it is never out of date. Neither
torch nor an environment library need be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer.main
from algorithm_parts import algorithm_part, presets_of, published
from pydantic import BaseModel
from typer.testing import CliRunner

from omnirl import plugins
from omnirl.api import (
    ActionSpec,
    AlgorithmSpec,
    ArraySpec,
    ContinuousAction,
    DictSpec,
    DiscreteAction,
    EnvSpec,
    MultiDiscreteAction,
    ObservationSpec,
    load_object,
)
from omnirl.cli.app import build_app
from omnirl.cli.parameters import item_models, parameter_rows, section_model
from omnirl.config.schema import json_schema
from omnirl.config.sections import RUNNER_SECTIONS
from omnirl.config.spaces import is_supported

REFERENCE = Path(__file__).parent / "reference"
MEASUREMENTS = {
    "faults-results": "What each fault costs is measured: [the bounds, and what was measured](faults-results.md).",
    "benchmarks": "How fast it is: [the benchmarks](benchmarks.md), each beside Stable-Baselines3 on the same machine.",
}
BOUNDS = {"minimum": ">= ", "exclusiveMinimum": "> ", "maximum": "<= ", "exclusiveMaximum": "< "}


def main() -> None:
    """Write the pages."""
    REFERENCE.mkdir(exist_ok=True)
    pages = (("configuration", configuration()), ("commands", commands()), ("link-spaces", spaces()))
    for name, lines in pages:
        (REFERENCE / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, lines in algorithms():
        (REFERENCE / f"link-algorithm-{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, sentence in MEASUREMENTS.items():
        there = (REFERENCE.parent / f"{name}.md").is_file()
        (REFERENCE / f"link-{name}.md").write_text(sentence if there else "", encoding="utf-8")


# -------------------------------------------------------------------------- the configuration


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
        f"{_sentence(summary or model.__doc__ or '').rstrip('.')}. Keys below `{section}`:",
        "",
    )
    yield from _keys(model, section, schema)


def _keys(model: type[BaseModel], section: str, schema: Mapping[str, Any]) -> Iterator[str]:
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
    meaning = field.description if section else _sentence(model.__doc__ or "").rstrip(".")
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


# ---------------------------------------------------------------------------------- the spaces

VECTOR, IMAGE = ArraySpec((3,)), ArraySpec((1, 10, 10), "uint8", "image")
INFINITE = float("inf")
SPACES = {
    "actions": {
        "`Discrete(n)`, `Discrete(n, start=s)`": (VECTOR, DiscreteAction(3)),
        "`MultiDiscrete` of any shape, `MultiBinary`": (VECTOR, MultiDiscreteAction((2, 2))),
        "`Box` of floats, all bounds finite": (VECTOR, ContinuousAction((-1.0,), (1.0,))),
        "`Box` of floats, some bounds infinite": (VECTOR, ContinuousAction((-INFINITE,), (INFINITE,))),
    },
    "observations": {
        "vectors: `Box`, `Discrete`, `MultiDiscrete`, `MultiBinary`": (VECTOR, None),
        "images: `Box` of uint8 with 2 or 3 axes": (IMAGE, None),
        "`Dict`, `Tuple` of vectors, nested": (DictSpec((("a", VECTOR), ("b/0", VECTOR))), None),
        "`Dict`, `Tuple` with images": (DictSpec((("a", VECTOR), ("b", IMAGE))), None),
        "an action mask": (DictSpec((("a", VECTOR), ("action_mask", ArraySpec((3,), "bool")))), None),
    },
}
"""Rows of the tables: an observation and an action; None is any action that the algorithm takes."""


def spaces() -> Iterator[str]:
    """Both tables, for the page about spaces."""
    algorithms = [provided.spec for provided in plugins.load().algorithms()]
    for title, rows in SPACES.items():
        yield f"| {title} | {' | '.join(algorithm.name for algorithm in algorithms)} |"
        yield f"| --- |{' --- |' * len(algorithms)}"
        for name, (observation, action) in rows.items():
            marks = ("yes" if _takes(algorithm, observation, action) else "" for algorithm in algorithms)
            yield f"| {name} | {' | '.join(marks)} |"
        yield ""


def _takes(algorithm: AlgorithmSpec, observation: ObservationSpec, action: ActionSpec | None) -> bool:
    actions = [row[1] for row in SPACES["actions"].values()] if action is None else [action]
    return any(is_supported(algorithm.supports, EnvSpec(observation, one)) for one in actions)


# ------------------------------------------------------------------------------ the algorithms


def algorithms() -> Iterator[tuple[str, Iterator[str]]]:
    """The name of each algorithm and the end of its page."""
    registry = plugins.load()
    presets, results = presets_of(registry), published(REFERENCE.parent)
    for algorithm in (provided.spec for provided in registry.algorithms()):
        takes = {
            title: [name for name, row in rows.items() if _takes(algorithm, *row)]
            for title, rows in SPACES.items()
        }
        keys = _keys(load_object(algorithm.config), "modules", json_schema(registry, algorithm))
        own = presets.get(algorithm.name, {})
        yield algorithm.name, algorithm_part(algorithm, takes=takes, presets=own, results=results, keys=keys)


# -------------------------------------------------------------------------- the command line


def commands() -> Iterator[str]:
    """The page of all commands."""
    yield "# Command line"
    yield ""
    yield "`omnirl COMMAND --help` shows the same. A mistake of yours is told in one line per mistake and never shows a"
    yield "traceback; the exit code says what kind of failure it was."
    yield ""
    yield "| exit code | meaning |"
    yield "| --- | --- |"
    for codes, meaning in _exit_codes():
        yield f"| {codes} | {meaning} |"
    app = build_app()
    yield from _command(app, typer.main.get_command(app), ())


def _exit_codes() -> Iterator[tuple[str, str]]:
    from omnirl.api import errors

    yield "0", "it worked"
    yield "1", "a bug of OmniRL's; the traceback is in the file that is named"
    known = [item for item in vars(errors).values() if isinstance(item, type)]
    for error in sorted(known, key=lambda item: getattr(item, "exit_code", 1)):
        if issubclass(error, errors.OmniRLError) and error.exit_code > 1:
            yield (
                str(error.exit_code),
                _sentence((error.__doc__ or "").replace(f" (exit {error.exit_code})", "")),
            )
    yield "31", "An environment has errors that would break training: `omnirl envs check` found them."
    yield "130, 143", "Ctrl-C, SIGTERM: the run was saved first (unless Ctrl-C came twice)"


def _command(app: typer.Typer, command: Any, path: tuple[str, ...]) -> Iterator[str]:
    """What ``--help`` says of a command, or of each command of a group."""
    below = {name: item for name, item in getattr(command, "commands", {}).items() if not item.hidden}
    if path:
        yield from ("", f"{'#' * (len(path) + 1)} omnirl {' '.join(path)}", "")
    if below and path:
        yield command.help or ""
    for name, item in below.items():
        yield from _command(app, item, (*path, name))
    if not below:
        shown = CliRunner().invoke(app, [*path, "--help"], prog_name="omnirl")
        assert shown.exit_code == 0, shown.output
        yield from ("```text", shown.output.strip(), "```")


def _sentence(text: str) -> str:
    """The first sentence of a docstring, without its line breaks."""
    return " ".join(text.partition("\n\n")[0].split())


if __name__ == "__main__":
    main()
