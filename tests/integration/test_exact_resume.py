"""Killed with SIGKILL at random moments and started again by the same command, a run equals one never killed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

UPDATES = 200
TESTING = "env.module=omnirl.testing.environments"
MOTION = [TESTING, "env.id=motion", "env.frame_stack=3", "env.length=11"]
CASES = {
    "ppo-cartpole": ["cartpole-ppo", "runner.eval_interval=50"],
    "ppo-pendulum": ["pendulum-ppo", "modules.memory.unroll_length=16", "modules.learner.minibatch_size=32"],
    "dqn-cartpole": [
        *("cartpole-dqn", "modules.memory.unroll_length=16", "modules.memory.warmup_steps=600"),
        *(
            "modules.memory.batch_size=512",
            "modules.network.hidden_sizes=[512, 512]",
        ),  # slow enough to be hit
    ],
    "sac-pendulum": ["pendulum-sac"],
    "td3-pendulum": [  # with noise that goes on from rollout to rollout, killed between two updates of the actor
        *("pendulum-td3", "modules.policy.noise={kind: ou, std: 0.2}", "modules.memory.warmup_steps=300"),
        "modules.policy.random_steps=50",
    ],
    "ppo-stacks": [
        *("agent.module=ppo", *MOTION, "modules.memory.unroll_length=16"),
        *("modules.learner.minibatch_size=64", "modules.learner.epochs=1"),
    ],
    "dqn-stacks": [
        *("agent.module=dqn", *MOTION, "modules.memory.capacity=400", "modules.memory.warmup_steps=300"),
        *("modules.memory.batch_size=256", "modules.memory.n_step=2", "modules.network.hidden_sizes=[512]"),
    ],
    "ppo-dictionary": [
        *("agent.module=ppo", TESTING, "env.id=signpost", "modules.memory.unroll_length=16"),
        *("modules.learner.minibatch_size=64", "modules.network.hidden_sizes=[32]"),
    ],
    "dqn-masks": [
        *(
            "agent.module=dqn",
            TESTING,
            "env.id=fork",
            "modules.memory.n_step=3",
            "modules.memory.warmup_steps=600",
        ),
        *("modules.memory.batch_size=512", "modules.network.hidden_sizes=[512, 512]"),
    ],
}
FIVE_TIMES = (
    "ppo-cartpole",
    "ppo-pendulum",
    "dqn-cartpole",
)  # the others take what those have proved for granted
LOCK_STEP = [
    *("runner.max_lead=0", "runner.log_interval=0", f"runner.max_updates={UPDATES}", "runner.max_steps="),
    *("runner.save_interval=0.3", "runner.num_samplers=1", "device.threads=1", "runner.num_episodes=3"),
]


def command(case: str, folder: str, *more: str) -> list[str]:
    return ["train", *CASES[case], *LOCK_STEP, f"runner.ckpt_dir={folder}", *more]


def kill_and_go_on(
    forked: Callable[..., Any], arguments: list[str], folder: Path, read: Any, kills: int, seed: int
) -> int:
    """Kill the run ``kills`` times, each some way further into it; returns how often it went on."""
    rng = random.Random(seed)
    gone_on = 0
    for number in range(kills):
        run = forked(*arguments)
        before = len(read.rows(folder))
        aim = before + rng.randint(3, max(4, (UPDATES - before) // (kills - number + 1)))
        run.until(lambda aim=aim: len(read.rows(folder)) >= aim)  # type: ignore[misc]
        time.sleep(rng.random() * 0.1)
        run.kill()
        gone_on += "going on with the run" in run.output
    last = forked(*arguments)
    assert last.wait() == 0, last.output
    return gone_on + ("going on with the run" in last.output)


@pytest.mark.parametrize("case", CASES)
def test_local(case: str, forked: Callable[..., Any], tmp_path: Path, read: Any) -> None:
    whole = forked(*command(case, "whole", "--local"))
    assert whole.wait() == 0, whole.output
    kills = 5 if case in FIVE_TIMES else 2
    arguments = command(case, "killed", "--local")
    assert kill_and_go_on(forked, arguments, tmp_path / "killed", read, kills, seed=7) == kills
    assert read.comparable(tmp_path / "killed") == read.comparable(tmp_path / "whole")
    assert read.content(tmp_path / "killed") == read.content(tmp_path / "whole")
