"""Pacing: how far samplers may run ahead of the learner, and the learner ahead of the samplers.

The whole difference between on-policy, bounded-lag and replay algorithms is in four numbers (DataFlow)::

    may_learn:    stored    >= base + (updates + 1) * steps_per_update
    may_collect:  requested <  base + (updates + 1 + max_lead) * steps_per_update
    invariant:    requested == stored + in flight

With nothing in flight ``requested == stored``, so one of the two always holds: there is no deadlock.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from omnirl.api.algorithm import DataFlow


@dataclass(frozen=True)
class StopTarget:
    """When a run ends: after ``updates`` updates, or where ``max_steps`` collected steps allow no further one."""

    updates: int
    steps: int
    max_steps: int | None

    @classmethod
    def of(
        cls, flow: DataFlow, rollout_steps: int, max_updates: int | None, max_steps: int | None
    ) -> StopTarget:
        """The target of a fresh run. With both limits given the nearer one counts."""
        limits = [] if max_updates is None else [max_updates]
        if max_steps is not None:
            usable = max_steps // rollout_steps * rollout_steps
            limits.append(max(0, (usable - flow.warmup_steps) // flow.steps_per_update))
        updates = min(limits)
        return cls(updates, max(1, flow.warmup_steps + updates * flow.steps_per_update), max_steps)


@dataclass
class Pacing:
    """The counters of a run, in environment steps except ``updates``.

    collected   arrived at the driver, discarded steps included; never falls
    requested   asked of samplers, less what was lost
    stored      given to a memory
    base        the step count at which update 0 would be due
    """

    flow: DataFlow
    rollout_steps: int
    target: StopTarget
    collected: int = 0
    requested: int = 0
    stored: int = 0
    updates: int = 0
    base: int = 0
    requests: int = 0
    dropped: int = 0

    @classmethod
    def fresh(cls, flow: DataFlow, rollout_steps: int, target: StopTarget) -> Pacing:
        """The counters of a run that begins."""
        return cls(flow, rollout_steps, target, base=flow.warmup_steps)

    def may_collect(self) -> bool:
        """Whether one more rollout may be requested."""
        if self.target.max_steps is not None:
            in_flight = self.requested - self.stored
            if self.collected + in_flight + self.rollout_steps > self.target.max_steps:
                return False
        lead = min(self.updates + 1 + self.flow.max_lead, self.target.updates)
        return self.requested < self.base + lead * self.flow.steps_per_update

    def updates_allowed(self) -> int:
        """How many updates the stored steps allow now."""
        by_steps = (self.stored - self.base) // self.flow.steps_per_update
        return max(0, min(by_steps, self.target.updates) - self.updates)

    def request(self) -> int:
        """Count a request; return its number."""
        self.requested += self.rollout_steps
        self.requests += 1
        return self.requests - 1

    def lost(self) -> None:
        """A requested rollout will never arrive."""
        self.requested -= self.rollout_steps

    def refused(self) -> None:
        """A rollout arrived that no learner may see."""
        self.collected += self.rollout_steps
        self.requested -= self.rollout_steps
        self.dropped += self.rollout_steps

    def arrived(self, version: int) -> int | None:
        """Count an arriving rollout that acted with ``version``.

        Returns the update it is due in; None where it is dropped, being older than a bounded lag allows.
        """
        due = max(0, (self.stored - self.base) // self.flow.steps_per_update)
        if self.flow.bounded_lag and due - version > self.flow.max_lead:
            self.refused()
            return None
        self.collected += self.rollout_steps
        self.stored += self.rollout_steps
        return due

    @property
    def in_flight(self) -> int:
        """Steps requested and not yet stored."""
        return self.requested - self.stored

    def finished(self) -> bool:
        """Whether the stop target is reached."""
        if self.updates >= self.target.updates:
            return True
        return self.in_flight == 0 and not self.may_collect() and self.updates_allowed() == 0

    def ratio(self) -> float:
        """Updates made per update that the stored steps call for; 1 is on schedule."""
        called_for = (self.stored - self.base) / self.flow.steps_per_update
        return self.updates / called_for if called_for > 0 else 0.0

    def state_dict(self) -> dict[str, int]:
        """The counters, for a checkpoint taken with nothing in flight."""
        state = asdict(self)
        counters = {name: state[name] for name in _COUNTERS}
        return {**counters, "steps_per_update": self.flow.steps_per_update}

    def load_state_dict(self, state: dict[str, int], *, memory_restored: bool) -> None:
        """Restore. Without the memory's content the warm-up is collected anew.

        Where an update takes another number of steps than before (more samplers, longer rollouts), the steps that
        no update has used yet become part of the next one.
        """
        for name in _COUNTERS:
            setattr(self, name, int(state[name]))
        self.requested = self.stored
        now = self.flow.steps_per_update
        before = int(state.get("steps_per_update", now))
        if not memory_restored:
            self.base = self.stored + self.flow.warmup_steps - self.updates * now
        elif before != now:
            unused = self.stored - self.base - self.updates * before
            self.base = self.stored - min(unused, now) - self.updates * now


_COUNTERS = ("collected", "requested", "stored", "updates", "base", "requests", "dropped")
