"""``omnirl config``: write, show and check configurations without starting anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnirl.cli import sources
from omnirl.cli.options import AgentConfig, Json, RunnerConfig, Sources
from omnirl.cli.streams import for_json

if TYPE_CHECKING:
    from omnirl.config.resolve import ResolvedConfig

NAME, HELP = "config", "Write, show and check configurations."
app = typer.Typer(no_args_is_help=True)


@app.command("init")
def init(
    preset: Annotated[str, typer.Argument(metavar="PRESET", help="the preset to begin with")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="write this file, which must be new")
    ] = None,
) -> None:
    """Begin a configuration of your own from a preset."""
    from omnirl.api.errors import ConfigError, DiskError
    from omnirl.cli.presets import preset_text

    text = preset_text(preset)
    if output is None:
        print(text.rstrip())
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{output} is there already and is not overwritten") from None
    except OSError as error:
        raise DiskError(f"{output} cannot be written: {error.strerror}") from None
    print(f"{output} is written; omnirl train {output} trains with it")


@app.command("show")
def show(
    arguments: Sources = None,
    *,
    runner_config: RunnerConfig = None,
    agent_config: AgentConfig = None,
    origin: Annotated[bool, typer.Option("--origin", help="where each value comes from")] = False,
    as_json: Json = False,
) -> None:
    """Show a configuration as it would run, every default filled in."""
    from omnirl.cli.listing import print_rows
    from omnirl.config.files import dump

    with for_json(as_json):
        config = _configure(arguments, runner_config, agent_config)
    if origin:
        print_rows(origin_rows(config), ("key", "value", "origin"), as_json=as_json)
    else:
        print(json.dumps(config.plain(), indent=2) if as_json else dump(config.plain()).rstrip())


@app.command("validate")
def validate(
    arguments: Sources = None,
    *,
    runner_config: RunnerConfig = None,
    agent_config: AgentConfig = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="also open the environment and look at the hardware")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a configuration: every mistake at once, each with its file, line and column.

    With --json the mistakes are on standard output as well: {"valid": false, "mistakes": [...]}.
    """
    from omnirl.api.errors import ConfigError

    try:
        with for_json(as_json):
            config = _configure(arguments, runner_config, agent_config)
            if deep:
                from omnirl.cli.deep import check_deep

                check_deep(config)
    except ConfigError as error:
        if as_json:
            print(json.dumps({"valid": False, "mistakes": list(error.lines)}, ensure_ascii=False, indent=2))
        raise
    algorithm, backend = config.algorithm.name, config.backend.name
    if as_json:
        facts = {"valid": True, "mistakes": [], "algorithm": algorithm, "backend": backend}
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        print(f"valid: {algorithm} with {backend}")


@app.command("schema")
def schema(
    algo: Annotated[str | None, typer.Option("--algo", metavar="NAME", help="of this algorithm only")] = None,
    backend: Annotated[
        str | None, typer.Option("--backend", metavar="NAME", help="of this environment backend only")
    ] = None,
) -> None:
    """Print the JSON schema of configuration files, for editors. It is JSON without --json."""
    import omnirl.plugins
    from omnirl.cli.lookup import named
    from omnirl.config.schema import json_schema

    registry = omnirl.plugins.load()
    algorithm = None if algo is None else named(registry.algorithm, algo)
    env_backend = None if backend is None else named(registry.env_backend, backend)
    print(json.dumps(json_schema(registry, algorithm=algorithm, backend=env_backend), indent=2))


def origin_rows(config: ResolvedConfig) -> list[dict[str, str]]:
    """One row per value: its dotted key, the value in YAML, and where it was written, or ``default``."""
    from omnirl.cli.parameters import yaml_text

    rows = []
    for path, value in _leaves(config.plain(), ()):
        origin = config.origin(path)
        rows.append(
            {
                "key": ".".join(path),
                "value": yaml_text(value),
                "origin": "default" if origin is None else str(origin),
            }
        )
    return rows


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    else:
        yield path, value


def _configure(
    arguments: list[str] | None, runner_config: Path | None, agent_config: Path | None
) -> ResolvedConfig:
    named, overrides = sources.split(arguments)

    import omnirl.run

    return omnirl.run.configure(
        *named, *sources.config_files(runner_config, agent_config), overrides=overrides
    )
