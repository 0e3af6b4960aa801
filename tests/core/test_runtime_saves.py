"""The driver's side of a save: what comes before it, and how many may fail in a row."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from omnirl.api.errors import DiskError
from omnirl.runtime.saves import Saves, SaveSettings
from omnirl.runtime.saving import SaveOutcome, Snapshot

PATH = "run/checkpoint.ckpt"


class Run:
    """What a run's saves talk to; ``did`` is in order."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.told: list[tuple[Any, ...]] = []
        crew: Any = SimpleNamespace(samplers=[], plan=SimpleNamespace(num_learners=1), learners=self)
        meter = SimpleNamespace(saved=lambda: self.did.append("noted"), checkpoint_age=lambda: 5.0)
        best = SimpleNamespace(versions=(2,))
        counters = {"updates": 3, "env_steps": 12}
        state: Any = SimpleNamespace(counters=counters, state_dict=dict, best=best, meter=meter)
        settings = SaveSettings("run", 4.0, True, 5, 1, {"algorithm": "toy"}, {"algorithm": "toy"})
        observers: Any = self
        self.saves = Saves(settings, crew, state, observers, lambda slot, failure: None)

    def save(self, snapshot: Snapshot) -> tuple[SaveOutcome, ...]:
        self.did.append(f"saved {snapshot.version}")
        self.snapshot = snapshot
        return ()

    def flush(self) -> None:
        self.did.append("rows on the disk")

    def send(self, method: str, *args: Any) -> None:
        self.told.append((method, *args))


def test_the_rows_of_the_log_are_on_the_disk_before_the_checkpoint_that_is_behind_them() -> None:
    run = Run()
    assert run.saves.due
    run.saves.save(finished=True)
    assert run.did == ["rows on the disk", "saved 3", "noted"]
    assert run.snapshot.manifest == {
        "algorithm": "toy",
        "counters": {"updates": 3, "env_steps": 12},
        "memory": True,
        "learners": 1,
        "finished": True,
    }
    assert (run.snapshot.best, run.snapshot.keep_last, run.snapshot.save_memory) == ((2,), 5, True)


def test_three_failures_in_a_row_end_the_run_and_a_success_between_them_counts() -> None:
    run = Run()
    full, fine = SaveOutcome(1, PATH, "OSError: no space"), SaveOutcome(2, PATH)
    run.saves.ended([full, full, fine, full])
    run.saves.ended([full])
    failed = ("event", f"saving {PATH} failed: OSError: no space")
    assert run.told == [failed, failed, ("checkpoint_saved", 2, PATH), failed, failed]
    with pytest.raises(DiskError, match=f"{PATH} cannot be written: OSError: no space"):
        run.saves.ended([full])
