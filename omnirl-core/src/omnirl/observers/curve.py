"""The learning curve of a run as a picture, drawn once at the end from its log.

matplotlib is an extra of the distribution and is imported only when the picture is drawn. The figure is built
without pyplot, whose global state is not meant for the thread that observers run on.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omnirl.api.observer import ObserverBase, RunInfo, RunSummary
from omnirl.observers.csv_log import log_path, read_rows

CURVE_FILE = "curve.png"
HINT = 'no picture: matplotlib is not installed (pip install "omnirl-core[plot]")'
EVALUATION, TRAINING, GREY = "#1f5fb4", "#e08214", "#666666"


class Curve(ObserverBase):
    """Draws ``curve.png`` into the run's folder when the run ends."""

    name = "curve"

    def __init__(self) -> None:
        self._run: RunInfo | None = None

    def run_started(self, run: RunInfo) -> None:
        """Remember what is drawn."""
        self._run = run

    def run_finished(self, summary: RunSummary) -> None:
        """Draw the picture, if there is anything to draw and something to draw it with."""
        if self._run is not None and is_available():
            series = read_series(log_path(self._run))
            if series.evaluation or series.training:
                draw(series, curve_title(self._run), Path(summary.run_dir) / CURVE_FILE)


@dataclass(frozen=True)
class Series:
    """The points of both curves, in rising order of environment steps.

    evaluation: ``(env steps, mean return, standard deviation)``; training: ``(env steps, mean return)``.
    """

    evaluation: Sequence[tuple[float, float, float]]
    training: Sequence[tuple[float, float]]


def is_available() -> bool:
    """Whether matplotlib is installed; does not import it."""
    return importlib.util.find_spec("matplotlib") is not None


def curve_title(run: RunInfo) -> str:
    """``PPO on CartPole-v1, seed 0``."""
    return f"{run.algorithm.upper()} on {run.env_id}, seed {run.seed}"


def read_series(path: Path) -> Series:
    """The two curves of a log; rows without a finite figure are left out."""
    evaluation: list[tuple[float, float, float]] = []
    training: list[tuple[float, float]] = []
    for row in read_rows(path):
        steps = _number(row.get("env_steps"))
        mean = _number(row.get("eval_return_mean"))
        recent = _number(row.get("train_return"))
        if steps is None:
            continue
        if mean is not None:
            evaluation.append((steps, mean, _number(row.get("eval_return_std")) or 0.0))
        if recent is not None:
            training.append((steps, recent))
    return Series(evaluation, training)


def draw(series: Series, title: str, path: Path) -> None:
    """Draw the curves and replace ``path`` by the picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if series.training:
        steps, mean = zip(*series.training, strict=True)
        marker = "o" if len(steps) == 1 else ""
        axes.plot(
            steps, mean, color=TRAINING, linewidth=1.4, marker=marker, label="training, recent episodes"
        )
    if series.evaluation:
        steps, mean, deviation = zip(*series.evaluation, strict=True)
        axes.plot(
            steps, mean, color=EVALUATION, linewidth=1.8, marker="o", markersize=5, label="evaluation, mean"
        )
        low = [m - d for m, d in zip(mean, deviation, strict=True)]
        high = [m + d for m, d in zip(mean, deviation, strict=True)]
        if len(steps) == 1:  # a band needs two points
            axes.errorbar(steps, mean, yerr=deviation, color=EVALUATION, capsize=4)
        else:
            axes.fill_between(steps, low, high, color=EVALUATION, alpha=0.18, linewidth=0, label="± 1 std")
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold")
    axes.set_xlabel("environment steps")
    axes.set_ylabel("undiscounted return per episode")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=GREY)
    axes.legend(frameon=False, loc="best")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    figure.savefig(partial, dpi=150, format="png")
    os.replace(partial, path)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
