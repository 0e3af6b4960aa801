"""How a command ends: what a failure says on standard error, and the exit code.

==========  =======================================================
0           it worked
1           a bug of ours; the traceback is in the file that is named
2           a mistake in a configuration or in the command's use
3 to 24     what :mod:`omnirl.api.errors` says
30          an evaluation below ``--min-return``
31          ``envs check`` found an error
130, 143    Ctrl-C, SIGTERM
141         nobody reads our output any more
==========  =======================================================
"""

from __future__ import annotations

import errno
import os
import platform
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress

from omnirl.api.errors import DiskError, OmniRLError, PluginError

_DISK_TROUBLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}
_ENDING = ("typer", "click")  # whose business it is to end a command
BUG, INTERRUPTED, UNREAD, TERMINATED = 1, 130, 141, 143


def exit_code_of(action: Callable[[], None], arguments: Sequence[str]) -> int:
    """Run ``action`` and return the exit code; a user's mistake shows its lines and never a traceback."""
    try:
        code = _ended(action)
        sys.stdout.flush()  # what is still buffered fails here rather than when the interpreter ends
    except OmniRLError as error:
        for line in error.lines:
            warn(_shown(line))
        return error.exit_code
    except KeyboardInterrupt:
        warn("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has seen enough
        _discard_output()
        return UNREAD
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _DISK_TROUBLE:
            warn(f"cannot write or read {error.filename or 'a file'}: {error.strerror}")
            if error.filename is None:
                _discard_output()
            return DiskError.exit_code
        warn(f"omnirl: a bug: {_one_line(error)} ({_where_traceback_is(error, arguments)})")
        return BUG
    return code


def _ended(action: Callable[[], None]) -> int:
    """Typer ends with SystemExit, after telling what is wrong with the command's use.

    That of an environment, of a class or of a plugin, often with the code 0, must not pass for a command's success.
    """
    try:
        action()
    except SystemExit as end:
        if (place := _foreign_place(end)) is not None:
            raise PluginError(f"{place} ended the process ({_one_line(end)})") from end
        return _code(end)
    return 0


def _foreign_place(end: SystemExit) -> str | None:
    """``file:line`` of the code that ended the process; None where it was Typer, or we."""
    trace = end.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return None
    module = trace.tb_frame.f_globals.get("__name__", "")
    if module.partition(".")[0] in _ENDING or module.startswith("omnirl.cli."):
        return None
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _discard_output() -> None:
    """What is left in the buffer of standard output goes nowhere when the interpreter flushes it."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def warn(line: str) -> None:
    """One line on standard error."""
    print(line, file=sys.stderr, flush=True)


def _shown(line: str) -> str:
    """One line without what would steer a terminal: a key or a name in it may be of anybody's file."""
    text = " ".join(line.splitlines())
    return "".join(
        character if character.isprintable() or character == "\t" else f"\\x{ord(character):02x}"
        for character in text
    )


def save_traceback(error: BaseException, arguments: Sequence[str]) -> str:
    """Write what a report of the bug needs into a file of its own and return its path."""
    from omnirl.cli.version import versions

    lines = [
        f"omnirl {shlex.join(arguments)}",
        f"{platform.platform()}, {', '.join(f'{name} {number}' for name, number in versions().items())}",
        "",
        *traceback.format_exception(error),
    ]
    with tempfile.NamedTemporaryFile(
        "w", prefix="omnirl-bug-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write("\n".join(line.rstrip("\n") for line in lines) + "\n")
    return file.name


def _where_traceback_is(error: BaseException, arguments: Sequence[str]) -> str:
    try:
        return f"the traceback is in {save_traceback(error, arguments)}"
    except OSError:  # no folder can be written to, so here is the only place left
        traceback.print_exception(error)
        return "the traceback is above, because no file can be written"


def _code(end: SystemExit) -> int:
    if isinstance(end.code, str):
        warn(end.code)
        return BUG
    return end.code or 0


def _one_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
