"""``omnirl runs``: the runs on the disk, one of them in detail, and pictures of their curves."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnirl.cli import sources
from omnirl.cli.options import Json
from omnirl.cli.outcome import warn

if TYPE_CHECKING:
    from omnirl.runs.folder import Run

NAME, HELP = "runs", "The runs on the disk: list, show and plot them."
app = typer.Typer(no_args_is_help=True)


class X(str, Enum):
    """What a picture's horizontal axis counts."""

    steps = "steps"
    time = "time"
    updates = "updates"


@app.command("list")
def list_runs(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="look below DIR (default: runs)")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the runs below a folder, the one that wrote last first."""
    from omnirl.api.errors import NotFoundError
    from omnirl.cli.listing import print_rows
    from omnirl.cli.runs_text import LIST_COLUMNS, list_row, run_data
    from omnirl.runs.folder import find_runs

    place = sources.RUNS if folder is None else folder
    if folder is not None and not folder.is_dir():
        raise NotFoundError(f"{folder}: no such folder")
    runs = find_runs(place)
    rows = [run_data(run) if as_json else list_row(run, place) for run in runs]
    print_rows(rows, LIST_COLUMNS, as_json=as_json, empty=f"there is no run below {place}")


@app.command("show")
def show_run(
    run: Annotated[str, typer.Argument(metavar="RUN", help="the run's folder, or its name in runs/")],
    as_json: Json = False,
) -> None:
    """Show a run: its configuration, how far it is, its evaluations, its files, and the commands to go on."""
    from omnirl.cli.runs_text import full_data, full_text

    found = _run(run)
    if as_json:
        print(json.dumps(full_data(found), ensure_ascii=False, indent=2))
        return
    for line in full_text(found):
        print(line)


@app.command("plot")
def plot_runs(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="folders of runs, or names in runs/")],
    x: Annotated[X, typer.Option("--x", help="what the horizontal axis counts")] = X.steps,
    metric: Annotated[
        str | None,
        typer.Option("--metric", metavar="COLUMN", help="a column of log.csv (default: the return)"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help=".png, .svg or .pdf (default: plot.png)"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw the learning curves of runs.

    Without --metric one run shows its training and its evaluations; several show their evaluations, or training
    where a run has fewer than two evaluations. Runs of one configuration and several seeds are drawn as their mean,
    with a band from the lowest to the highest run, or, from five runs on, the 95 % bootstrap interval of the mean.
    A single run's plot.png goes into its folder, that of several runs here.
    """
    from omnirl.api.errors import ConfigError, DiskError, PluginError
    from omnirl.runs import picture
    from omnirl.runs.plot import plot

    found = list({run.path.resolve(): run for run in map(_run, runs)}.values())
    path = output or (found[0].path if len(found) == 1 else Path()) / "plot.png"
    if path.suffix[1:].lower() not in picture.FORMATS:
        raise ConfigError(f"--output {path}: must end with .png, .svg or .pdf")
    drawn = plot(found, x.value, metric)
    if not picture.is_available():
        raise PluginError(picture.HINT)
    for line in drawn.left_out:
        warn(line)
    try:
        picture.draw(drawn.picture, path)
    except OSError as error:
        raise DiskError(f"{path} cannot be written: {error.strerror}") from None
    if as_json:
        print(json.dumps({"file": str(path), "x": x.value, "curves": drawn.curves}, ensure_ascii=False))
    else:
        print(path)


def _run(text: str) -> Run:
    from omnirl.runs.folder import read_run

    return read_run(sources.existing_run(text))
