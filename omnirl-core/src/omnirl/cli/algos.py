"""``omnirl algos``: which algorithms are installed, and what can be set on one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnirl.cli.options import Json

if TYPE_CHECKING:
    from omnirl.api.plugin import AlgorithmSpec

NAME, HELP = "algos", "The algorithms that are installed."
app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_algorithms(as_json: Json = False) -> None:
    """List the algorithms."""
    import omnirl.plugins
    from omnirl.cli.listing import print_rows

    rows = [
        {
            "name": item.spec.name,
            "family": item.spec.family,
            "actions": list(item.spec.supports.actions),
            "summary": item.spec.summary,
            "aliases": list(item.spec.aliases),
            "distribution": item.source.distribution,
            "version": item.source.version,
        }
        for item in omnirl.plugins.load().algorithms()
    ]
    print_rows(rows, ("name", "family", "actions", "summary"), as_json=as_json)


@app.command("show")
def show_algorithm(name: Annotated[str, typer.Argument(metavar="NAME")], as_json: Json = False) -> None:
    """Show what an algorithm can be used with, and every key of its configuration."""
    import omnirl.plugins
    from omnirl.cli.listing import aligned, print_rows
    from omnirl.cli.lookup import load_part, named
    from omnirl.cli.parameters import parameter_rows

    spec = named(omnirl.plugins.load().algorithm, name)
    rows = parameter_rows(load_part(spec.name, spec.config), "modules.")
    facts = _facts(spec)
    if as_json:
        print(json.dumps({**facts, "parameters": rows}, ensure_ascii=False, indent=2))
        return
    for line in aligned([[f"{key}:", _shown(value)] for key, value in facts.items() if value != []]):
        print(line)
    print()
    print_rows(rows, ("key", "default", "description"), as_json=False)


def _facts(spec: AlgorithmSpec) -> dict[str, Any]:
    supports = spec.supports
    return {
        "name": spec.name,
        "summary": spec.summary,
        "family": spec.family,
        "aliases": list(spec.aliases),
        "actions": list(supports.actions),
        "observations": list(supports.observations),
        "action masks": supports.action_mask,
        "recurrent": supports.recurrent,
        "several learners": supports.learners,
        "metrics": list(spec.metric_names),
    }


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)
