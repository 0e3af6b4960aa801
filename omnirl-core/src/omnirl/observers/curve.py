"""The learning curve of a run as a picture, drawn once at the end from its log."""

from __future__ import annotations

from pathlib import Path

from omnirl.api.observer import ObserverBase, RunInfo, RunSummary
from omnirl.observers.csv_log import log_path
from omnirl.runs.curves import RETURN_LABEL, lines_of_run, scaled, title
from omnirl.runs.log import read_rows
from omnirl.runs.picture import Picture, draw, is_available

CURVE_FILE = "curve.png"


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
        if self._run is None or not is_available():
            return
        lines, label = scaled(lines_of_run(list(read_rows(log_path(self._run))), "steps"), "steps")
        if lines:
            run = self._run
            picture = Picture(title(run.algorithm, run.env_id, run.seed), label, RETURN_LABEL, lines)
            draw(picture, Path(summary.run_dir) / CURVE_FILE)
