"""Where a configuration comes from on the command line: presets, files, options, ``KEY=VALUE``.

The later wins: preset, files in their order (``--runner-config`` and ``--agent-config`` after those without
an option), options such as ``--seed``, then ``KEY=VALUE``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from omnirl.config.files import Tree

_OVERRIDE = re.compile(r"[^/\\]*=")  # before the = of a path there is a separator, of a key there is none

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


def option_tree(values: Iterable[tuple[str, str, str | int | bool | None]]) -> Tree:
    """Options as settings: ``(option, dotted key, value)``, those not given left out.

    The option is the origin of its setting, so a mistake is reported as ``--seed seed: ...``.
    """
    from omnirl.config.files import Origin, Tree

    data: dict[str, Any] = {}
    origins: dict[tuple[str | int, ...], Origin] = {}
    for option, key, value in values:
        if value is None:
            continue
        path = tuple(key.split("."))
        section = data
        for name in path[:-1]:
            section = section.setdefault(name, {})
        section[path[-1]] = value
        origins.update((path[: depth + 1], Origin(option)) for depth in range(len(path)))
    return Tree(data, origins)


def config_files(runner: Path | None, agent: Path | None) -> list[Path | Tree]:
    """The files of the two-file form; where both are given, a pair in the wrong order is refused."""
    if runner is None or agent is None:
        return [path for path in (runner, agent) if path is not None]
    from omnirl.config.files import load_pair

    return [load_pair(runner, agent)]


def run_folder(text: str) -> Path | None:
    """The folder of the run that ``text`` names, by its path or by its name in ``runs``, if there is one."""
    from omnirl.runtime.run_dir import is_run

    return next((path for path in (Path(text), RUNS / text) if is_run(path)), None)


def existing_run(text: str) -> Path:
    """The same, or NotFoundError with the nearest name (exit 3)."""
    from difflib import get_close_matches

    from omnirl.api.errors import NotFoundError
    from omnirl.runtime.run_dir import CONFIG_FILE

    path = run_folder(text)
    if path is not None:
        return path
    if Path(text).is_dir():
        raise NotFoundError(f"{text}: not the folder of a run (it has no {CONFIG_FILE})")
    known = [
        str(file.parent) for folder in {Path(text).parent, RUNS} for file in folder.glob(f"*/{CONFIG_FILE}")
    ]
    near = get_close_matches(text, known, n=1, cutoff=0.5) or get_close_matches(
        Path(text).name, [Path(name).name for name in known], n=1, cutoff=0.5
    )
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise NotFoundError(f"{text}: no such run{hint}")
