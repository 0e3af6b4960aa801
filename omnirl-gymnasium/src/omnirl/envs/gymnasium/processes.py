"""Step B sub-environments in processes of their own: for slow environments, on a machine with cores to spare.

Each process steps some of them one after the other and writes into arrays that all share; the seeds, the resets and the
values are those of stepping in one process.

Letters: B sub-environments; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from omnirl.api.data import Array, Obs, Step
from omnirl.api.environment import EnvContext
from omnirl.api.errors import ConfigError
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.shared_arrays import map_arrays, memory_file
from omnirl.envs.gymnasium.stepping_process import STEP, Assignment

_CLOSE_TIMEOUT = 5.0


class RemoteTraceback(Exception):
    """Where an exception came from, in the process that raised it; the cause of the one that is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n\n{self.text}"


class _Process:
    """One process, with sub-environments ``begin`` to ``end - 1``."""

    def __init__(self, memory: int, begin: int, end: int) -> None:
        self.begin, self.end = begin, end
        self.connection, child = Pipe()
        assert isinstance(child, Connection)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", stepping_module(), str(child.fileno()), str(memory)],
                pass_fds=(child.fileno(), memory),
                stdin=subprocess.DEVNULL,
                stdout=2,  # the standard output may be read by a program
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": "1",
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                },
            )
        finally:
            child.close()

    def ask(self, request: bytes) -> None:
        """Send a request; its answer is fetched by :meth:`answer`."""
        try:
            self.connection.send_bytes(request)
        except OSError as error:
            raise self._gone() from error

    def answer(self) -> Any:
        """The answer to the oldest request. Raises what was raised there; RuntimeError where the process is gone."""
        try:
            answer = pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError) as error:
            raise self._gone() from error
        if not answer[0]:
            raise answer[1] from RemoteTraceback(answer[2])
        return answer[1]

    def _gone(self) -> RuntimeError:
        try:
            code: int | None = self.process.wait(_CLOSE_TIMEOUT)
        except subprocess.TimeoutExpired:
            code = None
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        which = f"{self.begin} to {self.end - 1}" if self.end - self.begin > 1 else str(self.begin)
        return RuntimeError(f"the process that stepped sub-environment {which} is gone ({how})")

    def close(self) -> None:
        self.connection.close()
        try:
            self.process.wait(_CLOSE_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def stepping_module() -> str:
    """What Python runs in a process."""
    return "omnirl.envs.gymnasium.stepping_process"


class ProcessEnvironment:
    """B environments in ``count`` processes as one :class:`omnirl.api.Environment`.

    Raises ConfigError where they cannot be built. What an environment raises is raised here, its traceback in the
    other process as its cause; a process that ends is a RuntimeError. Either way the environment is spent.
    """

    seedable = True
    num_envs: int

    def __init__(self, config: GymnasiumConfig, context: EnvContext, count: int) -> None:
        if os.name != "posix":
            raise ConfigError("env.vectorization: process needs Linux or macOS; use inline")
        self.num_envs = context.num_envs
        self._processes: list[_Process] = []
        memory = memory_file()
        try:
            bounds = np.linspace(0, context.num_envs, min(count, context.num_envs) + 1).round().astype(int)
            for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
                self._processes.append(_Process(memory, begin, end))
            written = config.model_dump_json(by_alias=True)
            for process in self._processes:
                assignment = Assignment(written, context, process.begin, process.end, tuple(sys.path))
                process.ask(pickle.dumps(assignment))
            answers = [process.answer() for process in self._processes]
            observation, action = answers[0]
            self._action, self._step = map_arrays(memory, observation, action, context.num_envs)
            for process in self._processes:
                process.ask(b"")
        except BaseException:
            self.close()
            raise
        finally:
            os.close(memory)
        self._of = {i: process for process in self._processes for i in range(process.begin, process.end)}

    def reset(self, index: int, seed: int) -> Obs:
        """Begin an episode of sub-environment ``index``; return its first observation, a new [*obs]."""
        row = self._call(index, "reset", seed)
        return row if isinstance(row, Mapping) else np.asarray(row)

    def step(self, action: Array) -> Step:
        """Step all with ``action`` [B, *act]; raises what any of them raises, after all have stepped."""
        if len(action) != self.num_envs:
            raise ValueError(f"{len(action)} actions for {self.num_envs} environments")
        self._action[...] = action
        for process in self._processes:
            process.ask(STEP)
        failure: Exception | None = None
        for process in self._processes:
            try:
                process.answer()
            except Exception as error:  # the other answers must be fetched, or they are taken for later ones
                failure = failure or error
        if failure is not None:
            raise failure
        return self._step

    def continues(self, index: int) -> bool:
        """Whether the episode that ended goes on in its game; see :class:`omnirl.api.Environment`."""
        return bool(self._call(index, "continues"))

    def episode_metrics(self, index: int) -> dict[str, float]:
        """What ``env.metrics`` asks for of the episode of sub-environment ``index`` that has just ended."""
        metrics: dict[str, float] = self._call(index, "episode_metrics")
        return metrics

    def close(self) -> None:
        """Close every environment and end every process; one that does not end by itself is killed."""
        processes, self._processes = self._processes, []
        for process in processes:
            with contextlib.suppress(OSError):
                process.connection.close()
        for process in processes:
            process.close()

    def _call(self, index: int, name: str, *arguments: Any) -> Any:
        process = self._of[index]
        process.ask(pickle.dumps((name, (index - process.begin, *arguments))))
        return process.answer()
