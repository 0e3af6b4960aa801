"""omnirl config: show, validate and schema on real configurations."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from omnirl.cli.app import run
from omnirl.config.files import load_text

FILE = """\
runner:
  max_updates: 5
  num_samplers: 2
env:
  module: omnirl.testing.environments
  id: count
agent:
  module: omnirl.testing.algorithm
modules:
  learner:
    lr: 1e-3
"""


@pytest.fixture
def file(written):
    return written(FILE)


def test_show_fills_in_every_default_and_reads_back(file, output):
    text = output(["config", "show", file, "runner.num_episodes=3"])
    data = load_text(text, "shown").data
    assert data["runner"]["num_episodes"] == 3
    assert data["runner"]["num_samplers"] == 2
    assert data["runner"]["save_interval"] == 60.0
    assert data["modules"]["learner"]["lr"] == 0.001
    assert data["modules"]["memory"]["capacity"] == 1000
    assert json.loads(output(["config", "show", file, "runner.num_episodes=3", "--json"])) == data


def test_show_origin_names_file_line_and_column(file, output):
    rows = [line.split() for line in output(["config", "show", file, "seed=3", "--origin"]).splitlines()]
    origins = {row[0]: tuple(row[1:]) for row in rows}
    assert origins["key"] == ("value", "origin")
    assert origins["runner.max_updates"] == ("5", "count.yaml:2:3")
    assert origins["modules.learner.lr"] == ("0.001", "count.yaml:11:5")
    assert origins["seed"] == ("3", "override")
    assert origins["runner.num_learners"] == ("1", "default")
    assert origins["runner.max_steps"] == ("null", "default")
    data = json.loads(output(["config", "show", file, "--origin", "--json"]))
    assert {"key": "runner.max_updates", "value": "5", "origin": "count.yaml:2:3"} in data


def test_validate_says_what_is_valid(file, output):
    assert output(["config", "validate", file]) == "valid: toy with testing\n"
    assert output(["config", "validate", file, "--deep"]) == "valid: toy with testing\n"


def test_validate_reports_every_mistake_on_its_line(file, capsys, tmp_path):
    (tmp_path / "count.yaml").write_text(
        FILE.replace("lr:", "lrr:").replace("num_samplers: 2", "num_samplers: 0")
    )
    assert run(["config", "validate", file]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith("count.yaml:3:3 runner.num_samplers: ")
    assert second.startswith("count.yaml:11:5 modules.learner.lrr: ")
    assert "did you mean 'lr'?" in second


def test_validate_takes_the_two_file_form(tmp_path, monkeypatch, output):
    monkeypatch.chdir(tmp_path)
    head, tail = FILE.split("agent:")
    (tmp_path / "train.yaml").write_text(head)
    (tmp_path / "toy.yaml").write_text("agent:" + tail)
    pair = ["--runner-config", "train.yaml", "--agent-config", "toy.yaml"]
    assert output(["config", "validate", *pair]) == "valid: toy with testing\n"


def test_only_deep_checks_open_the_environment(file, capsys, monkeypatch):
    from omnirl.api.errors import ConfigError
    from omnirl.config import check
    from omnirl.runtime import setup

    def spaces(config, env_spec):
        assert env_spec.id == "count"
        raise ConfigError("count.yaml:8:3 agent.module: does not fit the spaces")

    def plan(config, env_spec):
        raise ConfigError("count.yaml:2:3 runner.max_steps: allow no update")

    monkeypatch.setattr(check, "check_spaces", spaces)
    monkeypatch.setattr(setup, "plan_of", plan)
    assert run(["config", "validate", file]) == 0
    capsys.readouterr()
    assert run(["config", "validate", file, "--deep"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "count.yaml:8:3 agent.module: does not fit the spaces",
        "count.yaml:2:3 runner.max_steps: allow no update",
    ]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["config", "validate", "none.yaml"], 3),
        (["config", "validate", "no-such-preset"], 3),
        (["config", "show", "none.yaml"], 3),
        (["config", "validate", "count.yaml", "agent.module=no_such_algorithm"], 2),
        (["config", "validate", "count.yaml", "=3"], 2),
        (["config", "schema", "--algo", "no-such-algorithm"], 3),
        (["config", "schema", "--backend", "no-such-backend"], 3),
    ],
)
def test_what_is_not_there(file, arguments, code, capsys):
    assert run(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err
    assert "Traceback" not in err


def test_schema_is_what_an_editor_needs(output):
    schema = json.loads(output(["config", "schema"]))
    assert schema["type"] == "object"
    assert {"runner", "device", "seed", "env", "agent", "modules", "ray"} <= set(schema["properties"])


def test_schema_of_one_algorithm_and_backend(output):
    arguments = ["--algo", "omnirl.testing.algorithm", "--backend", "omnirl.testing.environments"]
    text = output(["config", "schema", *arguments])
    assert "size of an update" in text
    assert "steps of an episode" in text


def test_a_dry_run_shows_what_would_run_and_leaves_nothing(file, tmp_path, output):
    text = output(["train", file, "--dry-run", "--updates", "9", "--run-dir", "elsewhere"])
    data = load_text(text, "shown").data
    assert data["runner"]["max_updates"] == 9
    assert data["runner"]["num_samplers"] == 2
    assert data["device"]["learner"] in ("cpu", "cuda")
    assert isinstance(data["device"]["threads"], int)
    assert [path.name for path in tmp_path.iterdir()] == ["count.yaml"]


def test_an_options_mistake_names_the_option(file, capsys):
    assert run(["train", file, "--dry-run", "--address", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("--address ray.address: ")


@pytest.mark.parametrize("command", [["config", "validate"], ["config", "show"]])
def test_checking_files_imports_no_simulator_and_no_ray(file, command):
    code = (
        "import sys\n"
        "from omnirl.cli.app import run\n"
        f"code = run({[*command, file]!r})\n"
        "print([name for name in ('torch', 'ray', 'gymnasium', 'rich') if name in sys.modules])\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
