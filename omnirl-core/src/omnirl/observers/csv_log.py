"""log.csv: one header, one width, strictly increasing updates, cut back to the checkpoint when a run goes on.

Numbers are written so that they read back equal, hence equal runs give equal text.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from omnirl.api.observer import ObserverBase, RunInfo, RunSummary, Value
from omnirl.runs.log import fields, read_rows


class CsvLog(ObserverBase):
    """Writes the rows of a run into ``<runner.log_name>.csv`` of its folder.

    Each row is handed to the operating system at once, so it survives the death of the process; ``flush``
    also waits for the disk and is called before a checkpoint counts as saved.
    """

    name = "csv"

    def __init__(self) -> None:
        self._path = Path()
        self._columns: tuple[str, ...] = ()
        self._file: TextIO | None = None
        self._last = self._kept = -1

    def run_started(self, run: RunInfo) -> None:
        """Begin the file, or cut the one that is there back to the checkpoint."""
        self._path = log_path(run)
        self._columns = run.columns
        for left_over in self._path.parent.glob(f".{self._path.name}.*.partial"):  # by a killed process
            left_over.unlink(missing_ok=True)
        if run.resumed_from is not None and self._path.exists():
            self._keep_other_columns(run.resumed_from)
            self._rewrite(run.resumed_from)
            self._kept = self._last
        else:
            self._rewrite(None)

    def metrics(self, row: Mapping[str, Value]) -> None:
        """Append a row.

        One that was in the file when the run went on stays as it is.
        Raises ValueError where ``updates`` does not rise or the row has a figure without a column: either
        would make the file unreadable for those who plot it.
        """
        unknown = [key for key in row if key not in self._columns]
        if unknown:
            raise ValueError(f"{self._path.name} has no column {', '.join(unknown)}")
        updates = row["updates"]
        if isinstance(updates, int) and updates <= self._kept:
            return  # it waited for an evaluation when the run was saved, and had its figures before the run was killed
        if not isinstance(updates, int) or updates <= self._last:
            raise ValueError(
                f"{self._path.name}: a row of update {updates} after that of update {self._last}"
            )
        if self._file is None:
            raise ValueError(f"{self._path.name} is not open")
        self._file.write(_line([row.get(column) for column in self._columns]))
        self._file.flush()
        self._last = updates

    def rewound(self, updates: int) -> None:
        """Drop the rows of a time that no longer counts."""
        self._rewrite(updates)

    def flush(self) -> None:
        """Return when every row so far is on the disk."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def run_finished(self, summary: RunSummary) -> None:
        """Close the file."""
        if self._file is not None:
            self.flush()
            self._file.close()
            self._file = None

    def _rewrite(self, limit: int | None) -> None:
        """Replace the file by its rows of updates up to ``limit`` (none of them for None) and leave it open.

        The new content is complete on the disk before it takes the old one's place.
        """
        if self._file is not None:
            self._file.close()
        kept = [] if limit is None else [row for row in read_rows(self._path) if int(row["updates"]) <= limit]
        partial = self._path.with_name(f".{self._path.name}.{os.getpid()}.partial")
        try:
            with partial.open("w", encoding="utf-8", newline="") as file:
                file.write(_line(self._columns))
                file.writelines(_line([row.get(column) for column in self._columns]) for row in kept)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self._path)
        finally:
            partial.unlink(missing_ok=True)
        self._last = int(kept[-1]["updates"]) if kept else -1
        self._kept = min(self._kept, self._last)
        self._file = self._path.open("a", encoding="utf-8", newline="")

    def _keep_other_columns(self, updates: int) -> None:
        """Keep a copy of a log with columns that this run no longer has, or of a damaged one: nothing is lost."""
        header = fields(self._path.read_text(encoding="utf-8", errors="replace").split("\n", 1)[0])
        if header is None or set(header) - set(self._columns):
            copy = self._path.with_name(f"{self._path.stem}-until-{updates}{self._path.suffix}")
            copy.write_bytes(self._path.read_bytes())


def log_path(run: RunInfo) -> Path:
    """Where the log of a run is."""
    return Path(run.run_dir) / f"{run.config.get('runner', {}).get('log_name', 'log')}.csv"


def _line(values: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([_text(value) for value in values])
    return text.getvalue()


def _text(value: Any) -> str:
    """A figure as text that reads back equal; numpy's scalars like Python's own."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value.replace("\n", " ").replace("\r", " ")
    if hasattr(value, "__index__"):
        return str(int(value))
    return repr(float(value))
