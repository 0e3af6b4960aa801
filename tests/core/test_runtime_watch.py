"""The watch over workers: one that hangs is given up at its deadline, one that was not asked is not."""

from __future__ import annotations

from typing import Any

import pytest

from omnirl.runtime import watch
from omnirl.runtime.supervision import Slot
from omnirl.runtime.watch import Watch

TIMEOUT = 60.0


class Stage:
    """A clock, one busy sampler, and a transport whose pulse is ``steps``; ``given_up`` are the times of deaths."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.steps = 1000.0, 0
        self.handlers: dict[Any, Any] = {}
        self.given_up: list[float] = []
        self.transport = self
        monkeypatch.setattr(watch.time, "monotonic", lambda: self.now)
        self.slots = [Slot("sampler", 0, object(), busy_since=self.now)]  # type: ignore[arg-type]
        self.watch = Watch(self, self.handlers, TIMEOUT, lambda *_: self.given_up.append(self.now))  # type: ignore[arg-type]

    def pulse(self, worker: object) -> object:
        return object()

    def get(self, ref: object) -> int:
        return self.steps

    def rounds(self, seconds: float, stepping: bool) -> None:
        """The loop looks five times a second; answers come at once."""
        for _ in range(round(seconds * 5)):
            self.now += 0.2
            self.steps += stepping
            self.watch.look()
            for ref in list(self.handlers):
                self.handlers.pop(ref)(ref)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def test_a_worker_that_steps_is_left_alone(stage: Stage) -> None:
    stage.rounds(300, stepping=True)
    assert stage.given_up == []


def test_a_worker_that_hangs_is_given_up_at_its_deadline(stage: Stage) -> None:
    stage.rounds(30, stepping=True)
    hung = stage.now
    stage.rounds(80, stepping=False)
    assert TIMEOUT - TIMEOUT / 4 <= stage.given_up[0] - hung <= TIMEOUT + 1


@pytest.mark.parametrize("before", [1.0, 30.0], ids=["not asked yet", "asked before"])
def test_a_driver_that_was_stopped_for_longer_gives_nobody_up(stage: Stage, before: float) -> None:
    """As by Ctrl-Z and fg: the workers went on all the time."""
    stage.rounds(before, stepping=True)
    stage.now += 10 * TIMEOUT
    stage.steps += 1
    stage.rounds(30, stepping=True)
    assert stage.given_up == []


def test_a_worker_that_hung_while_the_driver_was_stopped_is_given_up_a_deadline_later(stage: Stage) -> None:
    stage.rounds(30, stepping=True)
    stage.now += 10 * TIMEOUT
    back = stage.now
    stage.rounds(80, stepping=False)
    assert TIMEOUT - 1 <= stage.given_up[0] - back <= TIMEOUT + 1
