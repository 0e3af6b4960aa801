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
def file(written):
    return written(FILE)


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


def test_a_damaged_run_in_the_default_folder_is_left_alone(file, tmp_path, capsys):
    assert run(["train", file, "--local", "--quiet"]) == 0
    damaged = tmp_path / "runs" / "toy-count-seed0" / "run_config.yaml"
    damaged.write_text("}\n")
    assert run(["train", file, "--local"]) == 0
    assert "runs/toy-count-seed0 is taken; this run goes to runs/toy-count-seed0-2" in capsys.readouterr().out
    assert damaged.read_text() == "}\n"
    assert run(["train", file, "--local", "--run-dir", "runs/toy-count-seed0"]) == 2
    assert "holds another run (its run_config.yaml differs or cannot be read)" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["here", "./here"])
def test_a_runs_folder_in_place_of_a_file_says_what_it_is_for(file, name, capsys):
    assert run(["train", file, "--local", "--run-dir", "here", "--quiet"]) == 0
    assert run(["train", name]) == 3
    assert capsys.readouterr().err == (
        f"{name}: is the folder of a run: `omnirl resume {name}` goes on with it, "
        f"`omnirl train {name}/run_config.yaml` repeats it\n"
    )


def test_a_run_that_cannot_be_written_to_is_tested(file, monkeypatch, capsys):
    assert run(["train", file, "--local", "--run-dir", "here", "--quiet"]) == 0
    # Root may write anywhere, so the answer of the operating system is given.
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert run(["test", "here", "--local"]) == 0
    assert capsys.readouterr().out.startswith("agent_6 of here: return 10.0")
    assert run(["resume", "here", "--local"]) == 2
    assert "no permission to write in here" in capsys.readouterr().err


def test_a_run_folder_with_nothing_but_a_lock_is_free(file, tmp_path, capsys):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / ".lock").touch()
    for command in ("resume", "test"):
        assert run([command, "here"]) == 3
        assert capsys.readouterr().err == "here: not the folder of a run (it has no run_config.yaml)\n"
    assert run(["train", file, "--local", "--run-dir", "here", "--quiet"]) == 0


def test_a_run_whose_agents_were_deleted_says_so(file, tmp_path, capsys):
    assert run(["train", file, "--local", "--run-dir", "here", "--quiet"]) == 0
    for agent in (tmp_path / "here").glob("agent_*.pth"):
        agent.unlink()
    assert run(["test", "here", "--local"]) == 3
    assert "here: holds no agent file" in capsys.readouterr().err


def test_a_configuration_edited_by_hand_is_checked_like_any(file, tmp_path, capsys):
    assert run(["train", file, "--local", "--run-dir", "here", "--quiet"]) == 0
    config = tmp_path / "here" / "run_config.yaml"
    config.write_text(config.read_text().replace("max_updates:", "max_update:"))
    for command in ("resume", "test"):
        assert run([command, "here", "--local"]) == 2
        assert "runner.max_update: unknown key (did you mean 'max_updates'?)" in capsys.readouterr().err


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


def test_a_run_that_is_refused_leaves_no_folder(file, tmp_path, capsys):
    """What only shows after its folder was chosen: neither that nor what was made above it stays."""
    before = sorted(tmp_path.rglob("*"))
    assert run(["train", file, "--local", "--steps", "3", "runner.max_updates="]) == 2
    assert "3 steps allow no update" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "mine").mkdir()
    assert (
        run(["train", file, "--local", "--steps", "3", "runner.max_updates=", "--run-dir", "mine/x/y"]) == 2
    )
    assert sorted(tmp_path.rglob("*")) == [*before, tmp_path / "mine"]
