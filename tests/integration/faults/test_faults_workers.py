"""Workers that die, hang or go wrong, on Ray."""

from __future__ import annotations

import re
import signal
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.ray
TOY = [
    *("train", "--run-dir", "run", "agent.module=omnirl.testing.algorithm", "runner.log_interval=0"),
    *("env.module=omnirl.testing.environments", "runner.num_envs_per_sampler=2", "runner.num_episodes=2"),
    *("runner.eval_interval=10", "modules.learner.sleep=0.005"),
]
SLEEPY = ["env.id=sleepy", "env.ms=1", "env.length=20"]


def speed(rows: list[dict[str, str]]) -> float:
    return statistics.median(float(row["steps_per_s"]) for row in rows)


@pytest.mark.parametrize("role", ["Sampler", "Evaluator"])
def test_kill_9(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, read: Any, role: str
) -> None:
    updates = 600
    run = start(*TOY, *SLEEPY, f"runner.max_updates={updates}")
    before = run.until(lambda: read.rows(tmp_path / "run") if len(read.rows(tmp_path / "run")) > 60 else None)
    (victim,) = run.workers(role)
    victim.send_signal(signal.SIGKILL)
    at = len(read.rows(tmp_path / "run"))
    with within(f"kill -9 {role.lower()}", "replaced; updates and evaluations go on", 15):

        def going_on() -> bool:
            rows = read.rows(tmp_path / "run")
            evaluated = [row for row in rows[at:] if row["eval_return_mean"]]
            return len(rows) > at + 20 and bool(evaluated)

        run.until(going_on, timeout=30)
    assert run.wait(90) == 0, run.output
    assert f"{role.lower()} 0 was restarted" in run.output
    rows = read.rows(tmp_path / "run")
    assert [int(row["updates"]) for row in rows] == list(range(1, updates + 1))
    assert len([row for row in rows if row["eval_return_mean"]]) == updates // 10
    # Back to at least 90 % for a while: what else the machine does slows down other whiles.
    whiles = [rows[begin : begin + 40] for begin in range(at + 40, updates - 39, 20)]
    assert max(map(speed, whiles)) > 0.9 * speed(before[-40:])
    collected, stored = int(rows[-1]["env_steps"]), int(rows[-1]["stored_steps"])
    assert collected == stored  # a lost fragment never arrived, so it is not counted as collected
    assert run.left_over() == []


def test_kill_9_stepping_process(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, read: Any
) -> None:
    """One of those that ``env.vectorization: process`` gives a sampler; the sampler outlives it, its environment does
    not."""
    run = start(
        *("train", "--run-dir", "run", "agent.module=omnirl.testing.algorithm", "runner.log_interval=0"),
        *(
            "env.module=gymnasium",
            "env.id=CartPole-v1",
            "env.vectorization=process",
            "runner.max_updates=400",
        ),
        *("runner.num_envs_per_sampler=2", "runner.num_evaluators=0", "modules.learner.sleep=0.01"),
    )

    def stepping() -> dict[int, Any]:
        return run.running("omnirl.envs.gymnasium.stepping_process")

    run.until(lambda: len(read.rows(tmp_path / "run")) > 20)
    before = stepping()
    (sampler,) = run.workers("Sampler")
    next(iter(before.values())).send_signal(signal.SIGKILL)
    with within(
        "kill -9 a process that steps environments", "the sampler and its others replaced, updates go on", 15
    ):
        run.until(lambda: stepping() and before.keys().isdisjoint(stepping()), timeout=30)
        at = len(read.rows(tmp_path / "run"))
        run.until(lambda: len(read.rows(tmp_path / "run")) > at + 20, timeout=30)
    assert sampler.pid not in {process.pid for process in run.workers("Sampler")}
    assert run.wait(90) == 0, run.output
    gone = r"sampler 0 was restarted: RuntimeError: the process that stepped sub-environment \S+( to \S+)? is gone"
    assert re.search(rf"{gone} \(signal SIGKILL\)", run.output)
    assert run.left_over() == []


def test_kill_9_learner(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, read: Any
) -> None:
    run = start(*TOY, *SLEEPY, "runner.max_updates=700", "runner.save_interval=0.5")
    run.until(lambda: len(read.rows(tmp_path / "run")) > 120)
    (victim,) = run.workers("LearnerWorker")
    victim.send_signal(signal.SIGKILL)
    with within("kill -9 learner", "restored from the checkpoint, epoch + 1, updates go on", 30):
        run.until(lambda: [p for p in run.workers("LearnerWorker") if p.pid != victim.pid], timeout=40)
        at = len(read.rows(tmp_path / "run"))
        run.until(lambda: len(read.rows(tmp_path / "run")) > at + 20, timeout=40)
    assert run.wait(120) == 0, run.output
    assert "the learner's process died" in run.output
    assert "going on from update" in run.output
    assert [int(row["updates"]) for row in read.rows(tmp_path / "run")] == list(range(1, 701))
    assert run.left_over() == []


