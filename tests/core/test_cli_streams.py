"""Commands whose output nobody can take: closed, full, cut short, or in an encoding that lacks our characters."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from omnirl.cli import outcome

OMNIRL = f'{sys.executable} -c "from omnirl.cli.app import main; main()"'
FILE = """\
runner: {max_updates: 2, num_samplers: 1, num_envs_per_sampler: 2, num_episodes: 2}
device: {threads: 1}
env: {module: omnirl.testing.environments, id: count, length: 10}
agent: {module: omnirl.testing.algorithm}
"""


@pytest.fixture
def shell(tmp_path):
    """``shell("omnirl ... >&-")`` -> the finished process."""
    (tmp_path / "count.yaml").write_text(FILE)

    def run(command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", "set -o pipefail; " + command.replace("omnirl", OMNIRL, 1)],
            cwd=tmp_path,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["omnirl algos list", "omnirl train count.yaml --local --run-dir run"])
def test_a_closed_stream_changes_nothing(shell, command, closed, tmp_path):
    done = shell(f"{command} {closed}")
    assert (done.returncode, done.stderr) == (0, "")
    if "train" in command:
        # Nothing that was meant for the terminal is in a file of the run.
        assert (tmp_path / "run" / "log.csv").read_text().startswith("wall_time,updates,")
        assert sorted(path.name for path in (tmp_path / "run").glob("agent_*")) == ["agent_2.pth"]


def test_a_closed_error_stream_keeps_the_exit_code(shell):
    assert shell("omnirl train nosuch.yaml 2>&-").returncode == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_the_output_is_one_line_and_23(shell, unbuffered):
    done = shell("omnirl algos list > /dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 23
    assert done.stderr == "cannot write or read a file: No space left on device\n"


def test_training_goes_on_where_its_reader_has_gone(shell, tmp_path):
    done = shell("omnirl train count.yaml --local --run-dir run | head -1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("TOY count seed 0: 2 updates")
    assert (tmp_path / "run" / "agent_2.pth").exists()


def test_a_character_that_the_output_lacks_is_replaced(shell):
    done = shell("omnirl train count.yaml --local", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.returncode == 0
    assert "result:   return 10.0 ? 0.0 over 2 episodes" in done.stdout  # the sign of plus and minus
    assert "test:     omnirl test runs/toy-count-seed0" in done.stdout  # and all that comes after it


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_cannot_be_written_is_no_bug(number, capsys):
    def action() -> None:
        raise OSError(number, os.strerror(number), "run/log.csv")

    assert outcome.exit_code_of(action, []) == 23
    assert capsys.readouterr().err == f"cannot write or read run/log.csv: {os.strerror(number)}\n"


def test_a_bug_where_no_file_can_be_written_shows_its_traceback(monkeypatch, capsys):
    def refuse(*arguments: object, **options: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "no usable temporary folder")

    def action() -> None:
        raise KeyError("lost")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    assert outcome.exit_code_of(action, []) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback")
    assert (
        lines[-1]
        == "omnirl: a bug: KeyError: 'lost' (the traceback is above, because no file can be written)"
    )
