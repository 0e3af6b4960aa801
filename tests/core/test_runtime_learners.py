"""Several learners, as threads that wait for one another: who gets which rollouts, saves, deaths, other numbers."""

from __future__ import annotations

import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnirl.run
from omnirl.api import RunSummary
from omnirl.api.errors import ClusterError, ConfigError, WorkersFailedError
from omnirl.config import hardware
from omnirl.runtime import checkpoint, setup
from omnirl.runtime.learner import AdvanceReport, LearnerWorker
from omnirl.runtime.learners import Learners
from omnirl.runtime.transport import LocalRef, LocalTransport, Worker

REPLAY = {"kind": "replay", "warmup_steps": 60, "steps_per_update": 8}


@dataclass
class Team:
    """Trains ``acme_team`` on threads. events: what its ranks were asked for; told: the lines of the run."""

    modules: Any
    threads: Any
    made: list[Any]
    told: list[str]
    monkeypatch: pytest.MonkeyPatch

    @property
    def events(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self.modules.EVENTS
        return found

    def config(self, folder: Path, learners: int = 2, **runner: Any) -> dict[str, Any]:
        memory, learner = runner.pop("memory", {}), runner.pop("learner", {})
        return {
            "runner": {
                "ckpt_dir": str(folder),
                "num_learners": learners,
                "num_samplers": 3,
                "num_envs_per_sampler": 2,
                "num_evaluators": 1,
                "num_episodes": 2,
                "log_interval": 0,
                "max_updates": 12,
                **runner,
            },
            "env": {"module": "omnirl.testing.environments", "id": "count", "length": 11},
            "agent": {"module": "acme_team.algorithm"},
            "modules": {"memory": memory, "learner": learner},
        }

    def train(
        self, config: dict[str, Any], transport: Callable[[], Any] | None = None, **options: Any
    ) -> RunSummary:
        """``transport`` makes one that is not the usual one."""

        @contextmanager
        def here(*_: Any) -> Iterator[Any]:
            self.made.append((transport or self.threads.ThreadTransport)())
            yield self.made[-1]
            self.made[-1].close()

        self.monkeypatch.setattr(omnirl.run, "_transport", here)
        self.events.clear()
        watching = options.pop("observer_objects", [])
        return omnirl.run.train(config, observer_objects=[self, *watching], **options)

    def before_building(self, happens: Callable[[Any], None]) -> None:
        """Call ``happens`` with a rank's context before its learner is built."""
        learner = self.modules.TeamLearner
        original = learner.__init__

        def build(built: Any, config: Any, spec: Any, context: Any) -> None:
            happens(context)
            original(built, config, spec, context)

        self.monkeypatch.setattr(learner, "__init__", build)

    def event(self, text: str) -> None:
        self.told.append(text)

    def run_started(self, run: Any) -> None:
        self.told.extend(run.notices)


@pytest.fixture
def team(fakes: Any, monkeypatch: pytest.MonkeyPatch) -> Team:
    modules = (importlib.import_module(name) for name in ("acme_team.algorithm", "acme_team.threads"))
    return Team(*modules, [], [], monkeypatch)


class Interrupting:
    """Asks the run to stop as soon as it has passed a number of updates."""

    def __init__(self, after: int) -> None:
        self.after = after

    def metrics(self, row: dict[str, Any]) -> None:
        if row["updates"] >= self.after:
            self.after = 10**9
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("memory", [{}, REPLAY], ids=["queue", "replay"])
def test_every_rank_learns_at_every_update_from_its_own_samplers(
    tmp_path: Path, team: Team, memory: dict[str, Any], read: Any
) -> None:
    summary = team.train(team.config(tmp_path / "a", memory=memory))
    assert (summary.updates, summary.exact, summary.restarts) == (12, True, 0)
    assert {event[2] for event in team.events if event[:2] == ("observe", 0)} == {0, 2}
    assert {event[2] for event in team.events if event[:2] == ("observe", 1)} == {1}
    for rank in (0, 1):
        assert [event[2] for event in team.events if event[:2] == ("learn", rank)] == list(range(12))
        assert [event[2] for event in team.events if event[:2] == ("metrics", rank)] == list(range(1, 13))
    built = [event for event in team.events if event[0] == "built"]
    assert sorted(event[1:3] for event in built) == [(0, 2), (1, 2)]
    (rendezvous,) = {event[3] for event in built}
    host, _, port = rendezvous.partition(":")
    assert (host, int(port) > 1023) == ("127.0.0.1", True)
    assert [row["weight_mean"] for row in read.rows(tmp_path / "a")] == ["0.0"] * 12  # the rank that tells


def test_the_ranks_hold_the_same_weights_and_a_checkpoint_holds_them_once(
    tmp_path: Path, team: Team, read: Any
) -> None:
    team.train(team.config(tmp_path / "a", learners=3))
    content = read.content(tmp_path / "a")
    for rank in ("1", "2"):
        for name in ("weight", "momentum", "version"):
            assert content[f"/ranks/{rank}/learner/{name}"] == content[f"/learner/{name}"]
    encoded = checkpoint.read(tmp_path / "a" / checkpoint.CURRENT, keep_places)[1]
    assert encoded["ranks"]["1"]["learner"]["weight"] == encoded["learner"]["weight"]


def keep_places(tree: dict[str, Any]) -> dict[str, Any]:
    """The tree with the places of its arrays, not their content."""
    if isinstance(tree, dict):
        return {key.replace("__array__", "place"): keep_places(value) for key, value in tree.items()}
    return tree


def test_one_learner_gives_what_several_give(tmp_path: Path, team: Team, read: Any) -> None:
    """The queue's update is the mean over the rollouts of all samplers, whoever holds them."""
    weights = []
    for learners in (1, 2, 3):
        team.train(team.config(tmp_path / str(learners), learners=learners))
        _, tree = checkpoint.read(tmp_path / str(learners) / checkpoint.CURRENT)
        weights.append(tree["learner"]["weight"])
    assert "ranks" not in checkpoint.read(tmp_path / "1" / checkpoint.CURRENT)[1]
    np.testing.assert_allclose(weights[1], weights[0], rtol=1e-12)
    np.testing.assert_allclose(weights[2], weights[0], rtol=1e-12)


@pytest.mark.parametrize("memory", [{}, REPLAY], ids=["queue", "replay"])
def test_a_resumed_run_equals_one_never_interrupted(
    tmp_path: Path, team: Team, memory: dict[str, Any], read: Any
) -> None:
    options: dict[str, Any] = {"memory": memory, "learner": {"sleep": 0.02}, "eval_interval": 4}
    team.train(team.config(tmp_path / "whole", **options))
    parts = tmp_path / "parts"
    statuses = []
    for after in (3, 7, 10**9):
        summary = team.train(
            team.config(parts, **options),
            lambda seed=after: team.threads.ThreadTransport(seed),
            observer_objects=[Interrupting(after)],
        )
        statuses.append(summary.status)
    assert statuses == ["interrupted", "interrupted", "finished"]
    assert summary.exact
    assert read.comparable(parts) == read.comparable(tmp_path / "whole")
    whole = read.content(tmp_path / "whole")
    assert read.content(parts) == whole
    assert any(key.startswith("/ranks/1/memory/") for key in whole) == bool(memory)


@pytest.mark.parametrize("notice", ["at once", "never"])
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("save_interval", [0, 1000], ids=["from a checkpoint", "from the start"])
def test_the_death_of_a_rank_ends_all_and_the_run_goes_on_from_the_last_checkpoint(
    tmp_path: Path, team: Team, notice: str, rank: int, save_interval: float, read: Any
) -> None:
    """Whether the other rank raises, its connection being gone, or waits in the middle of an update for ever."""
    summary = team.train(
        team.config(tmp_path / "a", save_interval=save_interval, eval_interval=3),
        lambda: team.threads.ThreadTransport(5, {f"learner {rank}": 8}, notice),
    )
    assert (summary.updates, summary.restarts, summary.exact) == (12, 2, False)
    assert team.made[-1].killed[:2] == ["learner 0", "learner 1"]
    rows = read.rows(tmp_path / "a")
    assert [int(row["updates"]) for row in rows] == list(range(1, 13))
    assert [row["updates"] for row in rows if row["eval_return_mean"]] == ["3", "6", "9", "12"]
    (line,) = [text for text in team.told if "died" in text]
    assert line.startswith(f"the learner's process died (learner {rank}: killed by the test); going on from")


def test_a_rank_that_raises_ends_the_run_though_another_waits_for_it(
    tmp_path: Path, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learn(self: Any, batch: Any, clock: Any) -> Any:
        if self.rank == 1 and clock.update == 4:
            raise ZeroDivisionError("a bug of rank 1")
        return original(self, batch, clock)

    original = team.modules.TeamLearner.learn
    monkeypatch.setattr(team.modules.TeamLearner, "learn", learn)
    with pytest.raises(
        WorkersFailedError, match=r"^the learner 1 failed: ZeroDivisionError: a bug of rank 1\nTraceback"
    ):
        team.train(team.config(tmp_path / "a"))


def test_a_rank_that_cannot_be_built_is_told_though_another_waits_for_it(tmp_path: Path, team: Team) -> None:
    def refuse(context: Any) -> None:
        if context.rank == 1:
            raise ConfigError("modules.learner: not on this machine")

    team.before_building(refuse)
    with pytest.raises(ConfigError, match="not on this machine"):
        team.train(team.config(tmp_path / "a"))


def test_the_reason_counts_and_not_that_another_rank_noticed(tmp_path: Path, team: Team) -> None:
    """Rank 0 is told first, its connection being gone, that it has lost rank 1, which only then says why."""

    def leave_and_refuse(context: Any) -> None:
        if context.rank == 1:
            team.modules.Table.at(context.rendezvous, context.world_size).barrier.abort()
            threading.Event().wait(0.5)
            raise ConfigError("modules.learner: not on this machine")

    team.before_building(leave_and_refuse)
    with pytest.raises(ConfigError, match="not on this machine"):
        team.train(team.config(tmp_path / "a"))


@pytest.mark.parametrize("times", [1, 2])
def test_a_port_that_was_taken_in_between_is_tried_again_once(tmp_path: Path, team: Team, times: int) -> None:
    taken: list[str] = []

    def find_it_taken(context: Any) -> None:
        if context.rank == 0 and len(taken) < times:
            taken.append(context.rendezvous)
            raise OSError(98, "Address already in use")

    team.before_building(find_it_taken)
    if times == 2:
        with pytest.raises(WorkersFailedError, match="learner 0 could not start: OSError"):
            team.train(team.config(tmp_path / "a"))
        return
    assert team.train(team.config(tmp_path / "a")).updates == 12
    assert {event[3] for event in team.events if event[:2] == ("built", 0)}.isdisjoint(taken)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3)])
