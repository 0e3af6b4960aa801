"""Calls a function in a copy of this process, where it may hang, crash or end the process without harm here.

The copy knows all that this process knows (it is a fork), so what is registered only here is found there. It leads a
process group of its own, which is killed as a whole: what the function started ends with it.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

Result = TypeVar("Result")
_SLICE = 0.1
_GRACE = 2.0
"""Seconds after the deadline in which the copy, which knows it too, says where it was, and ends."""
_TIMEOUT = "Timeout ("
_FRAME = re.compile(r'\s+File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>\S+)')


class HungError(Exception):
    """The function did not return in time. ``where``: what it was doing, empty where that is unknown."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.where = where


class EndedError(Exception):
    """The function ended its process. ``how``: by which signal or exit code; ``where``: in a crash, what it did."""

    def __init__(self, how: str, where: str) -> None:
        super().__init__(how)
        self.how, self.where = how, where


def call_apart(function: Callable[[], Result], seconds: float) -> Result:
    """What ``function`` returns or raises. What it prints goes to standard error.

    Raises HungError where it takes longer than ``seconds``, and EndedError where its process ends.
    """
    from multiprocessing import get_context  # a fiftieth of a second that no other command has to wait for

    context = get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    with tempfile.TemporaryFile() as stacks:
        process = context.Process(target=_serve, args=(function, sending, stacks, seconds))
        with warnings.catch_warnings():  # that threads are not copied; none of ours is needed there
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        sending.close()
        try:
            answer = _wait(process, receiving, seconds + _GRACE)
            process.join(0 if answer else _GRACE)  # what ends closes its connection before it is gone
            hung = process.is_alive()
        finally:
            _end(process)
            receiving.close()
        if answer is None:
            raise _failure(process.exitcode, hung, stacks)
    worked, value = answer
    if not worked:
        raise value
    result: Result = value
    return result


def _serve(function: Callable[[], Any], connection: Connection, stacks: IO[bytes], seconds: float) -> None:
    os.setpgid(0, 0)
    sys.stdout = sys.stderr
    with suppress(OSError):
        os.dup2(2, 1)  # what native code prints
    faulthandler.enable(stacks, all_threads=False)
    # Reaches code that holds the interpreter's lock too, and ends a copy whose parent was killed.
    faulthandler.dump_traceback_later(seconds, exit=True, file=stacks)
    answer: tuple[bool, Any]
    try:
        answer = True, function()
    except BaseException as error:
        answer = False, error
    faulthandler.cancel_dump_traceback_later()
    try:
        connection.send(answer)
    except Exception:  # an exception of anybody's class, which cannot travel
        text = f"{type(answer[1]).__name__}: {answer[1]}"
        connection.send((False, RuntimeError(text)))


def _wait(process: ForkProcess, connection: Connection, seconds: float) -> tuple[bool, Any] | None:
    """The copy's answer, or None where there is none."""
    deadline = time.monotonic() + seconds
    while not connection.poll(_SLICE):
        if time.monotonic() > deadline or not process.is_alive():
            break
    if connection.poll():
        with suppress(EOFError):
            answer: tuple[bool, Any] = connection.recv()
            return answer
    return None


def _end(process: ForkProcess) -> None:
    """End the copy and all that it started."""
    assert process.pid is not None
    process.join(_SLICE)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()  # it may not have come to lead its group yet
    process.join()


def _failure(exit_code: int | None, hung: bool, stacks: IO[bytes]) -> Exception:
    stacks.seek(0)
    text = stacks.read().decode("utf-8", "replace")
    if hung or _TIMEOUT in text:
        return HungError(_where(text))
    how = f"exit code {exit_code}"
    if exit_code is not None and exit_code < 0:
        how = f"signal {signal.Signals(-exit_code).name}"
    return EndedError(how, _where(text))


def _where(text: str) -> str:
    """The innermost line of the main thread, which is the last of the threads: ``step (/home/me/env.py, line 12)``."""
    stack = text.rpartition("most recent call first")[2]
    match = next(filter(None, map(_FRAME.match, stack.splitlines())), None)
    return f"{match['function']} ({match['file']}, line {match['line']})" if match else ""
