"""Runs in processes of their own, marked so that whatever they leave behind can be found."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import psutil
import pytest

MARK = "OMNIRL_TEST_MARK"
FORKED_COMMAND = Path(__file__).with_name("forked_command.py")


@dataclass
class Run:
    """An ``omnirl`` command in a process group of its own."""

    process: subprocess.Popen[str]
    mark: str
    output: str = ""
    started: float = field(default_factory=time.monotonic)

    def wait(self, timeout: float = 120.0) -> int:
        """Its exit code; the output so far is in ``output``."""
        self.output, _ = self.process.communicate(timeout=timeout)
        return self.process.returncode

    def send(self, number: int) -> None:
        """Send a signal to the driver alone."""
        os.kill(self.process.pid, number)

    def processes(self) -> list[psutil.Process]:
        """Every living process that descends from the command, wherever it was adopted."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
        return found

    def workers(self, role: str) -> list[psutil.Process]:
        """The Ray workers of a role: Sampler, Evaluator, LearnerWorker."""
        return [process for process in self.processes() if _title(process).startswith(f"ray::{role}")]

    def running(self, module: str) -> dict[int, psutil.Process]:
        """The processes that run a module, by their ids."""
        return {process.pid: process for process in self.processes() if module in _title(process).split()}

    def until(self, condition: Callable[[], Any], timeout: float = 60.0) -> Any:
        """The first true value of ``condition`` while the command runs."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            if self.process.poll() is not None:
                self.wait()
                raise AssertionError(f"the command ended before the condition held:\n{self.output}")
            time.sleep(0.05)
        raise AssertionError("the condition did not hold in time")

    def left_over(self, within: float = 10.0) -> list[str]:
        """What is still running some seconds after the command's end."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            left = self.processes()
            if not left:
                return []
            time.sleep(0.2)
        return [f"{process.pid} {_title(process)}" for process in left]


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""


@pytest.fixture
def ray_folder() -> Iterator[Path]:
    """A temp folder of Ray's own, with a path short enough for its sockets."""
    # TMPDIR may be too long for the path of a socket
    folder = Path(tempfile.mkdtemp(prefix="or-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def start(tmp_path: Path, ray_folder: Path) -> Iterator[Callable[..., Run]]:
    """``start("train", "cartpole-ppo", ...)`` runs the command in ``tmp_path``."""
    runs: list[Run] = []

    def begin(
        *arguments: str, code: str | None = None, variables: Mapping[str, str] = MappingProxyType({})
    ) -> Run:
        mark = uuid.uuid4().hex
        command = ["-c", code or "from omnirl.cli.app import main; main()"]
        process = subprocess.Popen(
            [sys.executable, *command, *arguments],
            cwd=tmp_path,
            env={
                **os.environ,
                MARK: mark,
                "RAY_TMPDIR": str(ray_folder),
                "OMP_NUM_THREADS": "1",
                **variables,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        runs.append(Run(process, mark))
        return runs[-1]

    yield begin
    for run in runs:
        for process in run.processes():
            try:
                process.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue


FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(
    [
        *("torch", "gymnasium.envs.classic_control", "omnirl.cli.train", "omnirl.cli.resume", "omnirl.run"),
        *("omnirl.algorithms.shared.training.torch_state", "omnirl.envs.gymnasium.backend"),
    ]
)


@dataclass
class ForkedRun:
    """An ``omnirl`` command in a process that was forked from one that has imported torch. It cannot start Ray."""

    process: Any
    written: Path

    @property
    def output(self) -> str:
        """What it has printed."""
        return self.written.read_text("utf-8") if self.written.exists() else ""

    def wait(self, timeout: float = 120.0) -> int:
        """Its exit code."""
        self.process.join(timeout)
        assert self.process.exitcode is not None, "the command did not end in time"
        return int(self.process.exitcode)

    def until(self, condition: Callable[[], Any], timeout: float = 60.0) -> None:
        """Wait until ``condition`` holds, while the command runs."""
        end = time.monotonic() + timeout
        while not condition():
            assert self.process.is_alive(), f"the command ended before the condition held:\n{self.output}"
            assert time.monotonic() < end, "the condition did not hold in time"
            time.sleep(0.005)

    def kill(self) -> None:
        """End it with SIGKILL, wherever it is."""
        self.process.kill()
        assert self.wait() == -signal.SIGKILL, "it had ended by itself"


@pytest.fixture
def forked(tmp_path: Path) -> Iterator[Callable[..., ForkedRun]]:
    """``forked("train", "cartpole-ppo", "--local")`` runs the command in ``tmp_path``."""
    runs: list[ForkedRun] = []

    def begin(*arguments: str) -> ForkedRun:
        written = tmp_path / f"output-{len(runs)}"
        what = {"ARGUMENTS": arguments, "FOLDER": str(tmp_path), "OUTPUT": str(written)}
        process = FORK.Process(target=runpy.run_path, args=(str(FORKED_COMMAND), what))
        process.start()
        runs.append(ForkedRun(process, written))
        return runs[-1]

    yield begin
    for run in runs:
        run.process.kill()
        run.process.join()


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """``refused(*arguments)`` -> the lines that the command told on standard error. It made nothing in ``tmp_path``,
    where it ran."""
    monkeypatch.chdir(tmp_path)

    def lines(*arguments: str, code: int = 2) -> list[str]:
        before = sorted(tmp_path.rglob("*"))
        from omnirl.cli.app import run

        assert run(list(arguments)) == code
        out, err = capsys.readouterr()
        assert out == ""
        assert "Traceback" not in err
        assert "a bug" not in err
        assert sorted(path for path in tmp_path.rglob("*") if path.name != "__pycache__") == before
        return err.splitlines()

    return lines


@pytest.fixture(scope="module")
def module_at() -> Iterator[Callable[[Path], ModuleType]]:
    """``module_at(path)`` -> a script that is no part of a package. It may import what lies beside it; all of that is
    forgotten after the tests of a file."""
    before, folders = set(sys.modules), set()
    with pytest.MonkeyPatch.context() as patch:

        def imported(path: Path) -> ModuleType:
            folders.add(path.parent)
            patch.syspath_prepend(str(path.parent))
            return importlib.import_module(path.stem)

        yield imported
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "").parent in folders:
            del sys.modules[name]