@pytest.mark.parametrize("memory", [{}, REPLAY], ids=["queue", "replay"])
def test_another_number_of_learners_goes_on_with_the_weights_and_empty_memories(
    tmp_path: Path, team: Team, before: int, after: int, memory: dict[str, Any], read: Any
) -> None:
    folder = tmp_path / "a"
    team.train(team.config(folder, learners=before, memory=memory))
    stored = int(read.rows(folder)[-1]["stored_steps"])
    weight = checkpoint.read(folder / checkpoint.CURRENT)[1]["learner"]["weight"]
    config = team.config(folder, learners=after, memory=memory, max_updates=13, learner={"lr": 0.0})
    summary = team.train(config, resume="must")
    assert (summary.updates, summary.exact) == (13, False)
    assert [event[2] for event in team.events if event[:2] == ("learn", after - 1)] == [12]
    tree = checkpoint.read(folder / checkpoint.CURRENT)[1]
    np.testing.assert_array_equal(tree["learner"]["weight"], weight)
    assert len(tree.get("ranks", {})) == after - 1
    used = int(read.rows(folder)[-1]["stored_steps"]) - stored
    assert used == (80 if memory else 48)  # 60 + 8 steps in rollouts of 16; one of each sampler
    learners = "1 learner" if before == 1 else f"{before} learners"
    (line,) = [text for text in team.told if "the checkpoint is of" in text]
    anew = "; 60 steps of warm-up are collected anew" if memory else ""
    assert line == (
        f"the checkpoint is of {learners}, now there are {after}: the weights and the optimizer go on, "
        f"what was collected for the next updates is left out{anew}"
    )


