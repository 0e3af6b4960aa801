"""--json: every command that prints data prints one JSON document (train and resume: lines), with the same facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import typer.core
import typer.main

from omnirl.cli.app import build_app, run
from omnirl.config.files import load_text

FILE = """\
runner: {max_updates: 2, num_samplers: 1, num_envs_per_sampler: 2, num_episodes: 2, log_interval: 0}
device: {learner: cpu, threads: 1}
env: {module: omnirl.testing.environments, id: count, length: 10}
agent: {module: omnirl.testing.algorithm}
"""
WITHOUT = {
    "config schema": "is JSON anyway",
    "config init": "writes YAML, as presets show does, which has --json",
}
"""The commands without --json, and why."""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def file(written: Callable[[str], str]) -> str:
    return written(FILE)


def data_of(arguments: Sequence[str], capsys: Capture, code: int = 0) -> Any:
    assert run([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_every_command_that_prints_data_has_it() -> None:
    def commands(group: Any, name: str) -> dict[str, Any]:
        if not hasattr(group, "commands"):
            return {name: group}
        found = {}
        for part, command in group.commands.items():
            found.update(commands(command, f"{name} {part}".strip()))
        return found

    every = commands(typer.main.get_command(build_app()), "")
    assert {"train", "runs plot", "plugins show", "version"} <= set(every)
    lacking = {
        name
        for name, command in every.items()
        if not any("--json" in getattr(option, "opts", ()) for option in command.params)
    }
    assert lacking == set(WITHOUT)


def test_a_valid_configuration(file: str, capsys: Capture) -> None:
    facts = {"valid": True, "mistakes": [], "algorithm": "toy", "backend": "testing"}
    assert data_of(["config", "validate", file], capsys) == facts
    assert data_of(["config", "validate", file, "--deep"], capsys) == facts


def test_mistakes_are_told_to_both(file: str, capsys: Capture) -> None:
    assert run(["config", "validate", file, "runner.max_updates=0", "sed=1", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == {"valid": False, "mistakes": err.splitlines()}
    assert len(err.splitlines()) == 2


def test_a_dry_run_is_the_configuration(file: str, capsys: Capture) -> None:
    data = data_of(["train", file, "--dry-run", "--updates", "9"], capsys)
    assert data["runner"]["max_updates"] == 9
    assert run(["train", file, "--dry-run", "--updates", "9"]) == 0
    assert load_text(capsys.readouterr().out, "shown").data == data


def test_a_run_is_one_object_a_line(file: str, capsys: Capture) -> None:
    assert run(["train", file, "--local", "--run-dir", "a", "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"started", "metrics", "checkpoint", "finished"} == {item["event"] for item in events}
    assert events[-1]["commands"]["plot"] == "omnirl runs plot a"
    arguments = ["resume", "a", "--local", "--json", "runner.max_updates=3"]
    assert run(arguments) == 0
    resumed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (resumed[0]["resumed_from"], resumed[-1]["updates"]) == (2, 3)


def test_a_configuration_and_its_origins(file: str, capsys: Capture) -> None:
    data = data_of(["config", "show", file], capsys)
    assert run(["config", "show", file]) == 0
    assert load_text(capsys.readouterr().out, "shown").data == data
    rows = data_of(["config", "show", file, "--origin"], capsys)
    assert {"key": "env.length", "value": "10", "origin": "count.yaml:3:55"} in rows
