"""The lists and descriptions: algorithms, environments, presets, plugins, version."""

from __future__ import annotations

import json
import sys

import pytest

import omnirl.plugins
from omnirl.api.errors import PluginError
from omnirl.api.plugin import CommandSpec, PresetSpec
from omnirl.cli.app import run
from omnirl.plugins import PluginFailure, PluginSource, Provided, Registry
from omnirl.testing.algorithm import ALGORITHM
from omnirl.testing.environments import BACKEND

ACME = PluginSource("acme", "acme-rl", "1.2.0", "acme.plugin")
BROKEN = PluginSource("broken", "broken-rl", "0.1", "broken.plugin")
PRESET_TEXT = "# a comment that is kept\nrunner:\n  max_updates: 5\n"


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """A registry of one plugin that works and one that does not."""
    package = tmp_path / "acme_presets_for_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "count.yaml").write_text(PRESET_TEXT)
    (package / "commands.py").write_text(
        "import typer\n\n"
        "def hello(name: str, times: int = 1) -> None:\n"
        "    'Greet NAME.'\n"
        "    print(' '.join([name] * times))\n\n"
        "def stop() -> None:\n"
        "    raise typer.Exit(7)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    specs = {
        "omnirl_algorithms": [ALGORITHM],
        "omnirl_env_backends": [BACKEND],
        "omnirl_presets": [
            PresetSpec("count-toy", "counting", "acme_presets_for_test:count.yaml"),
            PresetSpec("lost", "its file is missing", "acme_presets_for_test:lost.yaml"),
        ],
        "omnirl_commands": [
            CommandSpec("hello", "Greet somebody.", "acme_presets_for_test.commands:hello"),
            CommandSpec("stop", "End with 7.", "acme_presets_for_test.commands:stop"),
            CommandSpec("gone", "Cannot be loaded.", "acme_presets_for_test.commands:gone"),
        ],
    }
    provided = {hook: [Provided(spec, ACME) for spec in found] for hook, found in specs.items()}
    failure = PluginFailure(BROKEN, "import", "ImportError: no module named 'fast'")
    registry = Registry(provided, failures=[failure], loaded=[ACME])
    monkeypatch.setattr(omnirl.plugins, "load", lambda: registry)
    yield registry
    for name in [name for name in sys.modules if name.startswith("acme_presets_for_test")]:
        del sys.modules[name]


# ------------------------------------------------------------------ algos, envs


def test_algorithms_are_listed(registry, output):
    lines = output(["algos", "list"]).splitlines()
    assert lines[0].split() == ["name", "family", "actions", "summary"]
    assert lines[1].split("  ")[0] == "toy"
    assert ALGORITHM.summary in lines[1]


def test_algorithms_as_json(registry, output):
    (row,) = json.loads(output(["algos", "list", "--json"]))
    assert row["name"] == "toy"
    assert row["actions"] == ["discrete", "continuous"]
    assert (row["distribution"], row["version"]) == ("acme-rl", "1.2.0")


def test_an_algorithm_shows_every_key_with_default_and_description(registry, output):
    lines = output(["algos", "show", "toy"]).splitlines()
    assert f"summary:           {ALGORITHM.summary}" in lines
    assert "several learners:  no" in lines
    assert not any(line.startswith("aliases") for line in lines)
    words = {line.split()[0]: line.split()[1] for line in lines if line.startswith("modules.")}
    assert words["modules.learner.lr"] == "0.01"
    assert words["modules.memory.kind"] == "queue"
    assert words["modules.memory.capacity"] == "1000"
    assert any("transitions that replay holds" in line for line in lines)


def test_an_algorithm_as_json(registry, output):
    data = json.loads(output(["algos", "show", "toy", "--json"]))
    assert {"key": "modules.learner.lr", "default": "0.01", "description": "size of an update"} in data[
        "parameters"
    ]
    assert data["observations"] == ["vector"]


def test_backends_are_listed_and_shown(registry, output):
    assert BACKEND.summary in output(["envs", "list"])
    lines = output(["envs", "show", BACKEND.name]).splitlines()
    assert lines[0] == f"{BACKEND.name}: {BACKEND.summary}"
    assert any(line.split()[:2] == ["env.id", "required"] for line in lines)
    assert any(line.split()[:2] == ["env.length", "unset"] for line in lines)
    assert json.loads(output(["envs", "list", "--json"]))[0]["name"] == BACKEND.name


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["algos", "show", "tyo"], "toy"),
        (["envs", "show", "tseting"], "testing"),
        (["presets", "show", "count-yto"], "count-toy"),
        (["config", "init", "count-yto"], "count-toy"),
        (["plugins", "show", "acmee"], "acme"),
    ],
)
def test_an_unknown_name_ends_with_3_and_the_nearest(registry, arguments, nearest, refusal):
    (line,) = refusal(arguments, 3)
    assert f"did you mean {nearest!r}?" in line