def test_a_call_is_as_long_for_every_rank_and_follows_the_measured_time(team: Team) -> None:
    orders: list[Any] = []

    class Noting(LocalTransport):
        def call(self, worker: Worker, method: str, *args: Any, returns: int = 1) -> tuple[LocalRef, ...]:
            orders.append((worker.name, args[0]))
            return tuple(LocalRef() for _ in range(returns))

    def ordered(learners: Learners, updates: int) -> list[tuple[str, int, float]]:
        orders.clear()
        learners.advance([], updates=updates, env_steps=0, row_due=False, row_at=100)
        return [(name, order.updates, order.seconds) for name, order in orders]

    def took(made: int, *seconds: float) -> AdvanceReport:
        reports = [AdvanceReport(made, made, each, None, i, ()) for i, each in enumerate(seconds)]
        return learners.together(reports)

    learners = Learners(Noting(), plan_of(team, 2))
    forever = float("inf")
    assert ordered(learners, 40) == [("learner 0", 1, forever), ("learner 1", 1, forever)]
    assert took(1, 0.001, 0.002).nonfinite_in_row == 1  # the most of all ranks
    assert ordered(learners, 40)[1] == ("learner 1", 2, forever)  # no more than twice as many as before
    for _ in range(5):
        took(2, 0.01, 0.02)
    assert ordered(learners, 40)[0] == ("learner 0", 15, forever)  # 0.15 s of 0.01 s each
    assert ordered(learners, 4)[0][1] == 4
    took(15, 3.0, 3.0)
    assert ordered(learners, 40)[0][1] == 1
    took(0, 0.5, 0.5)  # a call without updates says nothing
    assert ordered(learners, 40)[0][1] == 1
    alone = Learners(Noting(), plan_of(team, 1))
    assert ordered(alone, 40) == [("learner", 40, 0.15)]


