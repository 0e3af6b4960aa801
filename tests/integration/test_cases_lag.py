"""K34 for IMPALA: how old what the learner consumes may be, with fast and with slow samplers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import omnirl.run
from omnirl.algorithms.impala.memory import Memory
from omnirl.runtime.transport import LocalRef, LocalTransport, Ref, Worker


def impala(folder: Path, samplers: int) -> dict[str, Any]:
    """60 updates of one rollout each: 4 steps of 2 environments."""
    return {
        "runner": {
            "ckpt_dir": str(folder),
            "max_updates": 60,
            "num_samplers": samplers,
            "num_envs_per_sampler": 2,
            "num_evaluators": 0,
            "log_interval": 0,
        },
        "device": {"threads": 1},
        "env": {"module": "gymnasium", "id": "CartPole-v1"},
        "agent": {"module": "impala"},
        "modules": {
            "memory": {"unroll_length": 4, "rollouts_per_update": 1},
            "network": {"hidden_sizes": [8]},
        },
    }


class SlowSampler(LocalTransport):
    """The rollouts of the first of several samplers arrive 30 looks late; what it then collects is noted."""

    def __init__(self) -> None:
        super().__init__()
        self.slow: str | None = None
        self.late: dict[int, int] = {}
        self.kept: list[LocalRef] = []  # so that no id is used twice
        self.newest = 0
        self.acted: list[tuple[int, int]] = []  # versions: its own, and the newest that anybody had by then

    def call(self, worker: Worker, method: str, *args: Any, returns: int = 1) -> tuple[LocalRef, ...]:
        refs = super().call(worker, method, *args, returns=returns)
        if method == "collect":
            version = refs[0].value.version
            self.newest = max(self.newest, version)
            self.slow = self.slow or worker.name
            if worker.name == self.slow:
                self.late[id(refs[0])] = 30
                self.kept.append(refs[0])
                self.acted.append((version, self.newest))
        return refs

    def wait(self, refs: Sequence[Ref], timeout: float) -> list[Ref]:
        ready = []
        for ref in refs:
            left = self.late.get(id(ref), 0)
            if left == 0:
                ready.append(ref)
            else:
                self.late[id(ref)] = left - 1
        return ready


@pytest.fixture
def consumed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """``(update, version, sampler)`` of every rollout that the learner took."""
    seen: list[tuple[int, int, int]] = []
    take = Memory.next_batch

    def watched(memory: Memory, clock: Any) -> Any:
        batch = take(memory, clock)
        seen.extend((clock.update, rollout.version, rollout.sampler) for rollout in batch)
        return batch

    monkeypatch.setattr(Memory, "next_batch", watched)
    return seen


def test_k34_impala_drops_nothing_where_the_learner_is_the_faster(
    tmp_path: Path, consumed: list[tuple[int, int, int]], read: Any
) -> None:
    """Locally every update waits for its rollout, as with a learner ten times as fast as its sampler."""
    omnirl.run.train(impala(tmp_path / "run", samplers=1), local=True)
    assert [update for update, _, _ in consumed] == list(range(60))
    assert max(update - version for update, version, _ in consumed) <= 2
    assert {row["dropped"] for row in read.rows(tmp_path / "run")} == {"0"}


def test_k34_impala_drops_what_a_slow_sampler_brings_too_late(
    tmp_path: Path, consumed: list[tuple[int, int, int]], monkeypatch: pytest.MonkeyPatch, read: Any
) -> None:
    """It waits for nobody's sake, and what it is asked for next it collects with the newest weights."""
    transport = SlowSampler()
    monkeypatch.setattr(omnirl.run, "LocalTransport", lambda: transport)
    omnirl.run.train(impala(tmp_path / "run", samplers=3), local=True)
    assert {update for update, _, _ in consumed} == set(range(60))
    assert max(update - version for update, version, _ in consumed) <= 2
    log = read.rows(tmp_path / "run")
    last = log[-1]
    assert int(last["dropped"]) > 0
    assert int(last["env_steps"]) == int(last["stored_steps"]) + int(last["dropped"])
    assert max(int(row["lag_max"]) for row in log if row["lag_max"]) <= 2
    assert all(version == newest for version, newest in transport.acted)
    assert max(version for version, _ in transport.acted) >= 10
