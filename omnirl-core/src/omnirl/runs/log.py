"""Reading log.csv: whole rows only, as text, and the figures in them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

EVALUATIONS = "eval_"
"""What the columns of an evaluation's figures begin with."""


def read_rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the whole rows of a log in rising order of ``updates``; a torn or foreign line is passed over."""
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    # What follows the last line end is empty, or a line that was never finished.
    lines = text.split("\n")[:-1]
    header = fields(lines[0]) if lines else None
    if not header or "updates" not in header:
        return
    last = -1
    for line in lines[1:]:
        found = fields(line)
        if found is None or len(found) != len(header):
            continue
        row = dict(zip(header, found, strict=True))
        if row["updates"].isdecimal() and int(row["updates"]) > last:
            last = int(row["updates"])
            yield row


def fields(line: str) -> list[str] | None:
    """The fields of one line, or None where it is none (a crash of the machine may leave zero bytes)."""
    if "\0" in line:
        return None
    if '"' not in line and "\r" not in line:  # as nearly all are; the csv module takes longer
        return line.split(",") if line else None
    try:
        return next(csv.reader([line], strict=True), None)
    except csv.Error:
        return None


def figure(text: str | None) -> float | None:
    """The number of a field; None where there is none, or none that is finite."""
    try:
        value = float(text or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def value(text: str) -> int | float | None:
    """The number of a field as it was logged: whole numbers stay whole."""
    return int(text) if text.isdecimal() else figure(text)


def values(row: Mapping[str, str]) -> dict[str, int | float | None]:
    """All numbers of a row."""
    return {name: value(text) for name, text in row.items()}


def evaluation(row: Mapping[str, str]) -> dict[str, int | float | None]:
    """The figures of a row's evaluation by their names; empty where the row has none."""
    found = {
        name.removeprefix(EVALUATIONS): value(text)
        for name, text in row.items()
        if name.startswith(EVALUATIONS)
    }
    return found if any(number is not None for number in found.values()) else {}
