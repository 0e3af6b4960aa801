"""Several learners on Ray: the same run twice, killed and resumed, and joined to a cluster."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnirl.runtime import checkpoint

pytestmark = pytest.mark.ray
UPDATES = 40
RUN = [
    *(
        "train",
        "cartpole-ppo",
        "runner.num_learners=2",
        "runner.num_samplers=2",
        "runner.num_envs_per_sampler=4",
    ),
    *("modules.memory.unroll_length=16", "modules.learner.minibatch_size=64", "runner.log_interval=0"),
    *(f"runner.max_updates={UPDATES}", "runner.max_steps=", "runner.save_interval=0.3", "device.threads=1"),
    *("runner.num_episodes=2", "runner.eval_interval=20"),
]


def test_killed_and_resumed_it_equals_a_run_never_killed(
    start: Callable[..., Any], tmp_path: Path, read: Any
) -> None:
    whole = start(*RUN, "--run-dir", "whole")
    assert whole.wait(120) == 0, whole.output
    assert "2 learners, 2 samplers" in whole.output
    killed = start(*RUN, "--run-dir", "killed")
    killed.until(lambda: len(read.rows(tmp_path / "killed")) >= UPDATES // 2)
    killed.send(signal.SIGKILL)
    killed.wait(10)
    assert killed.left_over() == []
    again = start(*RUN, "--run-dir", "killed")
    assert again.wait(120) == 0, again.output
    assert "from its last checkpoint" in again.output
    assert read.comparable(tmp_path / "killed") == read.comparable(tmp_path / "whole")
    assert read.content(tmp_path / "killed") == read.content(tmp_path / "whole")
    ranks = checkpoint.read(tmp_path / "whole" / checkpoint.CURRENT)[1]
    for name in ("parameters", "optimizer"):
        first, second = (flat(part["learner"][name]) for part in (ranks, ranks["ranks"]["1"]))
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[key], second[key]) for key in first)
    one = start("resume", "killed", "runner.num_learners=1", f"runner.max_updates={UPDATES + 2}")
    assert one.wait(90) == 0, one.output
    assert "the checkpoint is of 2 learners, now there are 1" in one.output


def flat(value: Any, place: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {k: v for key, item in value.items() for k, v in flat(item, f"{place}/{key}").items()}
    return {place: value}
