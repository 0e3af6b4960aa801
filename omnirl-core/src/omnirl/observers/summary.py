"""What is told at the end of a run: the result, the picture, and the exact commands to go on, to test and to
plot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnirl.api.observer import RunInfo, RunSummary
from omnirl.observers.curve import CURVE_FILE
from omnirl.runs.commands import run_commands
from omnirl.runs.picture import HINT, is_available

CONFIG_FILE = "run_config.yaml"
"""What makes a folder one that a run can go on in."""


def summary_lines(summary: RunSummary, run: RunInfo | None) -> list[str]:
    """The lines shown to a person. ``run`` is what the run started with, where that is known."""
    if summary.status == "failed":  # why is told by whoever gets the error
        if not (Path(summary.run_dir) / CONFIG_FILE).is_file():
            return ["failed before training began"]
        return [
            f"failed; the files of the run are in {summary.run_dir}",
            f"go on with: {commands(summary, run)['resume']}",
        ]
    duration = f"{summary.seconds:.1f} s" if summary.seconds < 120 else clock(summary.seconds)
    first = (
        f"{summary.updates:,} updates, {summary.env_steps:,} env steps in {duration}"
        f" ({summary.steps_per_s:,.0f} steps/s, {summary.updates_per_s:,.1f} updates/s)"
    )
    rows = [(summary.status, first)]
    if summary.message:
        rows.append(("note", summary.message))
    if summary.evaluation:
        rows.append(("result", evaluation_text(summary.evaluation)))
    if not summary.exact:
        rows.append(("exact", "false (the same command need not give the same numbers again)"))
    if summary.restarts:
        rows.append(("restarts", f"{summary.restarts} of a worker"))
    curve = curve_path(summary)
    if curve is not None:
        rows.append(("curve", curve))
    elif not is_available():
        rows.append(("curve", HINT))
    rows.extend(commands(summary, run).items())
    width = max(len(name) for name, _ in rows) + 2
    return [f"{name + ':':<{width}}{text}" for name, text in rows]


def commands(summary: RunSummary, run: RunInfo | None) -> dict[str, str]:
    """The commands that go on from here, by what they do."""
    runner = {} if run is None else run.config.get("runner", {})
    return run_commands(
        summary.run_dir,
        finished=summary.status == "finished",
        updates=summary.updates,
        runner=runner,
        last_return=summary.evaluation.get("return_mean"),
        total_updates=None if run is None else run.total_updates,
    )


def curve_path(summary: RunSummary) -> str | None:
    """The learning curve's picture, if there is one."""
    if summary.curve is not None:
        return summary.curve
    path = Path(summary.run_dir) / CURVE_FILE
    return str(path) if path.is_file() else None


def evaluation_text(metrics: Mapping[str, float]) -> str:
    """``return 498.2 ± 3.1 over 10 episodes (min 489, max 500), length 498``, or every figure by its name."""
    if "return_mean" not in metrics:
        return ", ".join(f"{name} {value:.6g}" for name, value in metrics.items())
    text = f"return {metrics['return_mean']:.1f}"
    if "return_std" in metrics:
        text += f" ± {metrics['return_std']:.1f}"
    if "episodes" in metrics:
        text += f" over {metrics['episodes']:.0f} episodes"
    if "return_min" in metrics and "return_max" in metrics:
        text += f" (min {metrics['return_min']:.6g}, max {metrics['return_max']:.6g})"
    known = {"return_mean", "return_std", "return_min", "return_max", "episodes"}
    others = {name: value for name, value in metrics.items() if name not in known}
    return text + "".join(
        f", {'length' if name == 'length_mean' else name} {value:.6g}" for name, value in others.items()
    )


def summary_data(summary: RunSummary, run: RunInfo | None) -> dict[str, Any]:
    """The same for a program."""
    return {
        "status": summary.status,
        "message": summary.message,
        "run_dir": summary.run_dir,
        "updates": summary.updates,
        "env_steps": summary.env_steps,
        "stored_steps": summary.stored_steps,
        "seconds": summary.seconds,
        "steps_per_s": summary.steps_per_s,
        "updates_per_s": summary.updates_per_s,
        "evaluation": dict(summary.evaluation),
        "exact": summary.exact,
        "restarts": summary.restarts,
        "curve": curve_path(summary),
        "commands": commands(summary, run),
    }


def clock(seconds: float) -> str:
    """``1:02:03``, hours without a limit."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
