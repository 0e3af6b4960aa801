"""``omnirl presets``: the complete configurations that plugins ship."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from omnirl.cli.options import Json

NAME, HELP = "presets", "The complete configurations that are installed."
app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_presets(as_json: Json = False) -> None:
    """List the presets."""
    import omnirl.plugins
    from omnirl.cli.listing import print_rows

    rows = [
        {
            "name": item.spec.name,
            "summary": item.spec.summary,
            "distribution": item.source.distribution,
            "version": item.source.version,
        }
        for item in omnirl.plugins.load().presets()
    ]
    print_rows(rows, ("name", "summary"), as_json=as_json)


@app.command("show")
def show_preset(name: Annotated[str, typer.Argument(metavar="NAME")], as_json: Json = False) -> None:
    """Print a preset's YAML."""
    text = preset_text(name)
    print(
        json.dumps({"name": name, "yaml": text}, ensure_ascii=False, indent=2) if as_json else text.rstrip()
    )


def preset_text(name: str) -> str:
    """The YAML of a preset, comments included. Raises NotFoundError, or PluginError without its file."""
    from importlib.resources import files

    import omnirl.plugins
    from omnirl.api.errors import PluginError
    from omnirl.cli.lookup import named

    spec = named(omnirl.plugins.load().preset, name)
    package, _, file = spec.resource.partition(":")
    try:
        return files(package).joinpath(file).read_text(encoding="utf-8")
    except (ImportError, OSError, ValueError) as error:
        raise PluginError(f"the preset {name!r} cannot be read: {type(error).__name__}: {error}") from error
