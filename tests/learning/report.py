"""Writes the page of the learning results: a table over all rows, and a curve beside its reference for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ladder import Row, verdict

from omnirl.runs.curves import BLUE, ORANGE, RETURN_LABEL, Line
from omnirl.runs.picture import Picture, draw
from omnirl.runs.seeds import curve
from omnirl.runs.statistics import bootstrap_interval, interquartile_mean

GREEN, GREY = "#2a8f5b", "#666666"
HEAD = """# Learning results

What `python -m nox -s learning` trained, each row with `omnirl train` as a user types it (on Ray unless the command
says `--local`). **Score**: mean return over the deterministic episodes of the *final* policy, never the best one of
the run. IQM: the mean over the middle half of the seeds' scores, with its 95 % bootstrap interval over seeds (Agarwal
et al. 2021, arXiv:2108.13264), where there are at least three. Steps are environment steps, all samplers together. The
reference is a published figure; protocols differ between sources. Versions: {versions}; machine: {machine}.

| preset | steps | seeds | score | each seed | IQM (95 % interval) | target | reference | s per run | |
| --- | ---: | ---: | ---: | --- | --- | ---: | --- | ---: | --- |
"""


def write_page(rows: Sequence[Row], records: Sequence[Mapping[str, Any]], docs: Path) -> dict[str, str]:
    """Write ``docs/results.md`` and its pictures; return a line for each row that misses its bar."""
    missed: dict[str, str] = {}
    table, sections = [], []
    for row in rows:
        runs = [record for record in records if record["preset"] == row.preset]
        if not runs:
            continue
        scores = [run["score"] for run in runs]
        told = verdict(row, scores)
        if told != "reached":
            missed[row.preset] = f"{row.preset}: {told} ({', '.join(f'{score:.1f}' for score in scores)})"
        table.append(_line(row, runs, told))
        draw(_picture(row, runs), _folder(docs) / f"{row.preset}.png")
        sections.append(_section(row, runs))
    head = HEAD.format(versions=_versions(records), machine=_joined(record["machine"] for record in records))
    (docs / "results.md").write_text(head + "\n".join(table) + "\n\n" + "\n".join(sections), encoding="utf-8")
    return missed


def _folder(docs: Path) -> Path:
    folder = docs / "images" / "learning"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _line(row: Row, runs: Sequence[Mapping[str, Any]], told: str) -> str:
    scores = [run["score"] for run in runs]
    spread = "-"
    if len(scores) >= 3:
        low, high = bootstrap_interval(scores, interquartile_mean)
        spread = f"{interquartile_mean(scores):.1f} ({low:.1f} - {high:.1f})"
    seconds = sum(run["seconds"] for run in runs) / len(runs)
    cells = (
        f"[{row.preset}](#{row.preset})",
        f"{max(run['env_steps'] for run in runs):,}",
        str(len(runs)),
        f"{sum(scores) / len(scores):.1f}",
        ", ".join(f"{run['score']:.1f} ± {run['score_std']:.1f}" for run in runs),
        spread,
        f"{row.target:g}",
        row.reference,
        f"{seconds:.0f}",
        told,
    )
    return f"| {' | '.join(cells)} |"


def _section(row: Row, runs: Sequence[Mapping[str, Any]]) -> str:
    commands = "\n".join(run["command"] for run in runs)
    return (
        f"## {row.preset}\n\n```\n{commands}\n```\n\n"
        f"![{row.preset}: return over environment steps](images/learning/{row.preset}.png)\n"
    )


def _picture(row: Row, runs: Sequence[Mapping[str, Any]]) -> Picture:
    lines = []
    for name, color in (("training", ORANGE), ("evaluation", BLUE)):
        series = [[(x, y) for x, y in run["curve"][name]] for run in runs if run["curve"][name]]
        found = curve(series) if series else None
        if found is not None:
            lines.append(
                Line(
                    f"{name}, mean over {len(series)} seed{'s' if len(series) > 1 else ''}",
                    found.x.tolist(),
                    found.mean.tolist(),
                    color,
                    found.low.tolist(),
                    found.high.tolist(),
                    marked=name == "evaluation",
                )
            )
    end = max(run["env_steps"] for run in runs)
    for name, value, color in (("reference", row.published, GREEN), ("target", row.target, GREY)):
        lines.append(Line(name, [0.0, float(end)], [value, value], color, dashed=True))
    note = f"reference: {row.reference}"
    return Picture(row.preset, "environment steps", RETURN_LABEL, lines, note)


def _versions(records: Sequence[Mapping[str, Any]]) -> str:
    return _joined(
        ", ".join(f"{name} {version}" for name, version in record["versions"].items()) for record in records
    )


def _joined(texts: Any) -> str:
    return "; ".join(dict.fromkeys(texts)) or "-"
