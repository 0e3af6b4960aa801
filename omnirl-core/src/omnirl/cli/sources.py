"""Where a configuration comes from on the command line: presets, files, options, ``KEY=VALUE``.

The later wins: preset, files in their order (``--runner-config`` and ``--agent-config`` after those without
an option), options such as ``--seed``, then ``KEY=VALUE``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import typer

_OVERRIDE = re.compile(r"[\w.\-]+=")

RUN_FILE = "run_config.yaml"
RUNS = Path("runs")


def split(arguments: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """``(sources, overrides)``: ``dotted.key=value`` is an override, the rest name presets or files."""
    sources: list[str] = []
    overrides: list[str] = []
    for argument in arguments or ():
        (overrides if _OVERRIDE.match(argument) else sources).append(argument)
    return sources, overrides


def only_overrides(arguments: Sequence[str] | None) -> list[str]:
    """The overrides of a command that takes nothing else."""
    sources, overrides = split(arguments)
    if sources:
        raise typer.BadParameter(f"{sources[0]!r} is not of the form KEY=VALUE")
    return overrides


def assignments(values: Iterable[tuple[str, str | int | bool | None]]) -> list[str]:
    """Options as overrides, those not given left out; text is quoted, so ``--run-dir 007`` is no number."""
    return [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in values if value is not None]


def run_folder(text: str) -> Path | None:
    """The folder of the run that ``text`` names, by its path or by its name in ``runs``, if there is one."""
    for path in (Path(text), RUNS / text):
        if (path / RUN_FILE).is_file():
            return path
    return None


def existing_run(text: str) -> Path:
    """The same, or NotFoundError with the nearest name (exit 3)."""
    from difflib import get_close_matches

    from omnirl.api.errors import NotFoundError

    path = run_folder(text)
    if path is not None:
        return path
    if Path(text).is_dir():
        raise NotFoundError(f"{text}: not the folder of a run (it has no {RUN_FILE})")
    known = [
        str(file.parent) for folder in {Path(text).parent, RUNS} for file in folder.glob(f"*/{RUN_FILE}")
    ]
    near = get_close_matches(text, known, n=1, cutoff=0.5) or get_close_matches(
        Path(text).name, [Path(name).name for name in known], n=1, cutoff=0.5
    )
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise NotFoundError(f"{text}: no such run{hint}")
