"""Pacing: the formulas by hand, no deadlock under any order of events, counters after a resume."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnirl.api import DataFlow
from omnirl.runtime.pacing import Pacing, StopTarget


def pacing(flow: DataFlow, rollout: int, updates: int | None = None, steps: int | None = None) -> Pacing:
    return Pacing.fresh(flow, rollout, StopTarget.of(flow, rollout, updates, steps))


def test_on_policy_asks_one_rollout_of_each_sampler_and_then_waits() -> None:
    p = pacing(DataFlow(unroll_length=32, steps_per_update=512), rollout=256, updates=10)
    assert p.may_collect()
    p.request()
    assert p.may_collect()
    p.request()
    assert not p.may_collect()
    assert p.updates_allowed() == 0
    assert p.arrived(version=0) == 0
    assert p.updates_allowed() == 0
    assert p.arrived(version=0) == 0
    assert p.updates_allowed() == 1
    assert not p.may_collect()
    p.updates = 1
    assert p.updates_allowed() == 0
    assert p.may_collect()


def test_replay_warms_up_then_keeps_two_steps_per_update() -> None:
    flow = DataFlow(unroll_length=256, steps_per_update=2, warmup_steps=1000)
    p = pacing(flow, rollout=256, updates=1000)
    while p.may_collect():
        p.request()
        p.arrived(version=0)
    assert p.stored == 1024  # the first multiple of 256 that reaches 1000 + 1 * 2
    assert p.updates_allowed() == 12  # (1024 - 1000) / 2
    p.updates = 11
    assert not p.may_collect()
    p.updates = 12
    assert p.may_collect()


@pytest.mark.parametrize(
    ("flow", "rollout", "updates", "steps", "expected"),
    [
        (DataFlow(32, 256), 256, None, 100_000, 390),  # 390 * 256 = 99,840
        (DataFlow(256, 2, 1000), 256, None, 100_000, 49_420),  # (99,840 - 1000) / 2
        (DataFlow(32, 256), 256, 100, 100_000, 100),
        (DataFlow(32, 256), 256, 1000, 100_000, 390),
        (DataFlow(32, 256), 256, None, 255, 0),
        (DataFlow(32, 256), 256, 7, None, 7),
    ],
)
def test_the_nearer_of_two_limits_counts_and_no_step_limit_is_passed(
    flow: DataFlow, rollout: int, updates: int | None, steps: int | None, expected: int
) -> None:
    target = StopTarget.of(flow, rollout, updates, steps)
    assert target.updates == expected
    if steps is not None:
        assert flow.warmup_steps + target.updates * flow.steps_per_update <= steps


def test_a_rollout_older_than_the_lead_is_dropped_and_counted() -> None:
    flow = DataFlow(unroll_length=10, steps_per_update=10, max_lead=2)
    p = pacing(flow, rollout=10, updates=100)
    for _ in range(3):
        p.request()
    assert [p.arrived(version=0) for _ in range(3)] == [0, 1, 2]
    p.updates = 1
    p.request()
    assert p.arrived(version=0) is None  # due in update 3, three versions old
    assert (p.dropped, p.collected, p.stored, p.requested) == (10, 40, 30, 30)
    p.request()
    assert p.arrived(version=1) == 3


def test_replay_keeps_rollouts_of_any_age() -> None:
    flow = DataFlow(unroll_length=10, steps_per_update=10, max_lead=1, bounded_lag=False)
    p = pacing(flow, rollout=10, updates=100)
    for _ in range(2):
        p.request()
        p.arrived(version=0)
    p.updates = 2
    p.request()
    assert p.arrived(version=0) == 2
    assert p.dropped == 0


def test_a_lost_rollout_is_asked_for_again() -> None:
    p = pacing(DataFlow(unroll_length=10, steps_per_update=10), rollout=10, updates=5)
    p.request()
    assert not p.may_collect()
    p.lost()
    assert p.may_collect()
    assert p.request() == 1  # its number is a new one
    assert p.collected == 0


def test_resume_with_and_without_the_memory() -> None:
    flow = DataFlow(unroll_length=10, steps_per_update=2, warmup_steps=100)
    p = pacing(flow, rollout=10, updates=1000)
    p.load_state_dict(
        {
            "collected": 300,
            "requested": 300,
            "stored": 300,
            "updates": 100,
            "base": 100,
            "requests": 30,
            "dropped": 0,
        },
        memory_restored=True,
    )
    assert (p.base, p.updates_allowed()) == (100, 0)
    assert p.may_collect()
    state = p.state_dict()
    q = pacing(flow, rollout=10, updates=1000)
    q.load_state_dict(state, memory_restored=False)
    assert q.base == 300 + 100 - 200  # the warm-up is collected anew
    assert q.updates_allowed() == 0
    collected = 0
    while q.updates_allowed() == 0:
        q.request()
        q.arrived(version=100)
        collected += 10
    assert collected == 110  # warm-up, and the steps of the next update


@settings(max_examples=60, deadline=None)
@given(
    samplers=st.integers(1, 4),
    rollout=st.integers(1, 40),
    spu=st.integers(1, 100),
    warmup=st.integers(0, 200),
    lead=st.integers(0, 5),
    seed=st.integers(0, 1000),
)
def test_any_order_of_events_finishes_within_the_bounds(
    samplers: int, rollout: int, spu: int, warmup: int, lead: int, seed: int
) -> None:
    """Arrivals, losses and updates in random order: never a deadlock, the lag and the ratio within their bounds."""
    rng = random.Random(seed)
    flow = DataFlow(unroll_length=1, steps_per_update=spu, warmup_steps=warmup, max_lead=lead)
    p = pacing(flow, rollout=rollout, updates=20)
    in_flight: list[int] = []
    for _ in range(20_000):
        if p.finished():
            break
        choices = []
        if p.may_collect() and len(in_flight) < 2 * samplers:
            choices.append("request")
        if in_flight:
            choices.append("arrive")
        if p.updates_allowed():
            choices.append("learn")
        assert choices, f"deadlock: {p}"
        choice = rng.choice(choices)
        if choice == "request":
            p.request()
            in_flight.append(p.updates)
        elif choice == "arrive":
            version = in_flight.pop(rng.randrange(len(in_flight)))
            if rng.random() < 0.05:
                p.lost()
            else:
                due = p.arrived(version)
                assert due is None or due - version <= lead
        else:
            p.updates += 1
        assert p.requested == p.stored + rollout * len(in_flight)
        if p.stored >= p.base:
            assert abs(p.stored - p.base - p.updates * spu) <= (1 + lead) * spu + rollout
    assert p.updates == 20


@pytest.mark.parametrize(
    ("now", "base", "allowed"),
    [
        (16, 0, 0),  # as before: six updates of 16, and half of the seventh waits
        (48, 104 - 8 - 6 * 48, 0),  # three times as many samplers: 40 more steps make the seventh
        (4, 104 - 4 - 6 * 4, 1),  # what waits is more than an update needs: one, not two
    ],
)
def test_resume_with_another_number_of_steps_per_update(now: int, base: int, allowed: int) -> None:
    before = pacing(DataFlow(unroll_length=8, steps_per_update=16), rollout=8, updates=100)
    before.updates = 6
    before.collected = before.requested = before.stored = 104
    after = pacing(DataFlow(unroll_length=8, steps_per_update=now), rollout=8, updates=100)
    after.load_state_dict(before.state_dict(), memory_restored=True)
    assert (after.base, after.updates_allowed()) == (base, allowed)
    if not allowed:
        after.request()
        assert after.arrived(version=6) == 6
