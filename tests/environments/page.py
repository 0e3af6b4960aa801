"""Writes what was measured as two tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rows import Real, Suite

INTRODUCTION = """# Real environments, measured

Written by `python -m nox -s environments`, which runs the command line on each environment, one at a time.
"""
SUITES_TEXT = """
## The suites, 20,000 steps each

Each is a preset of `omnirl-algos` on Ray, with the changes that its command shows. The figure after ± is the standard
deviation over the episodes of the last evaluation. 20,000 steps are far too few to play well; where the table says
"random", the return must be above that of random actions by three standard errors. Memory is the most that the
learner's process took, which holds the replay: 20,000 frames of Pong are 141 MB of it.
"""
LANDER_TEXT = """
## LunarLander, 1,000,000 steps

`omnirl train lunarlander-ppo --local`, seed 0: 258.4 ± 21.4 over 50 episodes (solved is 200), after 999,424 steps in
2 min 49 s on 2 cores that had other work.

![The learning curve of PPO on LunarLander-v3](images/lunarlander-ppo.png)
"""
REAL_TEXT = """
## Environments of others, 2,000 steps each

`omnirl envs check ID` plays 300 random steps; then PPO or DQN trains for 2,000 steps (`--local`, with small rollouts).
What cannot be used is refused in one line before anything starts.
"""


def write_page(
    records: Mapping[str, Any], suites: Sequence[Suite], others: Sequence[Real], path: Path
) -> None:
    """The page of what is known."""
    lines = [INTRODUCTION, SUITES_TEXT]
    lines += [
        "| suite | return | random | learner's memory | time | command |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_suite(row.name, records[row.name]) for row in suites if row.name in records]
    lines += [LANDER_TEXT, REAL_TEXT]
    lines += ["| environment | package | keys | check | training |", "| --- " * 5 + "|"]
    lines += [_real(row, records[row.env]) for row in others if row.env in records]
    known = [
        records[name]
        for name in (*(row.name for row in suites), *(row.env for row in others))
        if name in records
    ]
    lines += ["", "## Machine and versions", ""]
    lines += [f"* {text}" for text in dict.fromkeys(_where(record) for record in known)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _suite(name: str, record: Mapping[str, Any]) -> str:
    score = (
        f"{record['return']:.2f} ± {record['std']:.2f}"
        if "return" in record
        else f"failed: {record['error']}"
    )
    random = (
        f"{record['random']:.2f} ({record['above']:.1f} standard errors below)" if "random" in record else ""
    )
    memory = f"{record['memory']:.0f} MB" if record["memory"] else ""
    return f"| {name} | {score} | {random} | {memory} | {_time(record)} | `{_cell(record['command'])}` |"


def _real(row: Real, record: Mapping[str, Any]) -> str:
    keys = " ".join(f"`{_cell(key)}`" for key in record["keys"])
    check = {0: "clean", 2: "refused"}.get(record["check"], "")
    if record["said"]:
        check = _cell(" ".join(record["said"].split()))
    trained = (
        f"{record['algorithm'].upper()} works, {_time(record)}"
        if record["code"] == 0
        else _cell(record["error"].removeprefix("--env ").removeprefix("override "))
    )
    return f"| {row.env} | {row.package} | {keys} | {check} | {trained} |"


def _where(record: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return f"{record['machine']}: {versions}"


def _time(record: Mapping[str, Any]) -> str:
    return f"{record['seconds']:.0f} s"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
