"""``omnirl record`` and ``omnirl enjoy``: look at what a saved agent does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnirl.cli import sources
from omnirl.cli.options import Json, Model
from omnirl.cli.streams import for_json

if TYPE_CHECKING:
    from omnirl.run.viewing import Recording

RECORD_HELP = """Film a saved agent, without a display.

RUN is a run's folder, or its name in runs/. The video is an .mp4 or a .gif; without --out it is an .mp4 in the run's
folder. Without --model it is the agent that runner.eval_model names, or the newest. Settings may be changed by
KEY=VALUE: seed.evaluator=1 films other episodes. Needs: pip install "omnirl-gymnasium[video]"."""

ENJOY_HELP = """Show a saved agent in a window.

RUN is a run's folder, or its name in runs/. Without --model it is the agent that runner.eval_model names, or the
newest. Ctrl-C ends it. Where there is no display, record writes a video."""

RunName = Annotated[str, typer.Argument(metavar="RUN", help="the run's folder")]
Settings = Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="settings")]
Episodes = Annotated[int, typer.Option("--episodes", min=1, metavar="N", help="episodes one after the other")]


def record(
    run: RunName,
    settings: Settings = None,
    *,
    episodes: Episodes = 1,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help=".mp4 or .gif, not there yet")
    ] = None,
    model: Model = None,
    as_json: Json = False,
) -> None:
    """Hand over to :func:`omnirl.run.record` and say where the video is and what is in it."""
    overrides = sources.only_overrides(settings)
    folder = sources.existing_run(run)

    import omnirl.run

    with for_json(as_json):
        recording = omnirl.run.record(folder, out, overrides=overrides, model=model, episodes=episodes)
    print(json.dumps(as_data(recording), ensure_ascii=False) if as_json else as_line(recording))


def enjoy(
    run: RunName,
    settings: Settings = None,
    *,
    episodes: Episodes = 3,
    model: Model = None,
    as_json: Json = False,
) -> None:
    """Hand over to :func:`omnirl.run.enjoy` and print what was reached."""
    from omnirl.cli import test

    overrides = sources.only_overrides(settings)
    folder = sources.existing_run(run)

    import omnirl.run

    with for_json(as_json):
        evaluation = omnirl.run.enjoy(folder, overrides=overrides, model=model, episodes=episodes)
    print(json.dumps(test.as_data(evaluation)) if as_json else test.as_line(evaluation))


def as_line(recording: Recording) -> str:
    """``runs/cartpole/agent_100.mp4: 501 frames of 600x400, 10.0 s; agent_100 of runs/cartpole: return 500.0 ...``."""
    from omnirl.cli import test

    seconds = recording.frames / recording.frames_per_second
    size = f"{recording.frames} frames of {recording.width}x{recording.height}, {seconds:.1f} s"
    return f"{recording.path}: {size}; {test.as_line(recording.evaluation)}"


def as_data(recording: Recording) -> dict[str, object]:
    """The same for a program."""
    from omnirl.cli import test

    return {
        "file": str(recording.path),
        "frames": recording.frames,
        "frames_per_second": recording.frames_per_second,
        "width": recording.width,
        "height": recording.height,
        **test.as_data(recording.evaluation),
    }
