"""The event loop: the same run on every transport and in every order of events; versions, rows, faults, resume."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnirl.run
from omnirl.api import RunSummary
from omnirl.api.errors import (
    CheckpointError,
    ConfigError,
    NotFoundError,
    OutOfMemoryError,
    WorkersFailedError,
)
from omnirl.runtime import checkpoint, saving, setup
from omnirl.runtime import train as train_loop
from omnirl.runtime.learner import LearnerWorker
from omnirl.runtime.supervision import Slot
from omnirl.runtime.transport import (
    LocalRef,
    LocalTransport,
    LocalWorker,
    Ref,
    Worker,
    WorkerDiedError,
    WorkerOutOfMemoryError,
)


def settings(folder: Path, **changes: Any) -> dict[str, Any]:
    """A run of the toy algorithm; changes are dotted keys with __ for the dot."""
    config: dict[str, Any] = {
        "runner": {
            "ckpt_dir": str(folder),
            "max_updates": 12,
            "log_interval": 0,
            "num_samplers": 1,
            "num_envs_per_sampler": 3,
            "num_evaluators": 1,
            "num_episodes": 2,
        },
        "env": {"module": "omnirl.testing.environments", "id": "count", "length": 5},
        "agent": {"module": "omnirl.testing.algorithm"},
        "modules": {"memory": {}, "learner": {}},
    }
    for key, value in changes.items():
        *path, name = key.split("__")
        section = config
        for part in path:
            section = section[part]
        section[name] = value
    return config


REPLAY = {"modules__memory": {"kind": "replay", "warmup_steps": 50, "steps_per_update": 5}}


def train(config: dict[str, Any], **options: Any) -> RunSummary:
    return omnirl.run.train(config, local=True, **options)


class JitteryTransport(LocalTransport):
    """Runs calls when they are made but reports them late and in a random order, as a cluster would. Workers whose
    names are in ``dying`` die once, in their n-th call."""

    def __init__(self, seed: int, dying: dict[str, int] | None = None) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.dying = dict(dying or {})
        self.dead: list[Ref] = []

    def call(self, worker: Worker, method: str, *args: Any, returns: int = 1) -> tuple[LocalRef, ...]:
        if method in ("collect", "evaluate", "advance", "restore") and worker.name in self.dying:
            self.dying[worker.name] -= 1
            if self.dying[worker.name] == 0:
                del self.dying[worker.name]
                refs = tuple(LocalRef() for _ in range(returns))
                self.dead.extend(refs)
                return refs
        return super().call(worker, method, *args, returns=returns)

    def wait(self, refs: Sequence[Ref], timeout: float) -> list[Ref]:
        count = self.random.randint(1, len(refs))
        return self.random.sample(list(refs), count)

    def get(self, ref: Ref) -> Any:
        if any(ref is dead for dead in self.dead):
            raise WorkerDiedError("killed by the test")
        return super().get(ref)


def use_transport(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    monkeypatch.setattr(omnirl.run, "LocalTransport", make)


@pytest.mark.parametrize("changes", [{}, REPLAY], ids=["queue", "replay"])
@pytest.mark.parametrize("samplers", [1, 3])
def test_lock_step_runs_agree_in_every_bit_whatever_the_order_of_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], samplers: int, read: Any
) -> None:
    options = {"runner__num_samplers": samplers, "runner__eval_interval": 4, **changes}
    train(settings(tmp_path / "a", **options))
    for seed in (1, 2):
        use_transport(monkeypatch, lambda seed=seed: JitteryTransport(seed))
        folder = tmp_path / f"b{seed}"
        train(settings(folder, **options))
        assert read.comparable(folder) == read.comparable(tmp_path / "a")
        assert read.content(folder) == read.content(tmp_path / "a")


def test_k34_on_policy_learns_from_the_newest_version_only(tmp_path: Path, read: Any) -> None:
    """Updates consume versions 0, 1, 2, ...: the sampler stamps every row, the learner checks the stamps."""
    summary = train(settings(tmp_path / "a", runner__num_samplers=2, runner__max_updates=5))
    assert summary.updates == 5
    log = read.rows(tmp_path / "a")
    assert [row["oldest_version"] for row in log] == ["0.0", "1.0", "2.0", "3.0", "4.0"]
    assert {row["lag_max"] for row in log} == {"0"}
    assert {row["dropped"] for row in log} == {"0"}
    assert [row["env_steps"] for row in log] == [str(48 * n) for n in range(1, 6)]  # 2 samplers x 8 x 3


@pytest.mark.parametrize("samplers", [1, 3])
@pytest.mark.parametrize("lead", [1, 2, 4])
def test_k34_a_lead_bounds_the_lag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lead: int, samplers: int, read: Any
) -> None:
    """What overtaken rollouts are too old for is dropped and counted; one sampler is never overtaken."""
    use_transport(monkeypatch, lambda: JitteryTransport(lead))
    memory = {"max_lead": lead}
    train(
        settings(
            tmp_path / "a", runner__num_samplers=samplers, runner__max_updates=40, modules__memory=memory
        )
    )
    log = read.rows(tmp_path / "a")
    lags = [
        int(row["updates"]) - 1 - int(float(row["oldest_version"])) for row in log if row["oldest_version"]
    ]
    assert max(lags) <= lead
    assert max(lags) > 0
    last = log[-1]
    assert int(last["env_steps"]) == int(last["stored_steps"]) + int(last["dropped"])
    if samplers == 1:
        assert last["dropped"] == "0"


@pytest.mark.parametrize("lead", [0, 3])
def test_replay_keeps_its_ratio_of_updates_to_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lead: int, read: Any
) -> None:
    use_transport(monkeypatch, lambda: JitteryTransport(5))
    options = {**REPLAY, "runner__max_lead": lead, "runner__max_updates": 60, "runner__num_samplers": 2}
    train(settings(tmp_path / "a", **options))
    spu, rollout, base = 5, 24, 50
    log = read.rows(tmp_path / "a")
    for row in log:
        difference = int(row["stored_steps"]) - base - int(row["updates"]) * spu
        assert abs(difference) <= (1 + lead) * spu + rollout
    assert int(log[-1]["trained_steps"]) == 300


def test_evaluations_stand_in_their_versions_row_and_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Any
) -> None:
    use_transport(monkeypatch, lambda: JitteryTransport(3))
    options = {"runner__eval_interval": 5, "runner__num_evaluators": 2, "runner__max_updates": 12}
    summary = train(settings(tmp_path / "a", **options))
    log = read.rows(tmp_path / "a")
    assert [row["updates"] for row in log if row["eval_return_mean"]] == ["5", "10", "12"]
    assert [int(row["updates"]) for row in log] == list(range(1, 13))
    assert log[4]["eval_episodes"] == "4.0"
    lengths = {row["train_length"] for row in log if row["train_return"]}
    assert lengths == {"5.0"}  # of training episodes, wherever one ended
    assert all(bool(row["train_length"]) == bool(row["train_return"]) for row in log)
    assert summary.evaluation["return_mean"] == 5.0
    assert summary.evaluation["length_mean"] == 5.0


def test_a_log_by_seconds_still_has_a_row_for_each_evaluation_and_the_last_update(
    tmp_path: Path, read: Any
) -> None:
    train(settings(tmp_path / "a", runner__log_interval=1000, runner__eval_interval=5))
    assert [row["updates"] for row in read.rows(tmp_path / "a")] == ["5", "10", "12"]


@pytest.mark.parametrize("changes", [{}, REPLAY], ids=["queue", "replay"])
def test_a_resumed_run_equals_one_never_interrupted(
    tmp_path: Path, changes: dict[str, Any], read: Any
) -> None:
    # Observers see a row a moment after it was written: updates are slow enough for them to be in time.
    slow = {"modules__learner": {"sleep": 0.03}}
    options = {"runner__num_samplers": 2, "runner__eval_interval": 4, "env__length": 11, **slow, **changes}
    train(settings(tmp_path / "whole", runner__max_updates=20, **options))
    folder = tmp_path / "parts"

    class Interrupting:
        """Asks the run to stop as soon as it has passed a number of updates."""

        def __init__(self, after: int) -> None:
            self.after = after

        def metrics(self, row: dict[str, Any]) -> None:
            if row["updates"] >= self.after:
                os.kill(os.getpid(), signal.SIGTERM)
                self.after = 10**9

    statuses = []
    for after in (3, 9, 13, 10**9):
        summary = train(
            settings(folder, runner__max_updates=20, **options), observer_objects=[Interrupting(after)]
        )
        statuses.append(summary.status)
    assert statuses[0] == "interrupted"
    assert statuses[-1] == "finished"
    assert summary.exact
    assert read.comparable(folder) == read.comparable(tmp_path / "whole")
    assert read.content(folder) == read.content(tmp_path / "whole")


def test_saving_has_no_side_effect(tmp_path: Path, read: Any) -> None:
    train(settings(tmp_path / "a", **REPLAY))
    train(settings(tmp_path / "b", runner__save_interval=0, **REPLAY))
    assert read.comparable(tmp_path / "a") == read.comparable(tmp_path / "b")
    assert read.content(tmp_path / "a") == read.content(tmp_path / "b")


def test_a_dead_sampler_is_replaced_and_the_run_has_all_its_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Any
) -> None:
    use_transport(monkeypatch, lambda: JitteryTransport(1, {"sampler 1": 3, "evaluator 0": 2}))
    options = {"runner__num_samplers": 2, "runner__eval_interval": 4}
    summary = train(settings(tmp_path / "a", **options))
    assert (summary.updates, summary.restarts, summary.exact) == (12, 2, False)
    log = read.rows(tmp_path / "a")
    assert [int(row["updates"]) for row in log] == list(range(1, 13))
    assert [row["updates"] for row in log if row["eval_return_mean"]] == ["4", "8", "12"]
    _, tree = checkpoint.read(tmp_path / "a" / checkpoint.CURRENT)
    assert tree["driver"]["incarnations"] == {"0": 0, "1": 1}


@pytest.mark.parametrize("save_interval", [0, 1000], ids=["from a checkpoint", "from the start"])
def test_after_the_learner_died_the_run_goes_on_from_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save_interval: float, read: Any
) -> None:
    use_transport(monkeypatch, lambda: JitteryTransport(4, {"learner": 8}))
    folder = tmp_path / "a"
    summary = train(settings(folder, runner__eval_interval=2, runner__save_interval=save_interval))
    assert (summary.updates, summary.restarts, summary.exact) == (12, 1, False)
    log = read.rows(folder)
    assert [int(row["updates"]) for row in log] == list(range(1, 13))
    assert [row["updates"] for row in log if row["eval_return_mean"]] == ["2", "4", "6", "8", "10", "12"]
    assert read.content(folder)["/learner/version"] == 12


@pytest.mark.parametrize("save_interval", [0, 1000], ids=["from a checkpoint", "from the start"])
def test_the_clock_and_the_rates_of_a_run_whose_learner_died_are_those_of_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save_interval: float, read: Any
) -> None:
    took: list[float] = []

    class Timed(omnirl.run.TrainLoop):
        def run(self) -> RunSummary:
            began = time.perf_counter()
            summary = super().run()
            took.append(time.perf_counter() - began)
            return summary

    monkeypatch.setattr(omnirl.run, "TrainLoop", Timed)
    use_transport(monkeypatch, lambda: JitteryTransport(4, {"learner": 8}))
    slow = {"modules__learner": {"sleep": 0.03}}
    summary = train(settings(tmp_path / "a", runner__save_interval=save_interval, **slow))
    assert 0.36 < summary.seconds <= took[0]  # 12 updates stand at the end
    log = read.rows(tmp_path / "a")
    walls = [float(row["wall_time"]) for row in log]
    assert walls == sorted(walls)
    assert min(float(row["steps_per_s"]) for row in log) >= 0
    assert min(float(row["updates_per_s"]) for row in log) > 0
    assert max(float(row["updates_per_s"]) for row in log) < 1 / 0.03


def test_a_learner_that_died_is_not_followed_by_a_newer_checkpoint_than_the_drivers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Any
) -> None:
    """What the dying one still writes in the background is either what all go on from, or nothing of it is."""
    writing = saving.write

    def slowly(*args: Any) -> None:
        time.sleep(0.1)
        writing(*args)

    monkeypatch.setattr(saving, "write", slowly)
    use_transport(monkeypatch, lambda: JitteryTransport(4, {"learner": 9}))
    folder = tmp_path / "a"
    summary = train(settings(folder, runner__save_interval=0))
    assert (summary.updates, summary.restarts) == (12, 1)
    assert read.content(folder)["/learner/version"] == 12


def test_a_learner_refuses_a_checkpoint_that_was_replaced_since_the_driver_read_it(tmp_path: Path) -> None:
    """By a learner of a killed run that has not noticed yet."""
    train(settings(tmp_path / "a"))
    config = omnirl.run.configure(settings(tmp_path / "a"))
    plan, _ = setup.plan_of(setup.decide(config), setup.env_spec_of(config))
    learner = LearnerWorker(plan, 0)
    learner.start(None)
    path = str(tmp_path / "a" / checkpoint.CURRENT)
    with pytest.raises(CheckpointError, match=r"by one of update 12, not 7\): another process of this run"):
        learner.restore(path, 7)
    learner.restore(path, 12)
    assert learner.updates == 12


@pytest.mark.parametrize(
    ("at", "expected"),
    [(20, [""] * 10 + ["5.0"]), (90, [""] * 11)],
    ids=["a rollout in the middle", "the last rollout"],
)
def test_a_run_that_ends_short_of_its_updates_is_evaluated_at_its_end(
    tmp_path: Path, at: int, expected: list[str], read: Any
) -> None:
    """Of the 12 rollouts that the steps allow one is refused. The row of the last update is written before it is known
    that a refused rollout was the last one."""
    env = {"module": "omnirl.testing.environments", "id": "bad", "mode": "nan_reward", "at": at, "times": 1}
    env["length"] = 5
    limits = {"runner__max_updates": None, "runner__max_steps": 12 * 8}
    config = settings(tmp_path / "a", env=env, runner__num_envs_per_sampler=1, **limits)
    summary = train(config)
    assert (summary.updates, summary.env_steps, summary.stored_steps) == (11, 96, 88)
    assert [row["eval_return_mean"] for row in read.rows(tmp_path / "a")] == expected
    assert summary.evaluation["return_mean"] == 5.0


@pytest.mark.parametrize(("lead", "exact"), [(0, True), (3, False)])
def test_only_lock_step_is_called_exact(tmp_path: Path, lead: int, exact: bool) -> None:
    assert train(settings(tmp_path / "a", **REPLAY, runner__max_lead=lead)).exact is exact


class SlowEvaluations(JitteryTransport):
    """Answers the evaluations whose numbers, from 1, are in ``slow`` only when everything else has been, or never."""

    def __init__(self, slow: Sequence[int]) -> None:
        super().__init__(1)
        self.slow, self.count = slow, 0
        self.late: list[Ref] = []

    def call(self, worker: Worker, method: str, *args: Any, returns: int = 1) -> tuple[LocalRef, ...]:
        refs = super().call(worker, method, *args, returns=returns)
        if method == "evaluate":
            self.count += 1
            if self.count in self.slow:
                self.late.extend(refs)
        return refs

    def wait(self, refs: Sequence[Ref], timeout: float) -> list[Ref]:
        ready = [ref for ref in refs if not any(ref is late for late in self.late)]
        if not ready:
            time.sleep(0.01)
        return ready


def test_rows_that_wait_for_an_evaluation_survive_the_death_of_the_learner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Any
) -> None:
    """Without lock-step a save waits for no evaluation: that of update 4 is lost with the learner, its row is not."""

    class Dying(SlowEvaluations):
        saved = False

        def call(self, worker: Worker, method: str, *args: Any, returns: int = 1) -> tuple[LocalRef, ...]:
            refs = super().call(worker, method, *args, returns=returns)
            if method == "save" and args[0].version == 7 and not self.saved:
                self.saved, self.dying = True, {"learner": 1}
            return refs

    use_transport(monkeypatch, lambda: Dying([1]))
    options = {**REPLAY, "runner__max_lead": 1, "runner__eval_interval": 4, "runner__save_interval": 0}
    folder = tmp_path / "a"
    summary = train(settings(folder, **options))
    assert (summary.updates, summary.restarts) == (12, 1)
    log = read.rows(folder)
    assert [int(row["updates"]) for row in log] == list(range(1, 13))
    assert [row["updates"] for row in log if row["eval_return_mean"]] == ["8", "12"]


@pytest.mark.parametrize("killed", [False, True], ids=["before the row was sent", "after"])
def test_rows_that_wait_for_an_evaluation_are_part_of_a_checkpoint(
    tmp_path: Path, killed: bool, read: Any
) -> None:
    """A killed run may have written them already, with their figures: those stay."""
    folder = tmp_path / "a"
    options = {**REPLAY, "runner__max_lead": 1, "runner__eval_interval": 4}
    train(settings(folder, **options))
    rows = read.rows(folder)
    path = folder / checkpoint.CURRENT
    manifest, tree = checkpoint.read(path)
    evaluated, last = ({**row, "updates": int(row["updates"])} for row in (rows[7], rows[11]))
    assert evaluated["eval_return_mean"] == "5.0"
    waiting = [
        {name: value for name, value in row.items() if not name.startswith("eval_")}
        for row in (evaluated, last)
    ]
    tree["driver"]["logbook"].update(waiting=waiting, pending=[8, 12])
    checkpoint.write(path, {**manifest, "finished": False}, tree)
    if not killed:
        log = folder / "log.csv"
        log.write_text("\n".join(log.read_text().splitlines()[:8]) + "\n")
    told: list[str] = []

    class Told:
        def event(self, text: str) -> None:
            told.append(text)

    summary = train(settings(folder, **options), observer_objects=[Told()])
    assert (summary.status, summary.evaluation["return_mean"]) == ("finished", 5.0)
    assert told == []
    found = [row["eval_return_mean"] for row in read.rows(folder) if row["updates"] in ("8", "12")]
    assert found == (["5.0", "5.0"] if killed else ["", "5.0"])


@pytest.mark.parametrize("stopped_at", [12, 9], ids=["the last update", "an update of the middle"])
def test_a_run_that_is_asked_to_stop_does_not_wait_for_a_long_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped_at: int, read: Any
) -> None:
    """The newest version's is played when the run goes on, so that the whole is the run that was not interrupted."""
    monkeypatch.setattr(train_loop, "_PATIENCE_SECONDS", 0.1)
    options = {"runner__eval_interval": 3, "modules__learner": {"sleep": 0.02}}
    train(settings(tmp_path / "whole", **options))
    number = {9: 3, 12: 4}[stopped_at]  # of the evaluations of updates 3, 6, 9, 12

    class Stopping(SlowEvaluations):
        def wait(self, refs: Sequence[Ref], timeout: float) -> list[Ref]:
            if self.count == number:
                signal.raise_signal(signal.SIGINT)
                self.count += 1
            return super().wait(refs, timeout)

    use_transport(monkeypatch, lambda: Stopping([number]))
    folder = tmp_path / "parts"
    summary = train(settings(folder, **options))
    assert (summary.status, summary.message, summary.updates) == ("interrupted", "SIGINT", stopped_at)
    assert summary.exact
    use_transport(monkeypatch, LocalTransport)
    summary = train(settings(folder, **options))
    assert (summary.status, summary.exact) == ("finished", True)
    assert read.comparable(folder) == read.comparable(tmp_path / "whole")
    assert read.content(folder) == read.content(tmp_path / "whole")


