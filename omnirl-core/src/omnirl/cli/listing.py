"""How lists and descriptions are printed: aligned columns for people, JSON for programs."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any


def print_rows(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    *,
    as_json: bool,
    empty: str = "none is installed",
) -> None:
    """Print ``rows``: the named columns aligned under their names, or ``empty``; or everything as one JSON list."""
    if as_json:
        print(json.dumps(list(rows), ensure_ascii=False, indent=2))
        return
    if not rows:
        print(empty)
        return
    for line in aligned([columns, *([_cell(row.get(column)) for column in columns] for row in rows)]):
        print(line)


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Cells in columns. In a terminal the last column is wrapped at its width; elsewhere a row is one line."""
    widths = [max(len(row[index]) for row in table) for index in range(len(table[0]) - 1)]
    indent = sum(widths) + 2 * len(widths)
    lines = []
    for row in table:
        start = "".join(f"{cell:<{width}}  " for cell, width in zip(row[:-1], widths, strict=True))
        last = _wrapped(row[-1], indent)
        lines.append((start + last[0]).rstrip())
        lines.extend(" " * indent + line for line in last[1:])
    return lines


def _wrapped(text: str, indent: int) -> list[str]:
    if not sys.stdout.isatty():  # whoever searches the output should find whole messages
        return [text]
    room = max(30, shutil.get_terminal_size((110, 24)).columns - indent)
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)
