"""``omnirl envs``: which environment backends are installed, and what can be set on one."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from omnirl.cli.options import Json

NAME, HELP = "envs", "The environment backends that are installed."
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
