"""The event loop: asks samplers for rollouts and the learner for updates, as pacing allows, until the run ends.

The loop knows four numbers (DataFlow) and nothing of on- or off-policy. Values do not pass through it: it hands the
reference of a rollout to the learner and the reference of a version's weights to the samplers. With ``max_lead`` 0
rollouts are taken in the order of their requests, so a run is the same on every transport.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnirl.api.data import Episode
from omnirl.api.errors import DiskError, WorkersFailedError
from omnirl.api.observer import RunSummary
from omnirl.runtime.checkpoint import Loaded
from omnirl.runtime.dispatch import ObserverThread
from omnirl.runtime.evaluations import Evaluations, Handlers
from omnirl.runtime.learner import AdvanceOrder, AdvanceReport
from omnirl.runtime.logbook import LogBook
from omnirl.runtime.meter import Meter
from omnirl.runtime.pacing import Pacing
from omnirl.runtime.plan import WorkerPlan
from omnirl.runtime.sampler import CollectReport
from omnirl.runtime.saving import SaveOutcome, Snapshot
from omnirl.runtime.signals import StopRequest
from omnirl.runtime.supervision import Crew, Failure, Slot
from omnirl.runtime.transport import Ref, Transport, WorkerDiedError, WorkerRaisedError

_WAIT_SECONDS = 0.2
_CALL_SECONDS = 0.15
_MOST_FAILED_SAVES = 3


@dataclass(frozen=True)
class TrainSettings:
    """The runner's side of a run. Intervals: evaluation in updates, saving and logging in seconds.

    manifest, agent_meta: what checkpoints and agent files say of the run beside its counters.
    """

    run_dir: str
    eval_interval: int
    save_interval: float
    log_interval: float
    save_memory: bool
    keep_last: int
    columns: tuple[str, ...]
    manifest: Mapping[str, Any]
    agent_meta: Mapping[str, Any]


class TrainLoop:
    """One run, from its first request to its last save."""

    def __init__(
        self,
        plan: WorkerPlan,
        settings: TrainSettings,
        pacing: Pacing,
        transport: Transport,
        observers: ObserverThread,
        stop: StopRequest,
        aggregate: Callable[[Sequence[Episode]], Mapping[str, float]],
        resumed: Loaded | None,
    ) -> None:
        self.plan, self.settings, self.pacing = plan, settings, pacing
        self.transport, self.observers, self.stop = transport, observers, stop
        self.resumed = resumed
        self.lock_step = plan.flow.max_lead == 0
        self.handlers: Handlers = {}
        driver = resumed.tree["driver"] if resumed else {}
        incarnations = {int(index): int(count) for index, count in driver.get("incarnations", {}).items()}
        self.crew = Crew(transport, plan, incarnations)
        self.logbook = LogBook(settings.columns, lambda row: observers.send("metrics", row))
        self.evaluations = Evaluations(self.crew, self.handlers, aggregate, self._evaluated, self._tell)
        self.meter = Meter()
        self.exact = bool(driver.get("exact", True))
        self.evaluation: dict[str, float] = dict(driver.get("evaluation", {}))
        self.evaluated_version = int(driver.get("evaluated_version", -1))
        self.epoch = 0
        self.arrivals: dict[int, tuple[CollectReport, Ref] | None] = {}
        self.next_arrival = 0
        self.waiting_rollouts: list[tuple[int, Ref]] = []
        self.learning = False
        self.save_due = False
        self.failed_saves = 0
        self.weights: Ref

    # ---------------------------------------------------------------- the run

    def run(self) -> RunSummary:
        """Train until the stop target, or until a stop is requested; then save."""
        self.exact &= self.crew.start()
        self._begin()
        while not (self.pacing.finished() or self.stop.signal):
            self._round()
        self._drain()
        finished = not self.stop.signal
        if finished:
            self._last_row()
        self._save(finished=finished)
        self._saved(self.transport.get(self.transport.call(self.crew.learner, "finish_saves")[0]))
        return self._summary("finished" if finished else "interrupted")

    def _begin(self) -> None:
        if self.resumed is not None:
            self._restore(self.resumed)
        self.next_arrival = self.pacing.requests
        (self.weights,) = self.transport.call(self.crew.learner, "weights")
        self.transport.wait([self.weights], 60.0)
        self.meter.begin(self.pacing)
        self.logbook.begin(self.pacing, self.meter.wall())

    def _round(self) -> None:
        if self.save_due:
            self._hand_over()
        else:
            self._order_rollouts()
            self._order_updates()
        self._wait()
        if self.save_due and self._quiescent():
            self._save(finished=False)
        elif not self.save_due:
            age = self.meter.checkpoint_age()
            self.save_due = age >= self.settings.save_interval
        if self.meter.glance_due():
            self.observers.send("progress", self.meter.glance(self.pacing, self.evaluation, self.crew))

    def _wait(self) -> None:
        if not self.handlers:
            if self.save_due or self.pacing.finished():
                return
            raise RuntimeError(f"nothing is in flight and nothing may start: {self.pacing}")
        for ref in self.transport.wait(list(self.handlers), _WAIT_SECONDS):
            handler = self.handlers.pop(ref, None)
            if handler is not None:
                handler(ref)

    def _quiescent(self) -> bool:
        busy = self.pacing.in_flight or self.waiting_rollouts or self.learning
        return not busy and not (self.lock_step and self.evaluations.outstanding)

    def _drain(self) -> None:
        """Let everything in flight arrive, so that the last checkpoint is exact."""
        while self.pacing.in_flight or self.waiting_rollouts or self.learning or self.evaluations.outstanding:
            self._hand_over()
            self._wait()

    # ---------------------------------------------------------------- rollouts

    def _order_rollouts(self) -> None:
        while self.pacing.may_collect():
            slot = self._free_sampler()
            if slot is None:
                return
            env_steps = self.pacing.requested
            request = self.pacing.request()
            slot.requests.append(request)
            report, rollout = self.transport.call(
                slot.worker, "collect", self.weights, env_steps, self.epoch, returns=2
            )
            self.handlers[report] = self._on_collected(slot, request, rollout)

    def _free_sampler(self) -> Slot | None:
        samplers = self.crew.samplers
        if self.lock_step:
            slot = samplers[self.pacing.requests % len(samplers)]
            return slot if not slot.requests else None
        slot = min(samplers, key=lambda sampler: len(sampler.requests))
        return slot if len(slot.requests) < 2 else None

    def _on_collected(self, slot: Slot, request: int, rollout: Ref) -> Callable[[Ref], None]:
        def handle(ref: Ref) -> None:
            if request not in slot.requests:  # asked of a worker that has been replaced since
                return
            try:
                report: CollectReport = self.transport.get(ref)
            except (WorkerDiedError, WorkerRaisedError) as failure:
                self._sampler_failed(slot, failure)
                return
            slot.failures = 0
            self.arrivals[request] = (report, rollout)
            self._take_arrivals()

        return handle

    def _sampler_failed(self, slot: Slot, failure: Failure) -> None:
        for request in slot.requests:
            self.pacing.lost()
            self.arrivals[request] = None
        self.exact = False
        self._tell(self.crew.replace(slot, failure))
        self._take_arrivals()

    def _take_arrivals(self) -> None:
        """Take what has arrived: in lock-step in the order of the requests, else in the order of each sampler's."""
        if self.lock_step:
            while self.next_arrival in self.arrivals:
                self._take(self.next_arrival)
                self.next_arrival += 1
            return
        for slot in self.crew.samplers:
            while slot.requests and slot.requests[0] in self.arrivals:
                self._take(slot.requests[0])
        for request in [request for request, arrival in self.arrivals.items() if arrival is None]:
            del self.arrivals[request]

    def _take(self, request: int) -> None:
        arrival = self.arrivals.pop(request)
        if arrival is None:  # lost with its worker
            return
        report, rollout = arrival
        self.crew.samplers[report.sampler].requests.remove(request)
        due = self.pacing.arrived(report.version)
        lag = None if due is None else max(0, due - report.version)
        self.logbook.rollout(lag, [total for total, _ in report.episodes])
        self.meter.rollout(lag, report.episodes)
        if due is not None:
            self.waiting_rollouts.append((due, rollout))

    # ---------------------------------------------------------------- updates

    def _order_updates(self) -> None:
        if self.learning:
            return
        updates, limit = self.pacing.updates_allowed(), self._next_row()
        if self.evaluations.outstanding >= 2 and self._evaluates(limit):
            limit -= 1  # one evaluation runs and one waits: the next may not become due yet
        updates = min(updates, limit - self.pacing.updates)
        if updates > 0 or self.waiting_rollouts:
            self._advance(max(0, updates))

    def _hand_over(self) -> None:
        """Give the learner the rollouts that have arrived, without an update."""
        if not self.learning and self.waiting_rollouts:
            self._advance(0)

    def _advance(self, updates: int) -> None:
        dues = tuple(due for due, _ in self.waiting_rollouts)
        rollouts = [rollout for _, rollout in self.waiting_rollouts]
        self.waiting_rollouts = []
        order = AdvanceOrder(
            dues=dues,
            updates=updates,
            seconds=_CALL_SECONDS,
            env_steps=self.pacing.collected,
            row_due=self.meter.row_age() >= self.settings.log_interval,
            row_at=self._next_row(),
        )
        self.learning = True
        report, weights = self.transport.call(self.crew.learner, "advance", order, *rollouts, returns=2)
        self.handlers[report] = lambda ref: self._advanced(ref, weights)

    def _next_row(self) -> int:
        """The next version that must have a row: an evaluation, the stop, or every update."""
        updates, target = self.pacing.updates, self.pacing.target.updates
        if self.settings.log_interval == 0:
            return updates + 1
        interval = self.settings.eval_interval
        return min(target, (updates // interval + 1) * interval) if interval else target

    def _evaluates(self, version: int) -> bool:
        if not self.crew.evaluators:
            return False
        interval = self.settings.eval_interval
        return version == self.pacing.target.updates or bool(interval and version % interval == 0)

    def _advanced(self, ref: Ref, weights: Ref) -> None:
        report: AdvanceReport = self._from_learner(ref)
        self.learning = False
        self.weights = weights
        self.pacing.updates = report.updates
        self.meter.advanced(self.pacing)
        self._saved(report.saves)
        if report.metrics is not None:
            evaluates = self._evaluates(report.updates)
            self._row(report.metrics, evaluates)

    def _row(self, metrics: Mapping[str, float], evaluates: bool) -> None:
        self.logbook.row(self.pacing, self.meter.wall(), metrics, evaluated=evaluates)
        self.meter.row_written()
        if evaluates:
            self.evaluations.ask(self.pacing.updates, self.weights)

    def _last_row(self) -> None:
        """The row and the evaluation of the last version, where the run ended short of its target."""
        if self.pacing.updates == 0 or self.logbook.last_row == self.pacing.updates:
            return
        metrics = self._from_learner(self.transport.call(self.crew.learner, "metrics")[0])
        self._row(metrics, bool(self.crew.evaluators))
        self._drain()

    def _from_learner(self, ref: Ref) -> Any:
        try:
            return self.transport.get(ref)
        except WorkerDiedError as failure:
            raise WorkersFailedError(
                f"the learner's process died ({failure}); `omnirl resume {self.settings.run_dir}` goes on from the "
                "last checkpoint"
            ) from failure
        except WorkerRaisedError as failure:
            if failure.expected is not None:
                raise failure.expected from failure
            raise RuntimeError(f"the learner failed:\n{failure.traceback}") from failure

    def _evaluated(self, version: int, figures: Mapping[str, float]) -> None:
        self.evaluation, self.evaluated_version = dict(figures), version
        self.logbook.evaluation(version, figures)

    def _tell(self, text: str) -> None:
        self.observers.send("event", text)

    # ---------------------------------------------------------------- saving

    def _save(self, *, finished: bool) -> None:
        states = self._sampler_states()
        self.observers.flush()  # rows up to this version are on disk before the checkpoint is
        pacing = self.pacing
        driver = {
            "pacing": pacing.state_dict(),
            "logbook": self.logbook.state_dict(),
            "incarnations": {str(slot.index): slot.incarnation for slot in self.crew.samplers},
            "exact": self.exact,
            "wall": self.meter.wall(),
            "evaluation": self.evaluation,
            "evaluated_version": self.evaluated_version,
        }
        counters = {"updates": pacing.updates, "env_steps": pacing.collected, "stored_steps": pacing.stored}
        snapshot = Snapshot(
            run_dir=self.settings.run_dir,
            version=pacing.updates,
            manifest={
                **self.settings.manifest,
                "counters": counters,
                "memory": self.settings.save_memory,
                "finished": finished,
            },
            tree={"driver": driver, "samplers": states},
            save_memory=self.settings.save_memory,
            agent_meta={**self.settings.agent_meta, **counters},
            keep_last=self.settings.keep_last,
        )
        self._saved(self._from_learner(self.transport.call(self.crew.learner, "save", snapshot)[0]))
        self.save_due = False
        self.meter.saved()

    def _sampler_states(self) -> dict[str, Any]:
        states: dict[str, Any] = {}
        asked = [(slot, self.transport.call(slot.worker, "state")[0]) for slot in self.crew.samplers]
        for slot, ref in asked:
            try:
                states[str(slot.index)] = self.transport.get(ref)
            except (WorkerDiedError, WorkerRaisedError) as failure:
                self._sampler_failed(slot, failure)
        return states

    def _saved(self, outcomes: Sequence[SaveOutcome]) -> None:
        for outcome in outcomes:
            if not outcome.error:
                self.failed_saves = 0
                self.observers.send("checkpoint_saved", outcome.version, outcome.path)
                continue
            self.failed_saves += 1
            self._tell(f"saving {outcome.path} failed: {outcome.error}")
            if self.failed_saves >= _MOST_FAILED_SAVES:
                raise DiskError(f"{outcome.path} cannot be written: {outcome.error}")

    def _restore(self, loaded: Loaded) -> None:
        driver = loaded.tree["driver"]
        memory = bool(loaded.manifest["memory"])
        self.pacing.load_state_dict(driver["pacing"], memory_restored=memory)
        self.logbook.load_state_dict(driver["logbook"])
        self.meter.restore(float(driver["wall"]))
        self._from_learner(
            self.transport.call(self.crew.learner, "restore", str(loaded.path), self.pacing.updates)[0]
        )
        for slot in self.crew.samplers:
            state = loaded.tree["samplers"].get(str(slot.index))
            if state is None:
                continue
            (ref,) = self.transport.call(slot.worker, "restore", state)
            if not self.transport.get(ref):
                self.exact = False
                self._tell(f"{slot.name}: its environment did not repeat exactly; new episodes were begun")

    def _summary(self, status: str) -> RunSummary:
        steps_per_s, updates_per_s = self.meter.rates(self.pacing)
        return RunSummary(
            status=status,
            run_dir=self.settings.run_dir,
            updates=self.pacing.updates,
            env_steps=self.pacing.collected,
            stored_steps=self.pacing.stored,
            seconds=self.meter.wall(),
            steps_per_s=steps_per_s,
            updates_per_s=updates_per_s,
            evaluation=self.evaluation if self.evaluated_version == self.pacing.updates else {},
            exact=self.exact,
            restarts=self.crew.restarts,
        )
