"""The event loop: asks samplers for rollouts and the learners for updates, as pacing allows, until the run ends.

The loop knows four numbers (DataFlow) and nothing of on- or off-policy. Values do not pass through it: it hands the
reference of a rollout to the learner and the reference of a version's weights to the samplers. With ``max_lead`` 0
rollouts are taken in the order of their requests, so a run is the same on every transport.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from omnirl.api.data import Episode
from omnirl.api.observer import RunSummary
from omnirl.runtime.best import BestAgents
from omnirl.runtime.checkpoint import Loaded
from omnirl.runtime.collecting import Collecting
from omnirl.runtime.dispatch import ObserverThread
from omnirl.runtime.evaluations import Evaluations, Handlers
from omnirl.runtime.failures import Failure, LearnerDiedError, death_at_start
from omnirl.runtime.health import Health
from omnirl.runtime.learners import Advance
from omnirl.runtime.logbook import LogBook
from omnirl.runtime.milestones import Milestones
from omnirl.runtime.pacing import Pacing, StopTarget
from omnirl.runtime.plan import WorkerPlan
from omnirl.runtime.recovery import Recovery
from omnirl.runtime.run_state import RunState
from omnirl.runtime.sampler import CollectReport
from omnirl.runtime.saves import Saves, SaveSettings
from omnirl.runtime.signals import StopRequest
from omnirl.runtime.supervision import Crew, Slot
from omnirl.runtime.transport import Ref, Transport
from omnirl.runtime.watch import Watch

_WAIT_SECONDS = 0.2
_REST_SECONDS = 0.02
_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class TrainSettings:
    """The runner's side of a run. eval_interval: updates; log_interval: seconds; columns: of the log; stop_return:
    the mean return of an evaluation that ends the run; step_timeout: seconds; on_nan: ``"drop"`` or ``"error"``."""

    eval_interval: int
    log_interval: float
    step_timeout: float
    on_nan: str
    columns: tuple[str, ...]
    saves: SaveSettings
    stop_return: float | None = None


class TrainLoop:
    """One run, from its first request to its last save."""

    def __init__(
        self,
        plan: WorkerPlan,
        target: StopTarget,
        settings: TrainSettings,
        transport: Transport,
        observers: ObserverThread,
        stop: StopRequest,
        aggregate: Callable[[Sequence[Episode]], Mapping[str, float]],
        resumed: Loaded | None,
    ) -> None:
        self.settings, self.transport, self.observers, self.stop = settings, transport, observers, stop
        self.resumed = resumed
        self.lock_step = plan.flow.max_lead == 0
        self.repeatable = self.lock_step and plan.device == "cpu"
        self.pacing = Pacing.fresh(plan.flow, plan.rollout_steps, target)
        self.logbook = LogBook(settings.columns, lambda row: observers.send("metrics", row))
        best = BestAgents(settings.saves.keep_best)
        self.state = RunState(self.pacing, self.logbook, best, settings.stop_return)
        driver = resumed.tree["driver"] if resumed else {}
        self.crew = Crew(transport, plan, driver.get("incarnations", {}))
        self.handlers: Handlers = {}
        self.milestones = Milestones(
            self.pacing, settings.eval_interval, settings.log_interval, plan.num_evaluators
        )
        self.health = Health(self.pacing, settings.on_nan, self._tell)
        self.collecting = Collecting(
            self.crew, self.pacing, self.handlers, self._seen, self.health.sick, self._lost
        )
        self.evaluations = Evaluations(self.crew, self.handlers, aggregate, self._evaluated, self._tell)
        self.saves = Saves(settings.saves, self.crew, self.state, observers, self._sampler_failed)
        self.watch = Watch(self.crew, self.handlers, settings.step_timeout, self._hung)
        self.recovery = Recovery(settings.saves.run_dir, self.state)
        self.learning = False
        self.save_due = False
        self.epoch = 0
        self.weights: Ref

    def run(self) -> RunSummary:
        """Train until the stop target, or until a stop is requested; then save."""
        self.state.exact = self.crew.start() and self.repeatable
        if self.resumed is not None:
            try:
                self.saves.restore(self.resumed)
            except LearnerDiedError as error:  # as in the rest of a start, that is not tried again
                raise death_at_start("the learner", error, memory=error.memory) from error
        self.state.begin()
        death: LearnerDiedError | None = None
        while True:
            try:
                if death is not None:
                    self._recover(death)
                return self._train()
            except LearnerDiedError as error:
                death = error

    def _train(self) -> RunSummary:
        self.collecting.begin()
        self.weights = self.crew.learners.weights()
        if self.logbook.go_on(self.pacing.updates):
            self.evaluations.ask(self.state.counters, self.weights)
        while not (self.pacing.finished() or self.state.reached or self.stop.signal):
            self._round()
        self._drain()
        finished = not self.stop.signal
        if finished:
            self.health.finished()
            finished = self._last_row()
        self.saves.last(finished=finished)
        status = "finished" if finished else "interrupted"
        return self.state.summary(status, self.settings.saves.run_dir, self.crew.restarts)

    def _recover(self, death: LearnerDiedError) -> None:
        """Go on from the last checkpoint, as a resume inside the process: what is in flight is lost."""
        wall = self.state.meter.wall()
        self.recovery.count(death)
        self.handlers.clear()
        self.crew.replace_learners()
        loaded = self.recovery.checkpoint()
        self.evaluations.forget()
        self.learning = self.save_due = False
        self.epoch += 1
        if loaded is None:
            self.recovery.start_anew()
        else:
            self.saves.restore(loaded, samplers=False)
        self.state.meter.restore(wall)  # what was lost took its time all the same
        self.state.begin()
        self.state.exact = False
        updates = self.pacing.updates
        self.observers.send("rewound", updates)
        self._tell(f"the learner's process died ({death}); going on from update {updates}")

    # ---------------------------------------------------------------- one round

    def _round(self) -> None:
        resting = self.crew.resting
        if self.save_due:
            self._hand_over()
        else:
            self.collecting.order(self.weights, self.epoch)
            self._order_updates()
        self._wait(resting)
        if self.save_due and self._quiescent():
            self.saves.save(finished=False)
            self.save_due = False
        elif not self.save_due:
            self.save_due = self.saves.due
        if self.state.meter.glance_due():
            glance = self.state.meter.glance(self.pacing, self.state.evaluation, self.crew)
            self.observers.send("progress", glance)

    def _wait(self, resting: bool) -> None:
        self.evaluations.look()
        self.watch.look()
        if not self.handlers:
            if resting:
                time.sleep(_REST_SECONDS)
            elif not (self.save_due or self.pacing.finished()):
                raise RuntimeError(f"nothing is in flight and nothing may start: {self.pacing}")
            return
        for ref in self.transport.wait(list(self.handlers), _WAIT_SECONDS):
            handler = self.handlers.pop(ref, None)
            if handler is not None:
                handler(ref)

    def _quiescent(self) -> bool:
        busy = self.collecting.busy or self.learning
        return not busy and not (self.lock_step and self.evaluations.outstanding)

    def _drain(self) -> bool:
        """Let everything in flight arrive, so that the last checkpoint is exact. Where the run was asked to stop, that
        does not include evaluations that take long: False where one was given up."""
        asked = math.inf
        while (busy := self.collecting.busy or self.learning) or self.evaluations.outstanding:
            if self.stop.signal:
                asked = min(asked, time.monotonic())
            if not busy and time.monotonic() - asked > _PATIENCE_SECONDS:
                self._give_up_evaluations()
                return False
            resting = self.crew.resting
            self._hand_over()
            self._wait(resting)
        return True

    def _give_up_evaluations(self) -> None:
        """The newest version's is played when the run goes on, with the checkpoint's weights; others are lost."""
        given_up = self.evaluations.forget()
        self.state.exact &= given_up == [self.pacing.updates]
        self._tell(f"asked to stop, so not waited for: evaluation of update {', '.join(map(str, given_up))}")

    # ---------------------------------------------------------------- updates

    def _order_updates(self) -> None:
        if self.learning:
            return
        if self.settings.stop_return is not None and self.evaluations.outstanding:
            self._hand_over()  # whether there is a next update depends on the evaluation
            return
        limit = self.milestones.next_row()
        if self.evaluations.outstanding >= 2 and self.milestones.evaluates(limit):
            limit -= 1  # one evaluation runs and one waits: the next may not become due yet
        updates = min(self.pacing.updates_allowed(), limit - self.pacing.updates)
        if updates > 0 or self.collecting.waiting:
            self._advance(max(0, updates))

    def _hand_over(self) -> None:
        """Give the learners the rollouts that have arrived, without an update."""
        if not self.learning and self.collecting.waiting:
            self._advance(0)

    def _advance(self, updates: int) -> None:
        advance = self.crew.learners.advance(
            self.collecting.take_waiting(),
            updates=updates,
            env_steps=self.pacing.collected,
            row_due=self.state.meter.row_age() >= self.settings.log_interval,
            row_at=self.milestones.next_row(),
        )
        self.learning = True
        for ref in advance.refs:
            self.handlers[ref] = lambda ready: self._advanced(advance, ready)

    def _advanced(self, advance: Advance, ref: Ref) -> None:
        report = advance.arrived(ref)
        if report is None:
            return
        self.learning = False
        self.weights = advance.weights
        self.pacing.updates = report.updates
        self.health.learned(report)
        self.state.meter.advanced(self.pacing)
        self.saves.ended(report.saves)
        if report.metrics is not None:
            self._row(report.metrics, evaluates=self.milestones.evaluates(report.updates))

    def _row(self, metrics: Mapping[str, float], *, evaluates: bool) -> None:
        self.logbook.row(self.pacing, self.state.meter.wall(), metrics, evaluated=evaluates)
        self.state.meter.row_written()
        if evaluates:
            self.evaluations.ask(self.state.counters, self.weights)

    def _last_row(self) -> bool:
        """The row and the evaluation of the last version, where the run ended short of its target. False where the
        evaluation was given up."""
        updates, evaluates = self.pacing.updates, bool(self.crew.evaluators)
        if updates == 0:
            return True
        if updates != self.logbook.last_row:
            self._row(self.crew.learners.metrics(), evaluates=evaluates)
        elif evaluates and updates != self.state.evaluated_version:  # its row stands already
            self.evaluations.ask(self.state.counters, self.weights)
        return self._drain()

    # ---------------------------------------------------------------- what happened

    def _evaluated(self, counters: Mapping[str, int], weights: Ref, figures: Mapping[str, float]) -> None:
        self.state.evaluated(counters["updates"], figures)
        self.saves.evaluated(counters, weights, figures)

    def _seen(self, lag: int | None, report: CollectReport) -> None:
        self.logbook.rollout(lag, report.episodes)
        self.state.meter.rollout(lag, report.episodes)

    def _sampler_failed(self, slot: Slot, failure: Failure) -> None:
        self.collecting.failed(slot, failure)

    def _hung(self, slot: Slot, failure: Failure) -> None:
        if slot.role == "sampler":
            self.collecting.failed(slot, failure)
        else:
            self.evaluations.failed(slot, failure)

    def _lost(self, text: str) -> None:
        """A sampler was replaced: its random streams are new ones, so the run does not repeat exactly."""
        self.state.exact = False
        self._tell(text)

    def _tell(self, text: str) -> None:
        self.observers.send("event", text)