def plan_of(team: Team, learners: int, **runner: Any) -> Any:
    config = omnirl.run.configure(team.config(Path("unused"), learners=learners, **runner))
    config = setup.decide(config)
    return setup.plan_of(config, setup.env_spec_of(config))[0]


def test_a_free_port_can_be_listened_at(team: Team) -> None:
    worker = LearnerWorker(plan_of(team, 2), 0)
    ports = {worker.free_port("127.0.0.1") for _ in range(3)}
    assert all(1023 < port < 65536 for port in ports)


@pytest.mark.parametrize(
    ("cores", "learners", "samplers", "threads"), [(8, 1, 7, 1), (8, 2, 6, 1), (2, 2, 2, 1), (1, 3, 3, 1)]
)
def test_auto_counts_the_learners(
    team: Team, monkeypatch: pytest.MonkeyPatch, cores: int, learners: int, samplers: int, threads: int
) -> None:
    monkeypatch.setattr(hardware, "cores", lambda: cores)
    plan = plan_of(team, learners, num_samplers="auto")
    assert (plan.num_learners, plan.num_samplers, plan.threads) == (learners, samplers, threads)
    assert plan_of(team, learners, num_samplers=3).threads == max(1, (cores - 3) // learners)


def test_one_process_refuses_several_learners(tmp_path: Path, team: Team) -> None:
    with pytest.raises(ConfigError) as caught:
        team.train(team.config(tmp_path / "a"), local=True)
    assert caught.value.lines == (
        "settings from Python runner.num_learners: 2 learners need processes of their own: leave --local out, or "
        "set it to 1",
    )
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["train", "dry run"])
def test_the_command_refuses_several_learners_in_one_process_in_one_line(
    team: Team, refusal: Callable[..., list[str]], more: tuple[str, ...]
) -> None:
    env = ("env.module=omnirl.testing.environments", "env.id=count")
    command = ("train", "agent.module=acme_team.algorithm", *env, "--updates", "3", "--samplers", "2")
    assert refusal((*command, "runner.num_learners=2", "--local", *more), 2) == [
        "override runner.num_learners: 2 learners need processes of their own: leave --local out, or set it to 1"
    ]


def test_no_thread_is_left(tmp_path: Path, team: Team) -> None:
    before = threading.active_count()
    team.train(
        team.config(tmp_path / "a"), lambda: team.threads.ThreadTransport(1, {"learner 1": 3}, "never")
    )
    for _ in range(100):
        if threading.active_count() <= before:
            break
        threading.Event().wait(0.02)
    assert threading.active_count() <= before


def test_a_cluster_must_have_a_cpu_for_each_learner_and_a_gpu_where_they_use_one(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs: list[Any] = []

    def connected(address: str, needed: Any, **_: Any) -> Any:
        needs.append(needed)
        raise ClusterError("enough")

    monkeypatch.setattr("omnirl.runtime.cluster.connected", connected)
    config = setup.decide(omnirl.run.configure(team.config(Path("unused"), learners=3)))
    plan = plan_of(team, 3)
    for wanted, folder in ((plan, Path("a")), (replace(plan, device="cuda"), Path("a")), (plan, None)):
        with pytest.raises(ClusterError), omnirl.run._transport(config, wanted, False, folder):
            pass
    assert [(need.cpus, need.gpus) for need in needs] == [(7, 0), (7, 3), (1, 0)]  # 3 samplers, 1 evaluator
