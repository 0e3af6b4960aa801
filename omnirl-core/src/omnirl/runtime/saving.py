"""Saving: snapshots written in the background, agent files beside them, old files pruned."""

from __future__ import annotations

import json
import os
import threading
import zipfile
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnirl.runtime.checkpoint import CURRENT, PREVIOUS, SEGMENTS, TEMPORARY, segment_names, write


@dataclass(frozen=True)
class Snapshot:
    """What a save writes. ``tree`` is nested dicts of arrays and JSON scalars; it must not change any more. best:
    versions whose agent files stay, whatever ``keep_last`` says."""

    run_dir: str
    version: int
    manifest: Mapping[str, Any]
    tree: dict[str, Any]
    save_memory: bool
    agent_meta: Mapping[str, Any]
    keep_last: int
    best: tuple[int, ...] = ()


@dataclass(frozen=True)
class SaveOutcome:
    """How a save ended: ``error`` is empty where it went well."""

    version: int
    path: str
    error: str = ""


class CheckpointWriter:
    """Writes one snapshot at a time on a thread of its own."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._outcomes: list[SaveOutcome] = []

    def start(self, snapshot: Snapshot, write_agent: Callable[[str], None]) -> None:
        """Write the snapshot and its agent file in the background."""
        self.wait()
        self._thread = threading.Thread(target=self._write, args=(snapshot, write_agent), name="checkpoint")
        self._thread.start()

    def _write(self, snapshot: Snapshot, write_agent: Callable[[str], None]) -> None:
        folder = Path(snapshot.run_dir)
        path = folder / CURRENT
        error = ""
        try:
            replace_agent(agent_file(folder, snapshot.version), write_agent)
            write(path, snapshot.manifest, snapshot.tree)
            prune(folder, snapshot.version, snapshot.keep_last, snapshot.best)
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
            remove_leftovers(folder)
        self._outcomes.append(SaveOutcome(snapshot.version, str(path), error))

    def wait(self) -> None:
        """Wait until nothing is being written."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def outcomes(self) -> tuple[SaveOutcome, ...]:
        """The saves that ended since the last call."""
        if self._thread is not None and not self._thread.is_alive():
            self._thread = None
        done, self._outcomes = tuple(self._outcomes), []
        return done


def agent_file(folder: Path, version: int) -> Path:
    """Where the agent of a version is, or would be."""
    return folder / f"agent_{version}.pth"


def replace_agent(path: Path, write_agent: Callable[[str], None]) -> None:
    """Write an agent file beside its place and put it there in one step, once it is on the disk."""
    unfinished = path.with_name(path.name + TEMPORARY)
    write_agent(str(unfinished))
    with open(unfinished, "rb") as written:
        os.fsync(written.fileno())
    os.replace(unfinished, path)


def agent_versions(folder: Path) -> list[int]:
    """The versions of the agent files in a run's folder, in rising order."""
    names = (path.stem.partition("_")[2] for path in folder.glob("agent_*.pth"))
    return sorted(int(name) for name in names if name.isdigit())


def prune(folder: Path, version: int, keep_last: int, best: Collection[int] = ()) -> None:
    """Remove the oldest agent files beyond ``keep_last`` (0 keeps all) but the ``best``, and segments no checkpoint
    refers to.

    Agents beyond ``version``, the one that was just saved, are of a time that no longer counts: the run was killed,
    or its learner died, and went on from an earlier checkpoint.
    """
    there = agent_versions(folder)
    kept = [number for number in there if number <= version][-keep_last:]
    for number in there:
        if number not in kept and number not in best:
            agent_file(folder, number).unlink(missing_ok=True)
    segments = list((folder / SEGMENTS).glob("*.npy"))
    if segments:
        used = set()
        for name in (CURRENT, PREVIOUS):
            # A damaged one, which the run did not go on from, needs none.
            damaged = suppress(FileNotFoundError, zipfile.BadZipFile, KeyError, ValueError)
            with damaged, zipfile.ZipFile(folder / name) as archive:
                used |= segment_names(json.loads(archive.read("tree.json")))
        for path in segments:
            if path.stem not in used:
                path.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed writer left unfinished."""
    for place in (folder, folder / SEGMENTS):
        for path in place.glob(f"*{TEMPORARY}"):
            path.unlink(missing_ok=True)
