"""The generated end of each page of docs/algorithms: what an algorithm takes, its presets with what is published of
them, its columns in the log, its keys.

Results are looked up in the pages of measurements, so that a page never says more than was measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from omnirl.api import AlgorithmSpec
from omnirl.config.files import load_preset
from omnirl.plugins import Registry

RESULTS, ENVIRONMENTS = "results.md", "environments-results.md"
NAMED = re.compile(r"\[([\w-]+)\]\(#[\w-]+\)")


def presets_of(registry: Registry) -> dict[str, dict[str, Mapping[str, Any]]]:
    """By algorithm: the name of each of its presets, and what is in its file."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for spec in (provided.spec for provided in registry.presets()):
        data = load_preset(spec).data
        found.setdefault(data["agent"]["module"], {})[spec.name] = data
    return found


def published(docs: Path) -> dict[str, str]:
    """What each preset that was measured has to show, as a cell of a table below ``docs/algorithms``."""
    cells = {name: f"[{told}](../{RESULTS}#{name})" for name, told in _ladder(_text(docs / RESULTS))}
    for name in re.findall(r"omnirl train ([a-z][\w-]*)", _text(docs / ENVIRONMENTS)):
        link = f"[among the real environments](../{ENVIRONMENTS})"
        if link not in cells.get(name, ""):
            cells[name] = f"{cells[name]}; {link}" if name in cells else link
    return cells


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8") if page.is_file() else ""


def _ladder(text: str) -> Iterator[tuple[str, str]]:
    """Preset and score of each row in the table of results."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    for row in rows[2:]:
        cells = dict(zip(rows[0], row))
        named = NAMED.match(cells["preset"])
        assert named, f"{RESULTS}: no preset in {cells['preset']!r}"
        seeds = "1 seed" if cells["seeds"] == "1" else f"{cells['seeds']} seeds"
        yield named[1], f"{cells['score']} after {cells['steps']} steps, {seeds}"


def algorithm_part(
    algorithm: AlgorithmSpec,
    *,
    takes: Mapping[str, Iterable[str]],
    presets: Mapping[str, Mapping[str, Any]],
    results: Mapping[str, str],
    keys: Iterable[str],
) -> Iterator[str]:
    """The lines. ``takes`` names what of actions and of observations is taken, ``keys`` are the lines of the table."""
    yield from ("## Spaces", "")
    for title, names in takes.items():
        yield f"* **{title}**: {'; '.join(names)}"
    yield from (
        "",
        "How they are told apart, and what every algorithm refuses: [spaces and masks](../spaces.md).",
    )
    yield from ("", "## Presets and results", "")
    yield from ("| command | environment | steps | published result |", "| --- | --- | ---: | --- |")
    for name, data in presets.items():
        result = results.get(name, "no run is published yet")
        steps = f"{data['runner']['max_steps']:,}"
        yield f"| `omnirl train {name}` | {data['env']['id']} | {steps} | {result} |"
    yield from (
        "",
        "`omnirl presets show NAME` prints a preset with the source of its hyperparameters. For an environment of your "
        f"own say `agent: {{module: {algorithm.name}}}` in a file, beside `env`.",
        "",
    )
    columns = ", ".join(f"`{name}`" for name in algorithm.metric_names)
    yield f"Columns that it adds to `log.csv`: {columns}."
    yield from ("", "## Every key", "", "Keys below `modules`:", "")
    for line in keys:
        yield line.replace("(#schedules)", "(../reference/configuration.md#schedules)")