def test_a_learner_that_keeps_dying_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Deadly(JitteryTransport):
        def call(self, worker: Worker, method: str, *args: Any, returns: int = 1) -> tuple[LocalRef, ...]:
            self.dying = {"learner": 1}
            return super().call(worker, method, *args, returns=returns)

    use_transport(monkeypatch, lambda: Deadly(4))
    with pytest.raises(
        WorkersFailedError, match="the learner's process died 4 times in a row, the limit is 3"
    ):
        train(settings(tmp_path / "a"))


class ShortOfMemory(JitteryTransport):
    """The worker ``victim`` is killed for memory whenever it has worked twice, ``times`` times in all."""

    def __init__(self, victim: str, times: int) -> None:
        super().__init__(1, {victim: 2})
        self.victim, self.times = victim, times

    def spawn(self, name: str, factory: str, *args: Any, gpus: int = 0) -> LocalWorker:
        if name == self.victim and self.dead and self.times > 1:
            self.times -= 1
            self.dying = {name: 2}
        return super().spawn(name, factory, *args, gpus=gpus)

    def get(self, ref: Ref) -> Any:
        try:
            return super().get(ref)
        except WorkerDiedError as death:
            raise WorkerOutOfMemoryError("low on memory: 30GB used / 31GB limit") from death


