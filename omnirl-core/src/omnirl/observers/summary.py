"""What is told at the end of a run: the result, the picture, and the exact commands to go on and to test."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnirl.api.observer import RunInfo, RunSummary
from omnirl.observers.curve import CURVE_FILE, HINT, is_available


def summary_lines(summary: RunSummary, run: RunInfo | None) -> list[str]:
    """The lines shown to a person. ``run`` is what the run started with, where that is known."""
    if summary.status == "failed":  # why is told by whoever gets the error
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
    folder = shlex.quote(summary.run_dir)
    resume = f"omnirl resume {folder}"
    if summary.status == "finished":  # has reached its target, so going on needs a further one
        resume += _further_target(summary, run)
    return {"resume": resume, "test": f"omnirl test {folder}"}


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
    return text + "".join(
        f", {name.removesuffix('_mean')} {value:.6g}" for name, value in metrics.items() if name not in known
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


def _further_target(summary: RunSummary, run: RunInfo | None) -> str:
    """An override that doubles the target that was set; a run knows both, for one follows from the other."""
    runner = {} if run is None else run.config.get("runner", {})
    steps = runner.get("max_steps")
    if steps is not None and runner.get("max_updates") is None:
        return f" runner.max_steps={2 * steps}"
    return f" runner.max_updates={2 * summary.updates}" + (
        "" if steps is None else f" runner.max_steps={2 * steps}"
    )
