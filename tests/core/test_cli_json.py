"""--json: every command that prints data prints one JSON document (train and resume: lines), with the same facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
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


NOISY = """\
import sys
from omnirl.api import EnvBackendSpec, hookimpl
from omnirl.testing import environments

OMNIRL_API = 1
print("imported")


@hookimpl
def omnirl_env_backends():
    print("asked")
    return [EnvBackendSpec("loud", "says much", "acme_loud.parts:Config", "acme_loud.parts:BACKEND")]
"""
NOISY_PARTS = """\
from dataclasses import replace

from omnirl.api.plugin import load_object
from omnirl.testing.environments import BACKEND as SPEC

print("parts")
Config, quiet = load_object(SPEC.config), load_object(SPEC.backend)


def build_env(config, context):
    print("built")
    environment = quiet.build_env(config, context)
    step = environment.step

    def loud_step(action):
        print("stepped")
        return step(action)

    environment.step = loud_step
    return environment


BACKEND = replace(quiet, build_env=build_env)
"""
LOUD_COMMANDS = [
    ["plugins", "list"],
    ["plugins", "doctor"],
    ["envs", "show", "loud"],
    ["config", "validate", "FILE", "--deep"],
    ["train", "FILE", "--local", "--run-dir", "RUN"],
    ["resume", "RUN", "--local", "runner.max_updates=3"],
    ["test", "RUN", "--local"],
]


def test_what_a_plugin_prints_is_no_part_of_it(installation: Any, tmp_path: Path) -> None:
    modules = {"acme_loud/__init__": NOISY, "acme_loud/parts": NOISY_PARTS}
    installation.add("acme-loud", "1.0", {"loud": "acme_loud"}, modules)
    file = tmp_path / "loud.yaml"
    file.write_text(FILE.replace("omnirl.testing.environments", "loud"), encoding="utf-8")
    names = {"FILE": str(file), "RUN": str(tmp_path / "run")}
    for arguments in LOUD_COMMANDS:
        given = [names.get(argument, argument) for argument in arguments]
        code = f"import sys\nfrom omnirl.cli.app import run\nsys.exit(run({[*given, '--json']!r}))"
        done = installation.run(code)
        assert done.returncode == 0, done.stderr
        assert "imported" in done.stderr
        for document in done.stdout.splitlines() if "--local" in arguments else [done.stdout]:
            json.loads(document)
    assert "stepped" in done.stderr
