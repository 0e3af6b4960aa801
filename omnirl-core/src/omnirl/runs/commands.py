"""The exact commands that go on from a run: told at its end, and by ``omnirl runs show``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any


def run_commands(
    folder: str,
    *,
    finished: bool,
    updates: int,
    runner: Mapping[str, Any],
    last_return: float | None,
    total_updates: int | None,
) -> dict[str, str]:
    """The commands by what they do: ``resume``, ``test`` and ``plot``.

    runner: the run's ``runner`` section; last_return: the mean of its last evaluation; total_updates: where its
    target lies, None where that is not known. A finished run goes on only with a further target, so its command
    brings one: what ended it, a return or a number, is lifted.
    """
    quoted = shlex.quote(folder)
    resume = f"omnirl resume {quoted}"
    if finished:
        stop_return = runner.get("stop_return")
        reached = stop_return is not None and last_return is not None and last_return >= stop_return
        if reached:
            resume += " runner.stop_return=null"
        if not reached or total_updates is None or updates >= total_updates:
            resume += _further_target(updates, runner)
    return {
        "resume": resume,
        "test": f"omnirl test {quoted}",
        "plot": f"omnirl runs plot {quoted}",
    }


def _further_target(updates: int, runner: Mapping[str, Any]) -> str:
    """An override that doubles the target that was set; a run knows both, for one follows from the other."""
    steps = runner.get("max_steps")
    if steps is not None and runner.get("max_updates") is None:
        return f" runner.max_steps={2 * steps}"
    return f" runner.max_updates={2 * updates}" + ("" if steps is None else f" runner.max_steps={2 * steps}")
