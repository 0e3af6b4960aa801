"""Progress and result for the person who started the run, or JSON lines for the program that did.

======  ============================================================================================
mode    shows
======  ============================================================================================
live    a bar and a line of figures that are redrawn in place (needs a terminal)
plain   one ``key=value`` line every ten seconds
json    one JSON object a line: what happened, the rows of log.csv, the summary
quiet   nothing
======  ============================================================================================
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TextIO

from omnirl.api.observer import ObserverBase, Progress, RunInfo, RunSummary, Value
from omnirl.observers.summary import summary_data, summary_lines

if TYPE_CHECKING:
    from omnirl.observers.live import LiveDisplay

Mode = Literal["live", "plain", "json", "quiet"]
PLAIN_INTERVAL = 10.0
"""Seconds between two plain lines."""


class ConsoleObserver(ObserverBase):
    """Tells a run's story on ``stream`` (standard output).

    mode: as in the table of this module; None chooses live in a terminal and plain elsewhere.
    show_progress: whether the modes live and plain show any.
    """

    name = "console"

    def __init__(
        self, mode: Mode | None = None, stream: TextIO | None = None, show_progress: bool = True
    ) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._mode: Mode = mode or ("live" if _is_terminal(self._stream) else "plain")
        self._show_progress = show_progress
        self._run: RunInfo | None = None
        self._live: LiveDisplay | None = None
        self._last_line = -math.inf

    def run_started(self, run: RunInfo) -> None:
        """Say what runs, where, and since when."""
        self._run = run
        if self._mode == "json":
            self._json("started", _run_data(run))
            return
        self._say(_first_line(run))
        for notice in run.notices:
            self._say(notice)
        if self._mode == "live" and self._show_progress:
            self._start_live()

    def progress(self, progress: Progress) -> None:
        """Redraw, or print a line when it is time for one."""
        if self._run is None or not self._show_progress:
            return
        if self._live is not None:
            self._live.show(self._run, progress)
        elif self._mode == "plain":
            if self._last_line == -math.inf:
                self._last_line = 0.0 if self._run.resumed_from is None else progress.seconds
            if progress.seconds - self._last_line >= PLAIN_INTERVAL:
                self._last_line = progress.seconds
                self._say(plain_line(self._run, progress))

    def metrics(self, row: Mapping[str, Value]) -> None:
        """Rows are for programs; a person sees the progress."""
        if self._mode == "json":
            self._json("metrics", row)

    def checkpoint_saved(self, updates: int, path: str) -> None:
        """Tell programs; a person sees its age."""
        if self._mode == "json":
            self._json("checkpoint", {"updates": updates, "path": path})

    def rewound(self, updates: int) -> None:
        """Say that the run goes on from an earlier update."""
        if self._mode == "json":
            self._json("rewound", {"updates": updates})
        else:
            self._say(f"going on from update {updates}: later rows of the log are dropped")

    def event(self, text: str) -> None:
        """Pass a line on."""
        if self._mode == "json":
            self._json("event", {"text": text})
        else:
            self._say(text)

    def run_finished(self, summary: RunSummary) -> None:
        """Give the terminal back and tell the result."""
        self.close()
        if self._mode == "json":
            self._json("finished", summary_data(summary, self._run))
        else:
            for line in summary_lines(summary, self._run):
                self._say(line)

    def close(self) -> None:
        """Give the terminal back, also where a run ended without a result."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _start_live(self) -> None:
        from rich.console import Console

        from omnirl.observers.live import LiveDisplay

        self._live = LiveDisplay(Console(file=self._stream))
        self._live.start()

    def _say(self, text: str) -> None:
        if self._mode == "quiet":
            return
        if self._live is not None:
            self._live.say(text)
        else:
            print(text, file=self._stream, flush=True)

    def _json(self, event: str, data: Mapping[str, Any]) -> None:
        print(json.dumps({"event": event, **_finite(data)}), file=self._stream, flush=True)


def plain_line(run: RunInfo, progress: Progress) -> str:
    """``updates=64/100 env_steps=131072 steps_per_s=16210 ...``; what is not known yet is left out."""
    values: dict[str, str | None] = {
        "updates": f"{progress.updates}/{run.total_updates}" if run.total_updates else str(progress.updates),
        "env_steps": f"{progress.env_steps}/{run.total_steps}"
        if run.total_steps
        else str(progress.env_steps),
        "seconds": f"{progress.seconds:.0f}",
        "eta": _optional(progress.eta_s, ".0f"),
        "steps_per_s": f"{progress.steps_per_s:.0f}",
        "updates_per_s": f"{progress.updates_per_s:.1f}",
        "return": _optional(progress.train_return, ".6g"),
        "return_std": _optional(progress.train_return_std, ".4g"),
        "eval_return": _optional(progress.eval_return, ".6g"),
        "lag_p50": f"{progress.lag_p50:g}",
        "lag_max": str(progress.lag_max),
        "samplers": f"{progress.samplers_alive}/{run.num_samplers}",
        "checkpoint_age": _optional(progress.checkpoint_age, ".0f"),
    }
    return " ".join(f"{key}={value}" for key, value in values.items() if value is not None)


def _first_line(run: RunInfo) -> str:
    updates, steps = f"{run.total_updates:,} updates", f"{run.total_steps:,} env steps"
    target = (
        f"{updates} ({steps})"
        if run.total_updates and run.total_steps
        else updates
        if run.total_updates
        else steps
    )
    samplers = f"{run.num_samplers} sampler{'' if run.num_samplers == 1 else 's'}"
    since = "" if run.resumed_from is None else f", resumed at update {run.resumed_from:,}"
    learners = f"{run.num_learners} learners, " if run.num_learners > 1 else ""
    return f"{run.title}: {target}, {learners}{samplers}, {run.transport}, {run.run_dir}{since}"


def _run_data(run: RunInfo) -> dict[str, Any]:
    return {
        "run_dir": run.run_dir,
        "algorithm": run.algorithm,
        "env_id": run.env_id,
        "seed": run.seed,
        "total_updates": run.total_updates,
        "total_steps": run.total_steps,
        "num_learners": run.num_learners,
        "num_samplers": run.num_samplers,
        "num_evaluators": run.num_evaluators,
        "transport": run.transport,
        "resumed_from": run.resumed_from,
        "columns": list(run.columns),
        "notices": list(run.notices),
    }


def _finite(value: Any) -> Any:
    """JSON knows neither NaN nor infinity: they become null."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def _optional(value: float | None, form: str) -> str | None:
    return None if value is None else format(value, form)


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"
