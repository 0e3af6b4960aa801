"""``omnirl resume``: go on with a run from its folder alone."""

from __future__ import annotations

from typing import Annotated

import typer

from omnirl.cli import sources
from omnirl.cli.options import Json, Local, NoProgress, Quiet
from omnirl.cli.streams import for_json
from omnirl.cli.train import build_console, end_with

HELP = """Go on with a run from its last checkpoint.

RUN is the run's folder, or its name in runs/. KEY=VALUE changes a key, such as runner.max_updates=200 to go
on with a run that has reached its target."""


def resume(
    run: Annotated[str, typer.Argument(metavar="RUN", help="the run's folder")],
    settings: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="settings")] = None,
    *,
    local: Local = False,
    as_json: Json = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> None:
    """Read the run's own configuration and hand over to :func:`omnirl.run.train`."""
    overrides = sources.only_overrides(settings)
    console = build_console(as_json=as_json, quiet=quiet, no_progress=no_progress)
    folder = sources.existing_run(run)

    import omnirl.run
    from omnirl.runtime.run_dir import CONFIG_FILE

    # The folder may have been moved since the file was written.
    here = sources.option_tree([("RUN", "runner.ckpt_dir", str(folder))])
    try:
        with for_json(as_json):
            config = omnirl.run.configure(folder / CONFIG_FILE, here, overrides=overrides)
            summary = omnirl.run.train(config, local=local, resume="must", observer_objects=[console])
    finally:
        console.close()
    end_with(summary)
