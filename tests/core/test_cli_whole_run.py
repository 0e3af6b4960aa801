"""The commands end to end on the testing algorithm and environment: files, lines, exit codes."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest

from omnirl.cli.app import run
from omnirl.observers.csv_log import read_rows

FILE = """\
runner: {max_updates: 6, num_samplers: 1, num_envs_per_sampler: 2, num_episodes: 2, log_interval: 0,
         eval_interval: 3}
device: {threads: 1}
env: {module: omnirl.testing.environments, id: count, length: 10}
agent: {module: omnirl.testing.algorithm}
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "count.yaml").write_text(FILE)
    return "count.yaml"


def test_train_test_and_resume(file, tmp_path, capsys):
    assert run(["train", file, "--local", "--run-dir", "here", "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [item["event"] for item in events if item["event"] != "checkpoint"] == [
        "started",
        *["metrics"] * 6,
        "finished",
    ]
    finished = events[-1]
    assert finished["status"] == "finished"
    assert finished["updates"] == 6
    assert finished["evaluation"]["return_mean"] == 10.0  # one per step, episodes of ten steps

    rows = list(read_rows(tmp_path / "here" / "log.csv"))
    assert [int(row["updates"]) for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["eval_return_mean"] for row in rows] == ["", "", "10.0", "", "", "10.0"]

    assert run(["test", "here", "--local", "--json", "--min-return", "10"]) == 0
    tested = json.loads(capsys.readouterr().out)
    assert (tested["model"], tested["metrics"]["return_mean"]) == ("agent_6", 10.0)
    assert run(["test", "here", "--local", "--min-return", "10.5"]) == 30
    assert run(["test", "here", "--local", "--model", "agent_5"]) == 3
    capsys.readouterr()

    program, *arguments = shlex.split(finished["commands"]["resume"])
    assert program == "omnirl"
    assert run([*arguments, "--local"]) == 0
    out = capsys.readouterr().out
    assert "resumed at update 6" in out
    assert "finished: 12 updates" in out
    assert [int(row["updates"]) for row in read_rows(tmp_path / "here" / "log.csv")] == list(range(1, 13))


def test_a_folder_of_another_run_is_refused(file, capsys):
    assert run(["train", file, "--local", "--run-dir", "here", "--quiet"]) == 0
    assert run(["train", file, "--local", "--run-dir", "here", "--quiet", "--seed", "1"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "here: holds another run" in err


def test_nothing_heavy_is_imported_by_a_local_run(file):
    code = (
        "import sys\n"
        "from omnirl.cli.app import run\n"
        f"code = run(['train', {file!r}, '--local', '--quiet'])\n"
        "print([name for name in ('torch', 'ray', 'gymnasium', 'rich') if name in sys.modules])\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
