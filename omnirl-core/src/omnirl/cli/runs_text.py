"""A run in words, and the same as data for programs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from omnirl.cli.listing import aligned
from omnirl.cli.parameters import yaml_text
from omnirl.observers.summary import clock, evaluation_text
from omnirl.runs.commands import run_commands
from omnirl.runs.folder import Run
from omnirl.runs.log import EVALUATIONS, figure, values

LIST_COLUMNS = ("run", "algorithm", "env", "seed", "status", "updates", "steps", "return", "age")
_LAST_ROWS, _LAST_EVALUATIONS = 5, 10
_ROW_COLUMNS = ("wall_time", "updates", "env_steps", "steps_per_s", "train_return", "eval_return_mean")


def list_row(run: Run, place: Path) -> dict[str, str]:
    """A line of ``runs list``; the run is named as it is found from ``place``."""
    counters, last = run.counters, run.last_return
    name = run.path.relative_to(place) if run.path != place else run.path
    return {
        "run": str(name),
        "algorithm": run.algorithm,
        "env": run.env_id,
        "seed": "" if run.seed is None else str(run.seed),
        "status": run.status,
        "updates": f"{counters['updates']:,}",
        "steps": f"{counters['env_steps']:,}",
        "return": "" if last is None else f"{last:.6g}",
        "age": age(time.time() - run.modified),
    }


def run_data(run: Run) -> dict[str, Any]:
    """The same for a program."""
    modified = datetime.fromtimestamp(run.modified, tz=timezone.utc)
    best = run.best
    return {
        "run": run.path.name,
        "path": str(run.path),
        "algorithm": run.algorithm,
        "env": run.env_id,
        "seed": run.seed,
        "status": run.status,
        **run.counters,
        "last_return": run.last_return,
        "best": None if best is None else {"updates": best[0], "return_mean": best[1]},
        "modified": modified.isoformat(timespec="seconds"),
        "age_s": round(max(0.0, time.time() - run.modified), 1),
        "problem": run.problem,
    }


def full_data(run: Run) -> dict[str, Any]:
    """Everything ``runs show`` tells, the whole configuration included."""
    return {
        **run_data(run),
        "config": run.config,
        "wall_time": _wall_time(run),
        "evaluations": run.evaluations,
        "last_rows": [values(row) for row in run.rows[-_LAST_ROWS:]],
        "files": run.sizes(),
        "commands": commands(run),
    }


def full_text(run: Run) -> list[str]:
    """The lines of ``runs show``."""
    counters, limits, wall_time = run.counters, run.limits, _wall_time(run)
    seed = "" if run.seed is None else f" seed {run.seed}"
    facts = [["status:", f"{run.status}, last written {age(time.time() - run.modified)} ago"]]
    if run.problem:
        facts.append(["problem:", run.problem])
    facts.append(["updates:", _of(counters["updates"], limits.get("max_updates"))])
    facts.append(["env steps:", _of(counters["env_steps"], limits.get("max_steps"))])
    if wall_time is not None:
        facts.append(["wall time:", clock(wall_time)])
    if run.best is not None:
        facts.append(["best:", f"agent_{run.best[0]}, return {run.best[1]:.6g}"])
    facts += [[f"{name}:", text] for name, text in _configuration(run.config) if text]
    lines = [f"{run.path}: {run.algorithm.upper()} {run.env_id}{seed}", "", *aligned(facts)]
    lines += _section("evaluations", _evaluations(run))
    lines += _section("last rows", _last_rows(run))
    lines += _section("files", aligned([[name, size(number)] for name, number in run.sizes().items()]))
    return [*lines, "", *aligned([[f"{name}:", text] for name, text in commands(run).items()])]


def commands(run: Run) -> dict[str, str]:
    """The exact commands that go on from the run."""
    total = run.limits.get("max_updates")
    return run_commands(
        str(run.path),
        finished=run.status == "finished",
        updates=run.counters["updates"],
        runner=run.limits,
        last_return=run.last_return,
        total_updates=None if total is None else int(total),
    )


def age(seconds: float) -> str:
    """``12 s``, ``3 min``, ``5 h``, ``2 d``."""
    seconds = max(0.0, seconds)
    for unit, length, limit in (("s", 1, 120), ("min", 60, 120 * 60), ("h", 3600, 48 * 3600)):
        if seconds < limit:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def size(number: int) -> str:
    """``312 B``, ``14.2 kB``, ``3.1 MB``, in powers of 1000."""
    value, unit = float(number), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" or value >= 99.5 else f"{value:.3g} {unit}"


def _of(number: int, target: float | None) -> str:
    return f"{number:,}" if target is None else f"{number:,} of {target:,}"


def _wall_time(run: Run) -> float | None:
    return figure(run.rows[-1].get("wall_time")) if run.rows else None


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _configuration(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """``(section, "key value, key value")``; what is unset is left out, and so are the names shown above."""
    for name, section in config.items():
        if name == "modules" and isinstance(section, Mapping):
            yield from ((f"{name}.{part}", _settings(keys)) for part, keys in section.items())
        elif name not in ("seed", "versions"):
            yield name, _settings(section)


def _settings(section: Any) -> str:
    if not isinstance(section, Mapping):
        return yaml_text(section)
    return ", ".join(
        f"{key} {yaml_text(_set(value))}"
        for key, value in section.items()
        if value not in (None, {}, []) and key != "ckpt_dir"
    )


def _set(value: Any) -> Any:
    """Without the keys that are unset."""
    if not isinstance(value, Mapping):
        return value
    return {key: _set(item) for key, item in value.items() if item is not None}


def _evaluations(run: Run) -> list[str]:
    shown = run.evaluations[-_LAST_EVALUATIONS:]
    earlier = len(run.evaluations) - len(shown)
    table = []
    for item in shown:
        steps = item["env_steps"]
        figures = {
            name: float(number)
            for name, number in item.items()
            if number is not None and name not in ("updates", "env_steps")
        }
        table.append(
            [
                f"update {item['updates']:,}",
                "" if steps is None else f"{steps:,} steps",
                evaluation_text(figures),
            ]
        )
    return ([f"{earlier} earlier"] if earlier else []) + (aligned(table) if table else [])


def _last_rows(run: Run) -> list[str]:
    """The last rows of the log: counters, returns, and the learner's own figures, which stand last."""
    rows = run.rows[-_LAST_ROWS:]
    if not rows:
        return []
    columns = [name for name in rows[0] if name in _ROW_COLUMNS]
    columns += [name for name in rows[0] if name not in _known(rows[0])]
    return aligned([columns, *([_short(row[name]) for name in columns] for row in rows)])


def _known(row: Mapping[str, str]) -> set[str]:
    """The columns that every log has: the counters up to the training return, and the evaluation's."""
    names = list(row)
    end = names.index("train_return") + 1 if "train_return" in names else 0
    return {*names[:end], *(name for name in names if name.startswith(EVALUATIONS))}


def _short(text: str) -> str:
    number = figure(text)
    return "" if number is None else str(int(text)) if text.isdecimal() else f"{number:.5g}"
