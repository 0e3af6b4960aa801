"""Drawing lines into a file. matplotlib, an extra of the distribution, is imported only here, when it is needed.

The figure is built without pyplot, whose global state is not meant for the thread that observers run on.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omnirl.runs.curves import Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INSTALL = 'pip install "omnirl-core[plot]"'
HINT = f"no picture: matplotlib is not installed ({INSTALL})"
FORMATS = ("png", "svg", "pdf")
PALETTE = ("#1f5fb4", "#e08214", "#2a8f5b", "#8a4fa8", "#c43c3c", "#1f97a6", "#8c6239", "#6d7278")
_GREY, _GRID = "#666666", "#dddddd"
_MOST_IN_AXES = 6
"""Names that leave room for the curves; more stand beside them."""


@dataclass(frozen=True)
class Picture:
    """What is drawn. note: a line of small print, such as what the bands are."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    note: str = ""


def is_available() -> bool:
    """Whether matplotlib is installed; does not import it."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(picture: Picture, path: Path) -> None:
    """Draw the picture and put it at ``path``, in one step, in the format its name ends with. Raises OSError."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    crowded = len(picture.lines) > _MOST_IN_AXES
    figure = Figure(figsize=(10.5 if crowded else 8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for line in picture.lines:
        _draw_line(axes, line)
    axes.set_title(picture.title, loc="left", fontsize=13, fontweight="bold")
    axes.set_xlabel(picture.x_label)
    axes.set_ylabel(picture.y_label)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_GREY)
    axes.tick_params(colors=_GREY)
    if crowded:
        figure.legend(frameon=False, loc="outside right upper", fontsize=9)
    else:
        axes.legend(frameon=False, loc="best")
    if picture.note:
        figure.supxlabel(picture.note, x=0.99, ha="right", fontsize=8, color=_GREY)
    kind = path.suffix[1:].lower()
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        figure.savefig(partial, dpi=150, format=kind)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _draw_line(axes: Axes, line: Line) -> None:
    single = len(line.x) == 1  # neither a line nor a band has one point
    if single and line.low:
        below = [y - low for y, low in zip(line.y, line.low, strict=True)]
        above = [high - y for y, high in zip(line.y, line.high, strict=True)]
        axes.errorbar(line.x, line.y, yerr=[below, above], color=line.color, capsize=4)
    axes.plot(
        line.x,
        line.y,
        color=line.color,
        linewidth=1.8 if line.marked else 1.5,
        linestyle="--" if line.dashed else "-",
        marker="o" if single or line.marked else "",
        markersize=5,
        label=line.label,
    )
    if line.low and not single:
        axes.fill_between(
            line.x, line.low, line.high, color=line.color, alpha=0.18, linewidth=0, label=line.band or None
        )
