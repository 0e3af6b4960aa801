"""``omnirl envs``: which environment backends are installed, what can be set on one, and whether one is sound."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnirl.cli import sources
from omnirl.cli.options import Json

if TYPE_CHECKING:
    from omnirl.doctor.findings import Finding
    from omnirl.run.checking import EnvironmentReport

NAME, HELP = (
    "envs",
    "The environment backends that are installed, and whether an environment is fit for training.",
)
app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_backends(as_json: Json = False) -> None:
    """List the environment backends."""
    import omnirl.plugins
    from omnirl.cli.listing import print_rows

    rows = [
        {
            "name": item.spec.name,
            "summary": item.spec.summary,
            "aliases": list(item.spec.aliases),
            "distribution": item.source.distribution,
            "version": item.source.version,
        }
        for item in omnirl.plugins.load().env_backends()
    ]
    print_rows(rows, ("name", "summary"), as_json=as_json)


@app.command("show")
def show_backend(name: Annotated[str, typer.Argument(metavar="NAME")], as_json: Json = False) -> None:
    """Show every key of a backend's configuration."""
    import omnirl.plugins
    from omnirl.cli.listing import print_rows
    from omnirl.cli.lookup import load_part, named
    from omnirl.cli.parameters import parameter_rows

    spec = named(omnirl.plugins.load().env_backend, name)
    rows = parameter_rows(load_part(spec.name, spec.config), "env.")
    if as_json:
        facts = {"name": spec.name, "summary": spec.summary, "aliases": list(spec.aliases)}
        print(json.dumps({**facts, "parameters": rows}, ensure_ascii=False, indent=2))
        return
    print(f"{spec.name}: {spec.summary}\n")
    print_rows(rows, ("key", "default", "description"), as_json=False)


@app.command("check")
def check_environment(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ID|KEY=VALUE", help="env.id, and keys of env")
    ] = None,
    *,
    backend: Annotated[
        str, typer.Option("--backend", metavar="NAME", help="environment backend")
    ] = "gymnasium",
    steps: Annotated[int, typer.Option("--steps", min=1, metavar="N", help="random steps to play")] = 1000,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="for the whole check; more is an error")
    ] = 120.0,
    as_json: Json = False,
) -> None:
    """Play random steps of an environment, and say what would break training and how to mend it.

    Exit code 31 where something would; 0 with or without warnings; 2 where it cannot be built at all. KEY=VALUE sets
    keys as in a file, such as env.kwargs.max_episode_steps=500.
    """
    import omnirl.run
    from omnirl.cli.doctor import as_data, print_finding
    from omnirl.doctor.findings import exit_code, worst

    named, overrides = sources.split(arguments)
    if len(named) > 1:
        raise typer.BadParameter(f"one environment at a time, not {' and '.join(named)}")
    report = omnirl.run.check_environment(
        named[0] if named else None, backend=backend, overrides=overrides, steps=steps, timeout=timeout
    )
    found = _findings(report)
    if as_json:
        data = {**_facts(report), "status": worst(found), "checks": as_data(found)}
        print(json.dumps(data, ensure_ascii=False, indent=2))
    else:
        print(_line(report))
        for finding in found:
            print_finding(finding)
    raise typer.Exit(exit_code(found))


def _findings(report: EnvironmentReport) -> list[Finding]:
    from omnirl.doctor.findings import ENVIRONMENT, problem, warning

    return [
        problem(item.name, item.text, item.remedy, ENVIRONMENT)
        if item.severity == "error"
        else warning(item.name, item.text, item.remedy)
        for item in report.findings
    ]


def _facts(report: EnvironmentReport) -> dict[str, Any]:
    return {
        "environment": report.environment,
        "backend": report.backend,
        "steps": report.steps,
        "episodes": report.episodes,
        "steps_per_s": round(report.steps_per_s, 1),
    }


def _line(report: EnvironmentReport) -> str:
    """``CartPole-v1 (gymnasium): 1,000 random steps, 45 episodes, 31,000 steps/s: nothing found``."""
    numbers = {"error": len(report.errors), "warning": len(report.warnings)}
    counts = [f"{number} {name}{'s' * (number > 1)}" for name, number in numbers.items() if number]
    played = f"{report.steps:,} random steps, {report.episodes:,} episodes, {report.steps_per_s:,.0f} steps/s"
    return f"{report.environment} ({report.backend}): {played}: {', '.join(counts) or 'nothing found'}"
