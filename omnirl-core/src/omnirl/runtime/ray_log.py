"""``ray.log`` in a run's folder: what Ray and its workers have to say, kept off the terminal.

It gathers what would otherwise be lost or in the way: the errors that Ray's C++ writes to this process's standard
error, Ray's messages and log records, and the files on this machine in which Ray keeps the output of the run's workers
(their prints, warnings and crashes) and of its own processes. The file is appended to when a run goes on, begins
anew as ``ray.prev.log`` when it is large, and is not there where nobody had anything to say. Ray's token is masked.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from omnirl.api.errors import DiskError

RAY_LOG, RAY_LOG_BEFORE = "ray.log", "ray.prev.log"
LARGEST_FILE = 4 << 20
_MOST_AT_ONCE = 64 << 10
_LOOK_SECONDS = 0.5
_MARKER = re.compile(r":(job_id|actor_name|task_name):(.*)")
_RAY_FILES = {"raylet": "raylet", "gcs_server": "gcs"}
_RAY_LINE = re.compile(r"\[[^\]]* ([DIWECF]) \d+ \d+\]")


@dataclass
class _Source:
    """A file that is followed; ``name`` is who writes it, ``severe`` whether only its errors count."""

    path: Path
    name: str
    severe: bool
    read: int = 0
    job: str = ""
    telling: bool = False
    rest: bytes = b""


class RayLog:
    """Appends to the folder's ``ray.log``; raises DiskError where it cannot. What goes wrong later harms no run."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / RAY_LOG
        try:
            self._stream: IO[bytes] = open(self.path, "ab", buffering=0)  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise DiskError(f"{self.path}: cannot be written: {error.strerror}") from error
        self._lock = threading.RLock()
        self._sources: dict[Path, _Source] = {}
        self._folder: Path | None = None
        self._job, self._whole = "", True
        self._titled = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._taken: int | None = None
        self._before: IO[str] | None = None

    # ---------------------------------------------------------------- what is written

    def say(self, who: str, text: str) -> None:
        """Append the lines of ``text``, each with the time and who said it."""
        now = time.strftime("%H:%M:%S")
        lines = "".join(f"{now} {who}: {line}\n" for line in text.splitlines() if line.strip())
        if lines:
            self._append(lines)

    def _append(self, lines: str) -> None:
        for secret in _secrets():
            lines = lines.replace(secret, "***")
        with self._lock, suppress(OSError, ValueError):  # a full disk; a stream that is closed already
            if not self._titled:
                where = f", Ray's own logs are in {self._folder}" if self._folder else ""
                lines = f"--- {time.strftime('%Y-%m-%d %H:%M:%S')}, process {os.getpid()}{where}\n{lines}"
                self._titled = True
            self._stream.write(lines.encode("utf-8", "replace"))
            if os.fstat(self._stream.fileno()).st_size > LARGEST_FILE:
                self._begin_anew()

    def _begin_anew(self) -> None:
        os.replace(self.path, self.path.with_name(RAY_LOG_BEFORE))
        self._stream.close()
        self._stream = open(self.path, "ab", buffering=0)  # noqa: SIM115
        if self._taken is not None:
            os.dup2(self._stream.fileno(), 2)

    # ---------------------------------------------------------------- what is followed

    def follow(self, folder: Path, job: str, *, whole: bool) -> None:
        """Follow the files in Ray's ``folder`` of logs: those of the workers of ``job``, and with ``whole`` (the
        cluster is ours alone) the errors of Ray's own processes."""
        self._folder, self._job, self._whole = folder, job, whole
        self._thread = threading.Thread(target=self._watch, name="ray.log", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            self.gather()

    def gather(self) -> None:
        """Take in what is new in the files."""
        with self._lock, suppress(OSError):
            self._find()
            for source in self._sources.values():
                with suppress(OSError):
                    self._take(source)

    def _find(self) -> None:
        if self._folder is None:
            return
        for entry in os.scandir(self._folder):
            path = Path(entry.path)
            stem, _, kind = entry.name.rpartition(".")
            if kind not in ("out", "err") or path in self._sources:
                continue
            if stem.startswith("worker-"):
                self._sources[path] = _Source(path, f"worker (pid {stem.rpartition('-')[2]})", severe=False)
            elif self._whole and stem in _RAY_FILES:
                self._sources[path] = _Source(path, _RAY_FILES[stem], severe=kind == "out", job=self._job)

    def _take(self, source: _Source) -> None:
        size = source.path.stat().st_size
        if size <= source.read:
            return
        left_out = size - source.read - _MOST_AT_ONCE
        with open(source.path, "rb") as stream:
            if left_out > 0 and source.read > 0:
                source.read += left_out
                source.rest = b""
            stream.seek(source.read)
            content = stream.read(min(size - source.read, _MOST_AT_ONCE))
        if left_out > 0 and source.job == self._job:
            self.say(source.name, f"({left_out} bytes left out)")
        source.read += len(content)
        *lines, source.rest = (source.rest + content).split(b"\n")
        if len(source.rest) > _MOST_AT_ONCE:
            lines, source.rest = [*lines, source.rest], b""
        told = self._told(source, lines)  # may learn the name
        self.say(source.name, "\n".join(told))

    def _told(self, source: _Source, lines: list[bytes]) -> list[str]:
        told = []
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            marker = _MARKER.fullmatch(text)
            if marker is not None and source.name not in _RAY_FILES.values():
                if marker[1] == "job_id":
                    source.job = marker[2]
                elif marker[1] == "actor_name":
                    source.name = f"{marker[2]} {source.name[source.name.index('(') :]}"
                continue
            if source.severe:
                start = _RAY_LINE.match(text)
                source.telling = source.telling if start is None else start[1] in "ECF"
            if source.job == self._job and (source.telling or not source.severe):
                told.append(text)
        return told

    # ---------------------------------------------------------------- this process

    @contextmanager
    def instead_of_standard_error(self) -> Iterator[None]:
        """For the length of the block what is written to descriptor 2, as Ray's C++ does, goes to the file, and
        ``sys.stderr`` goes on to where it went. Ray's log records go to the file too."""
        logger = logging.getLogger("ray")
        handlers, propagate = logger.handlers, logger.propagate
        logger.handlers, logger.propagate = [_Records(self)], False
        with suppress(OSError, ValueError):  # no standard error, or one without a descriptor
            self._take_descriptor()
        try:
            yield
        finally:
            logger.handlers, logger.propagate = handlers, propagate
            self._give_descriptor_back()

    def _take_descriptor(self) -> None:
        self._taken = os.dup(2)
        os.set_inheritable(self._taken, False)
        if sys.stderr is not None and sys.stderr.fileno() == 2:
            self._before = sys.stderr
            sys.stderr.flush()
            sys.stderr = open(  # noqa: SIM115
                self._taken,
                "w",
                encoding=sys.stderr.encoding,
                errors=sys.stderr.errors,
                buffering=1,
                closefd=False,
            )
        os.dup2(self._stream.fileno(), 2)

    def _give_descriptor_back(self) -> None:
        if self._taken is None:
            return
        if self._before is not None:
            sys.stderr.flush()
            sys.stderr, self._before = self._before, None
        os.dup2(self._taken, 2)
        os.close(self._taken)
        self._taken = None

    def close(self) -> None:
        """Take in what the last moments brought; leave no empty file behind."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(2 * _LOOK_SECONDS)
        self.gather()
        for source in self._sources.values():  # what ends without a line's end
            self.say(source.name, "\n".join(self._told(source, [source.rest])))
        with self._lock, suppress(OSError):
            if os.fstat(self._stream.fileno()).st_size == 0:
                self.path.unlink()
        self._stream.close()


@contextmanager
def ray_log(folder: Path) -> Iterator[RayLog]:
    """``ray.log`` in ``folder``, in standard error's place for the length of the block."""
    log = RayLog(folder)
    try:
        with log.instead_of_standard_error():
            yield log
    finally:
        log.close()


class _Records(logging.Handler):
    """Ray's log records."""

    def __init__(self, log: RayLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.say("ray", self.format(record))


def _secrets(variables: Mapping[str, str] = os.environ) -> list[str]:
    """Ray's token, which no file of a run may hold."""
    found = [variables.get("RAY_AUTH_TOKEN", "")]
    with suppress(OSError, RuntimeError):
        default = Path.home() / ".ray" / "auth_token"
        found.append(Path(variables.get("RAY_AUTH_TOKEN_PATH", default)).read_text("utf-8").strip())
    return [secret for secret in found if secret]
