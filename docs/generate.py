"""Writes docs/reference: the configuration's keys from the models, the command line from the Typer app, and which
algorithm takes which space from what the algorithms declare, and the end of each algorithm's page.

Beside them a sentence for each page of measurements that is there, which other pages include.

Run by ``nox -s docs`` before the site is built. Nothing of it is committed, so it is never out of date. Neither
torch nor an environment library need be there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from algorithm_parts import algorithm_part, presets_of, published
from configuration_page import configuration, key_table, sentence
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
from omnirl.config.schema import json_schema
from omnirl.config.spaces import is_supported

REFERENCE = Path(__file__).parent / "reference"
MEASUREMENTS = {
    "faults-results": "What each fault costs is measured: [the bounds, and what was measured](faults-results.md).",
    "benchmarks": "How fast it is: [the benchmarks](benchmarks.md), each beside Stable-Baselines3 on the same machine.",
}


def main() -> None:
    """Write the pages."""
    REFERENCE.mkdir(exist_ok=True)
    pages = (("configuration", configuration()), ("commands", commands()), ("link-spaces", spaces()))
    for name, lines in pages:
        (REFERENCE / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, lines in algorithms():
        (REFERENCE / f"link-algorithm-{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, told in MEASUREMENTS.items():
        there = (REFERENCE.parent / f"{name}.md").is_file()
        (REFERENCE / f"link-{name}.md").write_text(told if there else "", encoding="utf-8")


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
        keys = key_table(load_object(algorithm.config), "modules", json_schema(registry, algorithm))
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
                sentence((error.__doc__ or "").replace(f" (exit {error.exit_code})", "")),
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


if __name__ == "__main__":
    main()