@pytest.mark.parametrize("victim", [0, 1])
def test_kill_9_one_of_two_learners(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, read: Any, victim: int
) -> None:
    """The other one waits for the dead one in the middle of an update, or is told that its connection is gone."""
    run = start(
        *("train", "--run-dir", "run", "agent.module=ppo", "runner.num_learners=2", "runner.num_samplers=2"),
        *("env.module=omnirl.testing.environments", *SLEEPY, "runner.num_envs_per_sampler=2"),
        *("modules.memory.unroll_length=16", "modules.learner.minibatch_size=16", "runner.log_interval=0"),
        *("runner.max_updates=150", "runner.save_interval=0.5", "runner.num_evaluators=0"),
    )
    run.until(lambda: len(read.rows(tmp_path / "run")) > 40)
    before = sorted(run.workers("LearnerWorker"), key=lambda process: process.pid)
    assert len(before) == 2
    before[victim].send_signal(signal.SIGKILL)
    with within("kill -9 one of two learners", "both ended, restored from the checkpoint, updates go on", 30):
        dead = {process.pid for process in before}
        run.until(lambda: len({p.pid for p in run.workers("LearnerWorker")} - dead) == 2, timeout=40)
        assert dead.isdisjoint(process.pid for process in run.workers("LearnerWorker"))
        at = len(read.rows(tmp_path / "run"))
        run.until(lambda: len(read.rows(tmp_path / "run")) > at + 20, timeout=40)
    assert run.wait(120) == 0, run.output
    assert re.search(r"the learner's process died \(learner [01]: .*going on from update", run.output)
    assert [int(row["updates"]) for row in read.rows(tmp_path / "run")] == list(range(1, 151))
    assert run.left_over() == []


def test_kill_9_driver(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, read: Any
) -> None:
    command = [*TOY, *SLEEPY, "runner.max_updates=200", "runner.save_interval=0.5"]
    run = start(*command)
    run.until(lambda: len(read.rows(tmp_path / "run")) > 60)
    with within("kill -9 driver", "no process of the run left", 5):
        run.send(signal.SIGKILL)
        run.wait(10)
        assert run.left_over(within=8) == []
    again = start(*command)
    assert again.wait(90) == 0, again.output
    assert "going on with the run" in again.output
    assert [int(row["updates"]) for row in read.rows(tmp_path / "run")] == list(range(1, 201))


def test_k36_an_environment_that_hangs(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, read: Any
) -> None:
    run = start(
        *TOY,
        *("env.id=bad", "env.mode=hang", "env.at=160", "runner.step_timeout_s=2", "runner.num_evaluators=0"),
        "runner.max_updates=30",
    )
    run.until(lambda: len(read.rows(tmp_path / "run")) >= 12)
    with within("environment hangs", "given up at the deadline of 2 s, replaced, updates go on", 17):
        at = run.until(lambda: len(read.rows(tmp_path / "run")))
        run.until(lambda: len(read.rows(tmp_path / "run")) > max(at, 21), timeout=30)
    assert run.wait(90) == 0, run.output
    assert "sampler 0 was restarted: no environment step for 2 s" in run.output


def test_k36_an_environment_that_always_raises(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path
) -> None:
    run = start(
        *TOY, "env.id=bad", "env.mode=raise", "env.at=1", "runner.max_updates=9", "runner.num_evaluators=0"
    )
    run.until(lambda: run.workers("Sampler"))
    with within("environment always raises", "exit 20 with its traceback", 30):
        assert run.wait(60) == 20, run.output
    assert "sampler 0 (bad, seed 0) failed 11 times in a row, the limit is 10" in run.output
    assert "BadEnvironmentError" in run.output
    assert run.left_over() == []


def test_k36_one_sampler_of_two_raises_once(
    start: Callable[..., Any], tmp_path: Path, repetition: int
) -> None:
    run = start(
        *TOY,
        *("env.id=bad", "env.mode=raise", "env.at=80", "runner.max_updates=15", "runner.num_samplers=2"),
        "runner.num_evaluators=0",
    )
    assert run.wait(90) == 0, run.output
    assert "was restarted: BadEnvironmentError" in run.output
    assert "finished: 15 updates" in run.output
