"""What a run has come to: counters, log, clocks and the latest evaluation. The driver's part of a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnirl.api.observer import RunSummary
from omnirl.runtime.best import BestAgents
from omnirl.runtime.logbook import LogBook
from omnirl.runtime.meter import Meter
from omnirl.runtime.pacing import Pacing


@dataclass
class RunState:
    """exact: whether everything so far repeats exactly. evaluation: the figures of ``evaluated_version``, the latest;
    stop_return: the mean return of an evaluation that ends the run (None: none does)."""

    pacing: Pacing
    logbook: LogBook
    best: BestAgents
    stop_return: float | None = None
    meter: Meter = field(default_factory=Meter)
    exact: bool = True
    evaluation: dict[str, float] = field(default_factory=dict)
    evaluated_version: int = -1

    def begin(self) -> None:
        """Training begins, or goes on, now."""
        self.meter.begin(self.pacing)
        self.logbook.begin(self.pacing, self.meter.wall())

    def evaluated(self, version: int, figures: Mapping[str, float]) -> None:
        """The figures of an evaluation."""
        self.evaluation, self.evaluated_version = dict(figures), version
        self.logbook.evaluation(version, figures)

    @property
    def reached(self) -> bool:
        """Whether the latest evaluation ends the run."""
        return (
            self.stop_return is not None and self.evaluation.get("return_mean", -math.inf) >= self.stop_return
        )

    @property
    def counters(self) -> dict[str, int]:
        """What a manifest says at a glance."""
        pacing = self.pacing
        return {"updates": pacing.updates, "env_steps": pacing.collected, "stored_steps": pacing.stored}

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint taken with nothing in flight."""
        return {
            "pacing": self.pacing.state_dict(),
            "logbook": self.logbook.state_dict(),
            "exact": self.exact,
            "wall": self.meter.wall(),
            "evaluation": self.evaluation,
            "evaluated_version": self.evaluated_version,
            "best": self.best.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any], *, memory_restored: bool) -> None:
        """Go on from a checkpoint."""
        self.pacing.load_state_dict(state["pacing"], memory_restored=memory_restored)
        self.logbook.load_state_dict(state["logbook"])
        self.meter.restore(float(state["wall"]))
        self.exact &= bool(state["exact"])
        self.evaluation = dict(state["evaluation"])
        self.evaluated_version = int(state["evaluated_version"])
        self.best.load_state_dict(state["best"])

    def summary(self, status: str, run_dir: str, restarts: int) -> RunSummary:
        """How the run ended."""
        steps_per_s, updates_per_s = self.meter.rates(self.pacing)
        return RunSummary(
            status=status,
            run_dir=run_dir,
            updates=self.pacing.updates,
            env_steps=self.pacing.collected,
            stored_steps=self.pacing.stored,
            seconds=self.meter.wall(),
            steps_per_s=steps_per_s,
            updates_per_s=updates_per_s,
            evaluation=self.evaluation if self.evaluated_version == self.pacing.updates else {},
            exact=self.exact,
            restarts=restarts,
            message=self._note() if status == "finished" else "",
        )

    def _note(self) -> str:
        if not self.reached:
            return ""
        return (
            f"the evaluation of update {self.evaluated_version} reached runner.stop_return: "
            f"{self.evaluation['return_mean']:.6g} >= {self.stop_return:.6g}"
        )
