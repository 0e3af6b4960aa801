"""Write an observer: something that watches runs, such as a log writer or a tracker.

An observer runs on one thread beside the driver's loop, behind a bounded queue, so it may take its time but never
slows the run. One that raises is warned about, switched off after three times, and never changes the exit code. ::

    class Printer(ObserverBase):
        def metrics(self, row):
            print(row["updates"], row["eval_return_mean"])

    @hookimpl
    def omnirl_observers():
        return [ObserverSpec(name="printer", load="acme_rl.printer:Printer", summary="prints each row")]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Value = float | int | str | None


@dataclass(frozen=True)
class RunInfo:
    """What is known when a run starts.

    columns: of log.csv, in order, fixed for the run. resumed_from: the checkpoint's update number, or None.
    config: the resolved configuration as plain data. total_updates, total_steps: the stop target.
    """

    run_dir: str
    title: str
    algorithm: str
    env_id: str
    seed: int
    columns: tuple[str, ...]
    total_updates: int
    total_steps: int
    num_samplers: int
    num_evaluators: int
    transport: str
    resumed_from: int | None
    config: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    num_learners: int = 1


@dataclass(frozen=True)
class Progress:
    """A glance at a running run, sent about four times a second.

    Rates are over the last seconds. ``train_return`` is the mean (and ``train_return_std`` the deviation) of the
    latest finished training episodes; ``checkpoint_age`` is in seconds.
    """

    updates: int
    env_steps: int
    seconds: float
    steps_per_s: float
    updates_per_s: float
    train_return: float | None
    train_return_std: float | None
    eval_return: float | None
    lag_p50: float
    lag_max: int
    samplers_alive: int
    checkpoint_age: float | None
    eta_s: float | None


@dataclass(frozen=True)
class RunSummary:
    """How a run ended. status: ``"finished"``, ``"interrupted"`` or ``"failed"``; exact: whether the run, a resume
    included, repeats exactly, which takes lock-step on the CPU; evaluation: the final evaluation's figures by name."""

    status: str
    run_dir: str
    updates: int
    env_steps: int
    stored_steps: int
    seconds: float
    steps_per_s: float
    updates_per_s: float
    evaluation: Mapping[str, float]
    exact: bool
    message: str = ""
    restarts: int = 0
    curve: str | None = None


class Observer(Protocol):
    """What a run tells those who watch it."""

    def run_started(self, run: RunInfo) -> None:
        """Once, before the first update."""

    def progress(self, progress: Progress) -> None:
        """About four times a second."""

    def metrics(self, row: Mapping[str, Value]) -> None:
        """A row of log.csv, in rising order of ``updates``; a column without a figure is None."""

    def checkpoint_saved(self, updates: int, path: str) -> None:
        """A checkpoint is on disk."""

    def rewound(self, updates: int) -> None:
        """Training goes on from this update number: rows beyond it are void."""

    def event(self, text: str) -> None:
        """One line worth telling: a worker restarted, a checkpoint refused."""

    def run_finished(self, summary: RunSummary) -> None:
        """Once, at the end, however the run ended."""


class ObserverBase:
    """An observer that ignores everything; subclass it and override what you need."""

    def run_started(self, run: RunInfo) -> None:
        """Ignore."""

    def progress(self, progress: Progress) -> None:
        """Ignore."""

    def metrics(self, row: Mapping[str, Value]) -> None:
        """Ignore."""

    def checkpoint_saved(self, updates: int, path: str) -> None:
        """Ignore."""

    def rewound(self, updates: int) -> None:
        """Ignore."""

    def event(self, text: str) -> None:
        """Ignore."""

    def run_finished(self, summary: RunSummary) -> None:
        """Ignore."""
