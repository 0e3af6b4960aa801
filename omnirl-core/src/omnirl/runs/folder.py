"""One run's folder, read: configuration, status, counters, log and files; and finding such folders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from omnirl.api.errors import CheckpointError, OmniRLError
from omnirl.config import files
from omnirl.runs.log import evaluation, figure, read_rows
from omnirl.runtime import checkpoint
from omnirl.runtime.best import best_version
from omnirl.runtime.run_dir import CONFIG_FILE, is_run, is_running

Status = Literal["running", "finished", "unfinished", "no checkpoint", "damaged"]
"""running: a process is at work in it; damaged: its configuration or its checkpoints cannot be read."""


@dataclass(frozen=True)
class Run:
    """A run as it stands on the disk. config: its run_config.yaml as plain data; manifest: that of its newest
    readable checkpoint, empty where there is none; problem: why it is damaged."""

    path: Path
    config: Mapping[str, Any]
    manifest: Mapping[str, Any]
    status: Status
    problem: str = ""

    def section(self, name: str) -> Mapping[str, Any]:
        """A section of the configuration, empty where there is none."""
        section = self.config.get(name)
        return section if isinstance(section, Mapping) else {}

    @property
    def limits(self) -> dict[str, int | float]:
        """The numbers of the configuration's ``runner`` section, such as ``max_updates``."""
        return {
            name: value
            for name, value in self.section("runner").items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }

    @property
    def algorithm(self) -> str:
        """Its name, without the package of a dotted path."""
        return str(self.section("agent").get("module", "?")).rpartition(".")[2]

    @property
    def env_id(self) -> str:
        """The environment's id, or the backend's name where it has none."""
        env = self.section("env")
        return str(env.get("id") or env.get("module", "?"))

    @property
    def seed(self) -> int | None:
        """The learner's."""
        seed = self.config.get("seed", 0)
        seed = seed.get("learner") if isinstance(seed, Mapping) else seed
        return seed if isinstance(seed, int) else None

    @property
    def log_path(self) -> Path:
        """Where its log is, or would be."""
        return self.path / f"{self.section('runner').get('log_name', 'log')}.csv"

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        """The log, as text."""
        return list(read_rows(self.log_path))

    @property
    def counters(self) -> dict[str, int]:
        """``updates`` and ``env_steps``: of the log's last row, or of the checkpoint where that is further."""
        saved = self.manifest.get("counters")
        found = {"updates": 0, "env_steps": 0}
        if isinstance(saved, Mapping):  # a manifest is checked only when its checkpoint is loaded
            found |= {name: value for name in found if isinstance(value := saved.get(name), int)}
        if self.rows and int(self.rows[-1]["updates"]) > found["updates"]:
            logged = {name: figure(self.rows[-1].get(name)) for name in found}
            found = {name: int(number or 0) for name, number in logged.items()}
        return found

    @property
    def evaluations(self) -> list[dict[str, int | float | None]]:
        """Every evaluation in the log: ``updates``, ``env_steps`` and its figures."""
        found = []
        for row in self.rows:
            figures = evaluation(row)
            if figures:
                steps = figure(row.get("env_steps"))
                found.append(
                    {
                        "updates": int(row["updates"]),
                        "env_steps": None if steps is None else int(steps),
                        **figures,
                    }
                )
        return found

    @property
    def last_return(self) -> float | None:
        """The mean return of the last evaluation that has one."""
        means = (figure(row.get("eval_return_mean")) for row in reversed(self.rows))
        return next((mean for mean in means if mean is not None), None)

    @property
    def best(self) -> tuple[int, float] | None:
        """``(version, mean return)`` of the best agent kept, None where there is none or its file is damaged."""
        try:
            return best_version(self.path)
        except CheckpointError:
            return None

    @property
    def modified(self) -> float:
        """When the run last wrote something, in seconds since the epoch."""
        names = (CONFIG_FILE, checkpoint.CURRENT, self.log_path.name)
        return max((_modified(self.path / name) for name in names), default=0.0)

    def sizes(self) -> dict[str, int]:
        """The run's files with their sizes in bytes; a folder in it counts as one, ending in ``/``."""
        found = {}
        for entry in sorted(os.scandir(self.path), key=lambda entry: entry.name):
            if entry.is_dir():
                inside = (path.stat().st_size for path in Path(entry).rglob("*") if path.is_file())
                found[f"{entry.name}/"] = sum(inside)
            elif not entry.name.startswith("."):
                found[entry.name] = entry.stat().st_size
        return found


def read_run(path: Path) -> Run:
    """The run in a folder; what cannot be read of it is its ``problem``."""
    config: Mapping[str, Any] = {}
    manifest: Mapping[str, Any] = {}
    problem = ""
    try:
        config = files.load_file(path / CONFIG_FILE).data
        manifest = _manifest(path)
    except OmniRLError as error:
        problem = error.lines[0]
    return Run(path, config, manifest, _status(path, manifest, problem), problem)


def find_runs(folder: Path) -> list[Run]:
    """All runs in a folder and below it, the one that wrote last first."""
    runs = [read_run(path) for path in _run_folders(folder)]
    return sorted(runs, key=lambda run: (-run.modified, str(run.path)))


def _run_folders(folder: Path) -> Iterator[Path]:
    for place, folders, _ in os.walk(folder):
        if is_run(Path(place)):
            folders.clear()  # a run holds no runs, but perhaps many files
            yield Path(place)


def _manifest(path: Path) -> Mapping[str, Any]:
    """Of the newest readable checkpoint. Raises CheckpointError where there are some but none is readable."""
    refused = None
    for name in (checkpoint.CURRENT, checkpoint.PREVIOUS):
        if (path / name).exists():
            try:
                return checkpoint.read_manifest(path / name)
            except CheckpointError as error:
                refused = refused or error
    if refused is not None:
        raise refused
    return {}


def _status(path: Path, manifest: Mapping[str, Any], problem: str) -> Status:
    if is_running(path):
        return "running"
    if problem:
        return "damaged"
    if not manifest:
        return "no checkpoint"
    return "finished" if manifest.get("finished") else "unfinished"


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