@pytest.mark.parametrize("victim", ["sampler 0", "evaluator 0", "learner"])
def test_a_worker_that_is_killed_for_memory_is_replaced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    options = {"runner__eval_interval": 2, "runner__num_samplers": 2, "runner__save_interval": 0}
    use_transport(monkeypatch, lambda: ShortOfMemory(victim, 1))
    summary = train(settings(tmp_path / "once", **options))
    assert (summary.status, summary.updates, summary.restarts) == ("finished", 12, 1)
    use_transport(monkeypatch, lambda: ShortOfMemory(victim, 2))
    with pytest.raises(OutOfMemoryError) as caught:
        train(settings(tmp_path / "twice", **options))
    assert caught.value.exit_code == 24
    name = "the learner's process" if victim == "learner" else victim
    (line,) = caught.value.lines
    assert line.startswith(
        f"{name} died twice: low on memory: 30GB used / 31GB limit; lower modules.memory.capacity"
    )


@pytest.mark.parametrize("victim", ["learner", "sampler 0"])
def test_a_worker_that_dies_while_a_run_is_resumed_ends_it_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    train(settings(tmp_path / "a"))
    use_transport(monkeypatch, lambda: JitteryTransport(1, {victim: 1}))
    name = "the learner" if victim == "learner" else victim
    with pytest.raises(WorkersFailedError) as caught:
        train(settings(tmp_path / "a", runner__max_updates=15), resume="must")
    assert caught.value.lines == (f"{name} could not start: its process died: killed by the test",)