def test_a_name_of_a_failed_plugin_ends_with_4(registry, refusal):
    (error,) = refusal(["algos", "show", "broken"], 4)
    assert "broken-rl 0.1" in error
    assert "no module named 'fast'" in error


def test_an_empty_list_says_so(monkeypatch, output):
    monkeypatch.setattr(omnirl.plugins, "load", lambda: Registry({}))
    assert output(["algos", "list"]) == "none is installed\n"
    assert json.loads(output(["algos", "list", "--json"])) == []


# ------------------------------------------------------------------ presets


def test_presets_are_listed_and_shown_with_their_comments(registry, output):
    assert "counting" in output(["presets", "list"])
    assert output(["presets", "show", "count-toy"]) == PRESET_TEXT
    assert json.loads(output(["presets", "show", "count-toy", "--json"])) == {
        "name": "count-toy",
        "yaml": PRESET_TEXT,
    }


def test_a_preset_without_its_file_is_the_plugins_fault(registry, refusal):
    (line,) = refusal(["presets", "show", "lost"], 4)
    assert "'lost' cannot be read" in line


def test_a_preset_begins_a_configuration(registry, tmp_path, output):
    assert output(["config", "init", "count-toy"]) == PRESET_TEXT
    file = tmp_path / "mine.yaml"
    assert str(file) in output(["config", "init", "count-toy", "-o", str(file)])
    assert file.read_text() == PRESET_TEXT


def test_a_file_that_is_there_is_not_overwritten(registry, tmp_path, refusal):
    file = tmp_path / "mine.yaml"
    file.write_text("mine")
    (line,) = refusal(["config", "init", "count-toy", "-o", str(file)], 2)
    assert "not overwritten" in line
    assert file.read_text() == "mine"


def test_a_folder_that_is_not_there_is_one_line(registry, tmp_path, refusal):
    target = str(tmp_path / "none" / "mine.yaml")
    (line,) = refusal(["config", "init", "count-toy", "-o", target], 23)
    assert "cannot be written" in line


# ------------------------------------------------------------------ plugins and their commands


def test_plugins_are_listed_with_those_that_fail(registry, output):
    out = output(["plugins", "list"])
    lines = {line.split()[0]: line for line in out.splitlines() if line[0] != " "}
    assert lines["acme"].split()[1:4] == ["acme-rl", "1.2.0", "ok"]
    assert lines["broken"].split()[1:4] == ["broken-rl", "0.1", "failed"]
    assert "no module named 'fast'" in out
    rows = json.loads(output(["plugins", "list", "--json"]))
    assert {row["plugin"]: row["status"] for row in rows} == {"acme": "ok", "broken": "failed"}


def test_a_plugin_shows_what_it_provides(registry, output):
    out = output(["plugins", "show", "acme"])
    assert "algorithms:            toy" in out
    assert "presets:               count-toy, lost" in out
    assert output(["plugins", "show", "acme-rl"]) == out
    (row,) = json.loads(output(["plugins", "show", "broken", "--json"]))
    assert row["problems"] == ["import: ImportError: no module named 'fast'"]


def test_a_plugins_command_is_shown_and_runs(registry, output):
    assert "hello    Greet somebody." in output(["--help"])
    assert "acme_presets_for_test.commands" not in sys.modules, "only the command itself may import its code"
    assert output(["hello", "you", "--times", "2"]) == "you you\n"
    assert "--times" in output(["hello", "--help"])
    assert run(["stop"]) == 7


def test_a_plugins_command_that_cannot_be_loaded_ends_with_4(registry, refusal):
    (line,) = refusal(["gone"], 4)
    assert "'gone' cannot be loaded" in line


def test_help_works_whatever_is_broken(monkeypatch, capsys):
    def strict():
        raise PluginError("plugin 'broken' failed")

    monkeypatch.setattr(omnirl.plugins, "load", strict)
    assert run(["--help"]) == 0
    out, err = capsys.readouterr()
    assert "train" in out
    assert err == "plugin 'broken' failed\n"


# ------------------------------------------------------------------ version


def test_version_shows_what_is_installed(output):
    from importlib import metadata

    lines = dict(line.split(maxsplit=1) for line in output(["version"]).splitlines())
    assert lines["omnirl-core"] == metadata.version("omnirl-core")
    assert lines["python"] == ".".join(map(str, sys.version_info[:3]))
    assert json.loads(output(["version", "--json"])) == lines
