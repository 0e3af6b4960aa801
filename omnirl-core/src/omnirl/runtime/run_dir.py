"""The run's folder: which one a run uses, whether it goes on there, and the lock that keeps a second run out.

A run that was given no folder takes ``runs/<name>``, or the first of ``<name>-2``, ``-3`` ... that is free. An
unfinished run of the same configuration is gone on with; a finished, different or running one is left alone. A
folder that the user named must not hold another run.
"""

from __future__ import annotations

import fcntl
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from omnirl.api.errors import CheckpointError, ConfigError, NotFoundError
from omnirl.runtime import checkpoint

CONFIG_FILE, LOCK_FILE = "run_config.yaml", ".lock"
Resume = Literal["auto", "never", "must"]
NOT_COMPARED = {
    ("runner", "ckpt_dir"),
    ("runner", "load_checkpoint"),
    ("runner", "eval_model"),
    ("versions",),
}
State = Literal["free", "unfinished", "finished", "different", "running"]


@dataclass(frozen=True)
class RunFolder:
    """A folder claimed for a run.

    resume: go on from the checkpoint in it. notice: a line about the choice. made: the folders that were made
    for it, from the inside out.
    """

    path: Path
    resume: bool
    notice: str
    lock: IO[str]
    made: tuple[Path, ...] = ()

    def release(self) -> None:
        """Let others have the folder; leave no empty one behind where the run was refused."""
        with suppress(OSError):
            if self.made and [path.name for path in self.path.iterdir()] == [LOCK_FILE]:
                (self.path / LOCK_FILE).unlink()
                for folder in self.made:
                    folder.rmdir()
        self.lock.close()


def same_configuration(
    wanted: Mapping[str, Any], stored: Mapping[str, Any], path: tuple[str, ...] = ()
) -> bool:
    """Whether two configurations mean the same run. ``auto`` agrees with whatever it became when the run began, and
    with what that decided of the keys beside it that are not given."""
    decided = any(value == "auto" and stored.get(key) != "auto" for key, value in wanted.items())
    for key in {*wanted, *stored}:
        place = (*path, key)
        if place in NOT_COMPARED or (decided and key not in wanted):
            continue
        a, b = wanted.get(key), stored.get(key)
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            if not same_configuration(a or {}, b or {}, place):
                return False
        elif a not in (b, "auto") and not (isinstance(a, list | tuple) and list(a) == list(b or ())):
            return False
    return True


def is_run(folder: Path) -> bool:
    """Whether the folder holds a run."""
    return (folder / CONFIG_FILE).is_file()


def is_running(folder: Path) -> bool:
    """Whether a process is running in the folder. Looks only: writes nothing and needs no right to."""
    try:
        with open(folder / LOCK_FILE, encoding="utf-8") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)  # let go by closing, at once
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _lock(folder: Path) -> IO[str] | None:
    """The folder's lock, or None where another process holds it."""
    stream = open(folder / LOCK_FILE, "a+", encoding="utf-8")  # noqa: SIM115 - held for the run's length
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream.close()
        return None
    if not _is_file(folder / LOCK_FILE, stream):  # its last holder has just removed it
        stream.close()
        return None
    return stream


def _is_file(path: Path, stream: IO[str]) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(stream.fileno()))
    except OSError:
        return False


def _finished(folder: Path) -> bool:
    """Whether the newest checkpoint says that the run reached its stop target."""
    for name in (checkpoint.CURRENT, checkpoint.PREVIOUS):
        try:
            return bool(checkpoint.read_manifest(folder / name).get("finished", False))
        except CheckpointError:
            continue
    return False


class Chooser:
    """Chooses and claims a folder. ``read_config`` reads a run_config.yaml into plain data."""

    def __init__(
        self, wanted: Mapping[str, Any], resume: Resume, read_config: Callable[[Path], Mapping[str, Any]]
    ) -> None:
        self._wanted, self._resume, self._read_config = wanted, resume, read_config
        self._made: tuple[Path, ...] = ()

    def named(self, folder: Path) -> RunFolder:
        """The folder that the user named. Raises ConfigError where it holds another run."""
        self._make(folder)
        state, lock = self._look(folder)
        if lock is None:
            raise ConfigError(f"{folder}: another process is running in it; choose another --run-dir")
        if state == "unfinished" and self._resume != "never":
            return self._going_on(folder, lock)
        if state == "free":
            if self._resume == "must":
                lock.close()
                raise NotFoundError(f"{folder}: holds no run to resume")
            return RunFolder(folder, False, "", lock, self._made)
        lock.close()
        reason = {
            "unfinished": "holds an unfinished run, which --resume never does not overwrite",
            "finished": "holds this run, finished; raise runner.max_updates with `omnirl resume` to go on",
            "different": "holds another run (its run_config.yaml differs or cannot be read)",
        }[state]
        raise ConfigError(f"{folder}: {reason}; choose another --run-dir (runner.ckpt_dir)")

    def default(self, folder: Path) -> RunFolder:
        """The first folder of ``folder``, ``folder-2``, ... that is free or holds this run, unfinished."""
        for number in itertools.count(1):
            candidate = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
            if not candidate.exists() and self._resume == "must":
                raise NotFoundError(f"{folder}: no unfinished run of this configuration to resume")
            self._make(candidate)
            state, lock = self._look(candidate)
            if lock is None:
                continue
            if state == "unfinished" and self._resume != "never":
                return self._going_on(candidate, lock)
            if state == "free" and self._resume != "must":
                notice = f"{folder} is taken; this run goes to {candidate}" if number > 1 else ""
                return RunFolder(candidate, False, notice, lock, self._made)
            lock.close()
        raise AssertionError("the count above has no end")

    def existing(self, folder: Path) -> RunFolder:
        """A run that is to go on under a changed configuration (``omnirl resume``)."""
        if not is_run(folder):
            raise NotFoundError(f"{folder}: not a run's folder (it has no {CONFIG_FILE})")
        lock = _lock(folder)
        if lock is None:
            raise ConfigError(f"{folder}: another process is running in it")
        return self._going_on(folder, lock)

    def _going_on(self, folder: Path, lock: IO[str]) -> RunFolder:
        resume = checkpoint.has_checkpoint(folder)
        what = "from its last checkpoint" if resume else "from the start: it has no checkpoint yet"
        return RunFolder(folder, resume, f"going on with the run in {folder}, {what}", lock)

    def _make(self, folder: Path) -> None:
        self._made = tuple(path for path in (folder, *folder.parents) if not path.exists())
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"runner.ckpt_dir: {folder}: cannot be made: {error.strerror}") from error

    def _look(self, folder: Path) -> tuple[State, IO[str] | None]:
        try:
            lock = _lock(folder)
        except OSError as error:
            raise ConfigError(f"runner.ckpt_dir: {folder}: cannot be written: {error.strerror}") from error
        if lock is None:
            return "running", None
        if not is_run(folder):
            return ("different" if checkpoint.has_checkpoint(folder) else "free"), lock
        if not self._same(folder / CONFIG_FILE):
            return "different", lock
        return ("finished" if _finished(folder) else "unfinished"), lock

    def _same(self, config_file: Path) -> bool:
        """Whether it is this run's. A file that cannot be read, damaged or edited by hand, is not."""
        try:
            return same_configuration(self._wanted, self._read_config(config_file))
        except (ConfigError, NotFoundError):
            return False


@contextmanager
def claimed(folder: RunFolder) -> Iterator[RunFolder]:
    """Hold the folder for the length of the block."""
    try:
        yield folder
    finally:
        folder.release()