def test_an_environment_that_raises_is_rebuilt_and_what_it_was_asked_for_is_asked_again(
    tmp_path: Path,
) -> None:
    env = {"module": "omnirl.testing.environments", "id": "bad", "mode": "raise", "at": 200}
    summary = train(settings(tmp_path / "a", env=env, runner__max_updates=30))
    assert summary.updates == 30
    assert summary.restarts >= 1


def test_an_environment_that_always_raises_ends_the_run_with_its_traceback(tmp_path: Path) -> None:
    env = {"module": "omnirl.testing.environments", "id": "bad", "mode": "raise", "at": 1}
    config = settings(tmp_path / "a", env=env, runner__num_evaluators=0)
    with pytest.raises(WorkersFailedError) as caught:
        train(config)
    assert caught.value.exit_code == 20
    assert "sampler 0 (bad, seed 0) failed 11 times in a row, the limit is 10" in caught.value.lines[0]
    assert any("Traceback" in line for line in caught.value.lines)


def test_a_pause_that_ends_between_two_looks_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker rests at one look and no longer at the next."""
    resting = iter([True, False] * 1000)

    def look(slot: Slot) -> bool:
        return slot.failures > 1 and next(resting)

    monkeypatch.setattr(Slot, "resting", property(look))
    env = {"module": "omnirl.testing.environments", "id": "bad", "mode": "raise", "at": 1}
    with pytest.raises(WorkersFailedError, match="failed 11 times in a row"):
        train(settings(tmp_path / "a", env=env, runner__num_evaluators=0))


def test_the_same_command_again_leaves_a_finished_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = settings(tmp_path)
    del config["runner"]["ckpt_dir"]
    folders = [train(config).run_dir for _ in range(2)]
    assert folders == ["runs/toy-count-seed0", "runs/toy-count-seed0-2"]
    config["runner"]["max_updates"] = 13
    assert train(config).run_dir == "runs/toy-count-seed0-3"
    with pytest.raises(NotFoundError):
        train(config, resume="must")


def test_a_named_folder_that_holds_another_run_is_refused(tmp_path: Path) -> None:
    train(settings(tmp_path / "a"))
    with pytest.raises(ConfigError, match="holds this run, finished"):
        train(settings(tmp_path / "a"))
    with pytest.raises(ConfigError, match="holds another run"):
        train(settings(tmp_path / "a", runner__max_updates=99))
    before = sorted(path.name for path in (tmp_path / "a").iterdir())
    with pytest.raises(ConfigError, match="cannot be made"):
        train(settings(tmp_path / "a" / "log.csv" / "x"))
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == before


def test_run_config_repeats_the_run(tmp_path: Path, read: Any) -> None:
    train(settings(tmp_path / "a", **REPLAY))
    summary = omnirl.run.train(
        str(tmp_path / "a" / "run_config.yaml"), overrides=[f"runner.ckpt_dir={tmp_path / 'b'}"], local=True
    )
    assert summary.updates == 12
    assert read.comparable(tmp_path / "a") == read.comparable(tmp_path / "b")


def test_resume_must_goes_on_beyond_the_first_target(tmp_path: Path, read: Any) -> None:
    train(settings(tmp_path / "a", modules__learner={"lr": 0.5}))
    summary = omnirl.run.train(
        str(tmp_path / "a" / "run_config.yaml"),
        overrides=["runner.max_updates=15"],
        local=True,
        resume="must",
    )
    assert (summary.updates, summary.run_dir) == (15, str(tmp_path / "a"))
    assert [int(row["updates"]) for row in read.rows(tmp_path / "a")] == list(range(1, 16))


def test_an_agent_is_evaluated_by_several_evaluators(tmp_path: Path) -> None:
    train(settings(tmp_path / "a"))
    config = omnirl.run.configure(settings(tmp_path / "a", runner__num_evaluators=3, runner__num_episodes=4))
    result = omnirl.run.evaluate(config, model="agent_12", local=True)
    assert (result.model, result.episodes, len(result.per_evaluator)) == ("agent_12", 12, 3)
    assert result.metrics["return_mean"] == 5.0
    assert omnirl.run.evaluate(str(tmp_path / "a"), episodes=7, local=True).episodes == 7
    with pytest.raises(NotFoundError, match=r"no model 'agent_99'; there are: agent_12"):
        omnirl.run.evaluate(config, model="agent_99", local=True)


def test_a_loaded_policy_acts(tmp_path: Path) -> None:
    train(settings(tmp_path / "a"))
    policy = omnirl.run.load_policy(tmp_path / "a")
    action = policy.choose_action(np.zeros((1, 1), np.float32))
    assert action.shape == (1,)
    assert policy.meta["updates"] == 12


def test_the_driver_of_a_resumed_run_holds_no_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be gigabytes, for as long as the run goes on; the learner reads it for itself."""
    train(settings(tmp_path / "a", **REPLAY))
    held: list[set[str]] = []

    class Noting(omnirl.run.TrainLoop):
        def run(self) -> RunSummary:
            assert self.resumed is not None
            held.append(set(self.resumed.tree))
            return super().run()

    monkeypatch.setattr(omnirl.run, "TrainLoop", Noting)
    config = settings(tmp_path / "a", **REPLAY, runner__max_updates=15)
    assert train(config, resume="must").updates == 15
    assert held == [{"driver", "samplers"}]


def test_a_checkpoint_of_other_spaces_is_refused(tmp_path: Path) -> None:
    train(settings(tmp_path / "a"))
    path = tmp_path / "a" / "run_config.yaml"
    overrides = ["env.id=chain5", "env.length=", "runner.max_updates=20"]
    with pytest.raises(Exception, match="observation space saved") as caught:
        omnirl.run.train(str(path), overrides=overrides, local=True, resume="must")
    assert caught.value.exit_code == 5  # type: ignore[attr-defined]


@pytest.mark.parametrize(("steps_per_update", "least"), [(5, 72), (30, 96)])
def test_too_few_steps_for_an_update_is_said(tmp_path: Path, steps_per_update: int, least: int) -> None:
    """Warm-up and an update take 55 and 80 steps, and rollouts are of 8 x 3."""
    memory = {**REPLAY["modules__memory"], "steps_per_update": steps_per_update}
    options = {"modules__memory": memory, "runner__max_updates": None}
    text = rf"runner\.max_steps: {least - 1} steps allow no update; at least {least} are"
    with pytest.raises(ConfigError, match=text):
        train(settings(tmp_path / "a", **options, runner__max_steps=least - 1))
    assert train(settings(tmp_path / "b", **options, runner__max_steps=least)).updates >= 1
