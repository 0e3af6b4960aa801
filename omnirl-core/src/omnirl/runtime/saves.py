"""The driver's side of checkpoints: gathers what the learner's process writes, and restores it into the crew."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnirl.api.errors import DiskError
from omnirl.runtime.best import BEST_FILE
from omnirl.runtime.checkpoint import Loaded
from omnirl.runtime.dispatch import ObserverThread
from omnirl.runtime.failures import Failure, start_error
from omnirl.runtime.run_state import RunState
from omnirl.runtime.saving import SaveOutcome, Snapshot
from omnirl.runtime.supervision import Crew, Slot
from omnirl.runtime.transport import Ref, WorkerDiedError, WorkerRaisedError

_MOST_FAILED = 3


@dataclass(frozen=True)
class SaveSettings:
    """Where and what. interval: seconds. keep_last, keep_best: numbers of agent files. manifest, agent_meta:
    what files say of the run beside its counters. env_changes: of the environment since the run began, for messages."""

    run_dir: str
    interval: float
    memory: bool
    keep_last: int
    keep_best: int
    manifest: Mapping[str, Any]
    agent_meta: Mapping[str, Any]
    env_changes: tuple[str, ...] = ()


class Saves:
    """Saves and restores a run. ``failed`` is told of a sampler that died while its state was asked for."""

    def __init__(
        self,
        settings: SaveSettings,
        crew: Crew,
        state: RunState,
        observers: ObserverThread,
        failed: Callable[[Slot, Failure], None],
    ) -> None:
        self._settings, self._crew, self._state = settings, crew, state
        self._observers, self._failed = observers, failed
        self._failures = 0

    @property
    def due(self) -> bool:
        """Whether the last save is an interval old."""
        return self._state.meter.checkpoint_age() >= self._settings.interval

    def save(self, *, finished: bool) -> None:
        """Snapshot the run; the learner's process writes it in the background. Nothing may be in flight."""
        samplers = self._sampler_states()
        self._observers.flush()  # rows up to this version are on disk before the checkpoint is
        settings, counters = self._settings, self._state.counters
        incarnations = {str(slot.index): slot.incarnation for slot in self._crew.samplers}
        snapshot = Snapshot(
            run_dir=settings.run_dir,
            version=counters["updates"],
            manifest={
                **settings.manifest,
                "counters": counters,
                "memory": settings.memory,
                "learners": self._crew.plan.num_learners,
                "finished": finished,
            },
            tree={
                "driver": {**self._state.state_dict(), "incarnations": incarnations},
                "samplers": samplers,
            },
            save_memory=settings.memory,
            agent_meta={**settings.agent_meta, **counters},
            keep_last=settings.keep_last,
            best=self._state.best.versions,
        )
        self.ended(self._crew.learners.save(snapshot))
        self._state.meter.saved()

    def evaluated(self, counters: Mapping[str, int], weights: Ref, figures: Mapping[str, float]) -> None:
        """Keep the agent of an evaluated version, reached with these counters, if it is among the best.

        What falls out of the best is removed with the next save, not now: a run killed before that goes on from a
        checkpoint that still counts it.
        """
        return_mean = figures.get("return_mean", math.nan)
        best, folder = self._state.best, Path(self._settings.run_dir)
        if not best.admits(return_mean):
            return
        meta = {**self._settings.agent_meta, **counters}
        outcome: SaveOutcome = self._crew.learners.ask("save_agent", str(folder), meta, weights)
        if outcome.error:
            self.ended([outcome])
            return
        best.add(counters["updates"], return_mean)
        self._write_best()

    def _write_best(self) -> None:
        folder = Path(self._settings.run_dir)
        try:
            self._state.best.write(folder)
        except OSError as error:
            self.ended([SaveOutcome(self._state.pacing.updates, str(folder / BEST_FILE), str(error))])

    def last(self, *, finished: bool) -> None:
        """The save at the end of a run: waited for, and tried again. Raises DiskError where it keeps failing."""
        while True:
            failures = self._failures
            self.save(finished=finished)
            self.ended(self._crew.learners.ask("finish_saves"))
            if self._failures <= failures:
                return

    def ended(self, outcomes: Sequence[SaveOutcome]) -> None:
        """Take note of saves that ended. Raises DiskError when several in a row have failed."""
        for outcome in outcomes:
            if not outcome.error:
                self._failures = 0
                self._observers.send("checkpoint_saved", outcome.version, outcome.path)
                continue
            self._failures += 1
            self._observers.send("event", f"saving {outcome.path} failed: {outcome.error}")
            if self._failures >= _MOST_FAILED:
                raise DiskError(f"{outcome.path} cannot be written: {outcome.error}")

    def restore(self, loaded: Loaded, *, samplers: bool = True) -> None:
        """Bring the driver, the learners and (unless they go on as they are) the samplers to a checkpoint's moment. The
        memories of another number of learners begin empty."""
        same = loaded.learners == self._crew.plan.num_learners
        memory_restored = same and bool(loaded.manifest["memory"])
        self._state.load_state_dict(loaded.tree["driver"], memory_restored=memory_restored)
        self._state.exact &= same
        self._write_best()
        self._crew.learners.ask_all("restore", str(loaded.path), self._state.pacing.updates)
        for slot in self._crew.samplers if samplers else ():
            state = loaded.tree["samplers"].get(str(slot.index))
            if state is None:
                continue
            (ref,) = self._crew.transport.call(slot.worker, "restore", state)
            if not self._answer(slot, ref):
                self._state.exact = False
                text = f"{slot.name}: its environment did not repeat exactly; new episodes were begun"
                changed = "; ".join(self._settings.env_changes)
                self._observers.send("event", f"{text} (changed: {changed})" if changed else text)

    def _answer(self, slot: Slot, ref: Ref) -> Any:
        """A sampler's answer; a checkpoint that does not fit it is the user's to mend."""
        try:
            return self._crew.transport.get(ref)
        except (WorkerDiedError, WorkerRaisedError) as failure:
            raise start_error(slot.name, failure) from failure

    def _sampler_states(self) -> dict[str, Any]:
        states: dict[str, Any] = {}
        asked = [(slot, self._crew.transport.call(slot.worker, "state")[0]) for slot in self._crew.samplers]
        for slot, ref in asked:
            try:
                states[str(slot.index)] = self._crew.transport.get(ref)
            except (WorkerDiedError, WorkerRaisedError) as failure:
                self._failed(slot, failure)
        return states
