"""``omnirl plugins``: what is installed, what it provides, and what is wrong with what fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnirl.cli.options import Json

if TYPE_CHECKING:
    from omnirl.plugins.report import PluginRow

NAME, HELP = "plugins", "The plugins that are installed."
app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_plugins(as_json: Json = False) -> None:
    """List the plugins, those that fail included."""
    import dataclasses

    import omnirl.plugins
    from omnirl.cli.listing import print_rows
    from omnirl.plugins import report

    found = report.rows(omnirl.plugins.load())
    if as_json:
        print_rows([dataclasses.asdict(row) for row in found], (), as_json=True)
        return
    table = [
        {
            "plugin": row.plugin,
            "distribution": row.distribution,
            "version": row.version,
            "status": row.status,
            "provides": "; ".join([*_provided(row), *row.problems]),
        }
        for row in found
    ]
    print_rows(table, ("plugin", "distribution", "version", "status", "provides"), as_json=False)


@app.command("show")
def show_plugin(name: Annotated[str, typer.Argument(metavar="NAME")], as_json: Json = False) -> None:
    """Show a plugin, by the name of its entry point or of its distribution."""
    import dataclasses

    import omnirl.plugins
    from omnirl.cli.listing import aligned, print_rows
    from omnirl.plugins import report

    found = report.show(omnirl.plugins.load(), name)
    if as_json:
        print_rows([dataclasses.asdict(row) for row in found], (), as_json=True)
        return
    for row in found:
        facts = [
            ["plugin:", row.plugin],
            ["distribution:", f"{row.distribution} {row.version}"],
            ["module:", row.module],
            ["status:", row.status],
            *([f"{heading}:", ", ".join(names)] for heading, names in row.provides.items()),
            *(["problem:", problem] for problem in row.problems),
        ]
        for line in aligned(facts):
            print(line)


@app.command("doctor")
def examine_plugins(as_json: Json = False) -> None:
    """Load every part that the plugins promise, and say how to mend what is broken (exit 4)."""
    import dataclasses
    import json

    import omnirl.plugins
    from omnirl.cli.doctor import as_data, print_finding
    from omnirl.doctor.findings import exit_code
    from omnirl.doctor.plugins import examine

    examined = examine(omnirl.plugins.load())
    if as_json:
        rows = [
            {
                **dataclasses.asdict(item.source),
                "status": item.status,
                "findings": as_data(item.findings),
            }
            for item in examined
        ]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for item in examined:
            source = item.source
            print(f"{item.status:<8} {source.plugin} ({source.distribution} {source.version})")
            for finding in item.findings:
                print_finding(finding, indent="  ")
        if not examined:
            print("none is installed")
    raise typer.Exit(exit_code(finding for item in examined for finding in item.findings))


def _provided(row: PluginRow) -> list[str]:
    return [f"{heading}: {', '.join(names)}" for heading, names in row.provides.items()]
