"""The console script: Ctrl-C at any moment of its life, the first imports and the interpreter's end among them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distribution

import pytest

SCRIPT = """
import atexit, os, signal, sys

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {moment!r}:
            interrupt()

if {moment!r} == "end":
    atexit.register(interrupt)
sys.meta_path.insert(0, Interrupting())
from {module} import {function}
{function}()
"""


@pytest.fixture
def interrupted() -> Callable[..., subprocess.CompletedProcess[str]]:
    """``interrupted(moment, *arguments)``: the command, sent a SIGINT as it imports a module or as it ends."""
    (entry,) = distribution("omnirl-core").entry_points.select(group="console_scripts", name="omnirl")

    def run(moment: str, *arguments: str, ignored: bool = False) -> subprocess.CompletedProcess[str]:
        inherited = signal.SIG_IGN if ignored else signal.SIG_DFL  # whatever these tests were started with
        code = SCRIPT.format(module=entry.module, function=entry.attr, moment=moment)
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            preexec_fn=lambda: signal.signal(signal.SIGINT, inherited),
        )

    return run


@pytest.mark.parametrize("moment", ["omnirl.cli.app", "typer", "omnirl.cli.algos", "end"])
def test_ctrl_c_is_one_word_and_130(
    interrupted: Callable[..., subprocess.CompletedProcess[str]], moment: str
) -> None:
    done = interrupted(moment, "--help")
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
    assert ("Usage: omnirl" in done.stdout) == (moment == "end")


@pytest.mark.parametrize("moment", ["typer", "end"])
def test_where_ctrl_c_is_ignored_it_stays_so(
    interrupted: Callable[..., subprocess.CompletedProcess[str]], moment: str
) -> None:
    done = interrupted(moment, "--help", ignored=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: omnirl" in done.stdout


def test_the_exit_code_is_the_commands(
    interrupted: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    assert interrupted("never", "train", "nosuch.yaml").returncode == 3
    # Interrupted where a command is at work, the answer is its own.
    done = interrupted("omnirl.run", "train", "nosuch.yaml")
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
