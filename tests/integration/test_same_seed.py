"""In lock-step the same seed gives the same run, twice, and again when it is killed and resumed: all the algorithms."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.cli.app import run

UPDATES = 60
LOCK_STEP = [
    *("runner.max_lead=0", f"runner.max_updates={UPDATES}", "runner.max_steps=", "runner.log_interval=0"),
    *("runner.num_samplers=2", "runner.num_envs_per_sampler=2", "runner.num_episodes=2", "device.threads=1"),
    *("runner.eval_interval=25", "seed=11"),
]
SMALL = "modules.network.hidden_sizes=[16, 16]"
REPLAY = [
    *("modules.memory.unroll_length=4", "modules.memory.warmup_steps=64", "modules.memory.batch_size=32"),
    *("modules.memory.capacity=160", "modules.memory.n_step=3", "modules.learner.steps_per_update=8"),
]
VALUE = [  # the ladder gives each sampler an epsilon of its own
    *("env.id=CartPole-v1", SMALL, *REPLAY, "modules.learner.target_update_interval=7"),
    *("modules.policy.ladder_alpha=7", "modules.learner.lr={kind: linear, start: 1e-3, end: 0}"),
]
NORMAL = ["modules.learner.normalize_observations=true", "modules.learner.normalize_returns=true"]
NORMAL_CARTPOLE = ["env.id=CartPole-v1", SMALL, "modules.memory.unroll_length=8", *NORMAL]
PENDULUM = ["env.id=Pendulum-v1", SMALL]
CRITICS = [*PENDULUM, *REPLAY, "modules.policy.random_steps=100"]
DRIFT = "modules.policy.noise={kind: ou, std: {kind: exponential, start: 0.5, end: 0.1}}"
CASES = {
    "ppo": [
        *NORMAL_CARTPOLE,
        "modules.learner.minibatch_size=10",
        "modules.learner.clip={kind: linear, start: 0.3, end: 0.1}",
    ],
    "ppo-continuous": [
        *PENDULUM,
        "modules.memory.unroll_length=8",
        *NORMAL,
        "modules.learner.minibatch_size=16",
    ],
    "a2c": [*NORMAL_CARTPOLE, "modules.learner.lr={kind: linear, start: 1e-3, end: 0}"],
    "impala": [*NORMAL_CARTPOLE, "modules.memory.rollouts_per_update=2"],
    "dqn": VALUE,
    "ddqn": VALUE,
    "dueling_dqn": VALUE,
    "per_dqn": VALUE,
    "c51": VALUE,
    "qr_dqn": VALUE,
    "ddpg": [*CRITICS, DRIFT],
    "td3": [*CRITICS, DRIFT, "modules.learner.policy_delay=3"],
    "sac": [*CRITICS, "modules.learner.lr={kind: linear, start: 1e-3, end: 0}"],
    "sac-discrete": ["env.id=CartPole-v1", SMALL, *REPLAY],
    "tqc": CRITICS,
}


def command(case: str, folder: Path, *more: str) -> list[str]:
    algorithm = case.partition("-")[0]
    return [
        "train",
        f"agent.module={algorithm}",
        "env.module=gymnasium",
        *CASES[case],
        *LOCK_STEP,
        f"runner.ckpt_dir={folder}",
        "--quiet",
        *more,
    ]


def test_every_algorithm_is_here() -> None:
    assert {case.partition("-")[0] for case in CASES} == {spec.name for spec in ALGORITHMS}


@pytest.mark.parametrize("case", CASES)
def test_local(case: str, forked: Callable[..., Any], tmp_path: Path, read: Any) -> None:
    first, second, killed = (tmp_path / name for name in ("first", "second", "killed"))
    assert run(command(case, first, "--local")) == 0
    whole, saved = read.comparable(first), read.content(first)
    assert len(whole) == UPDATES
    again = forked(*command(case, second, "--local"))
    assert again.wait() == 0, again.output
    assert (read.comparable(second), read.content(second)) == (whole, saved)

    broken = forked(*command(case, killed, "runner.save_interval=0.05", "--local"))
    broken.until(lambda: len(read.rows(killed)) >= 20 + len(case))
    broken.kill()
    assert len(read.rows(killed)) < UPDATES
    rest = forked("resume", str(killed), "--local", "--quiet")
    assert rest.wait() == 0, rest.output
    assert (read.comparable(killed), read.content(killed)) == (whole, saved)


@pytest.mark.ray
@pytest.mark.parametrize("case", ["ppo", "dqn", "sac"])
def test_ray(case: str, start: Callable[..., Any], tmp_path: Path, read: Any) -> None:
    local, whole, killed = (tmp_path / name for name in ("local", "whole", "killed"))
    assert run(command(case, local, "--local")) == 0
    expected = read.comparable(local), read.content(local)
    again = start(*command(case, whole))
    assert again.wait() == 0, again.output
    assert (read.comparable(whole), read.content(whole)) == expected

    broken = start(*command(case, killed, "runner.save_interval=0.1"))
    broken.until(lambda: len(read.rows(killed)) >= 20)
    broken.send(signal.SIGKILL)
    broken.wait(10)
    assert broken.left_over() == []
    assert len(read.rows(killed)) < UPDATES
    rest = start("resume", str(killed), "--quiet")
    assert rest.wait() == 0, rest.output
    assert (read.comparable(killed), read.content(killed)) == expected
