"""K28 and K34: schedules, counters and versions over a real run that is stopped and goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import omnirl.run
from omnirl.algorithms.ppo.learner import Learner
from omnirl.algorithms.ppo.memory import Memory
from omnirl.api.errors import OmniRLError
from omnirl.cli.app import run

SMALL = {"num_samplers": 1, "num_envs_per_sampler": 4, "num_evaluators": 0, "log_interval": 0, "max_lead": 0}
ENV = {"module": "gymnasium", "id": "CartPole-v1"}
NETWORK = {"hidden_sizes": [8]}


def headers(folder: Path) -> int:
    text = (folder / "log.csv").read_text(encoding="utf-8")
    return sum(line.startswith("wall_time,") for line in text.splitlines())


class StopAt:
    """Asks the run to stop, as Ctrl-C does, once it has made so many updates."""

    def __init__(self, updates: int) -> None:
        self.updates = updates

    def metrics(self, row: dict[str, Any]) -> None:
        if row["updates"] == self.updates:
            os.kill(os.getpid(), signal.SIGINT)


def dqn(folder: Path, steps: int) -> dict[str, Any]:
    """DQN whose epsilon falls from 1 to 0.05 over 10,000 steps; an update per rollout of 8 steps."""
    epsilon = {"kind": "linear", "start": 1, "end": 0.05, "steps": 10_000}
    memory = {"unroll_length": 2, "batch_size": 4, "warmup_steps": 8, "capacity": 1000}
    return {
        "runner": {**SMALL, "ckpt_dir": str(folder), "max_steps": steps},
        "device": {"threads": 1},
        "env": ENV,
        "agent": {"module": "dqn"},
        "modules": {
            "policy": {"epsilon": epsilon},
            "memory": memory,
            "learner": {"steps_per_update": 8},
            "network": NETWORK,
        },
    }


def ppo(folder: Path, updates: int, **learner: Any) -> dict[str, Any]:
    return {
        "runner": {**SMALL, "ckpt_dir": str(folder), "max_updates": updates},
        "device": {"threads": 1},
        "env": ENV,
        "agent": {"module": "ppo"},
        "modules": {
            "memory": {"unroll_length": 4},
            "learner": {"minibatch_size": 16, "epochs": 1, **learner},
            "network": NETWORK,
        },
    }


def test_k28_epsilon_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], read: Any
) -> None:
    """Stopped just short of 4,000 steps: the first row after the resume is that of step 4,000, epsilon 0.62."""
    folder = tmp_path / "run"
    summary = omnirl.run.train(dqn(folder, 3992), local=True)
    assert (summary.status, summary.env_steps) == ("finished", 3992)
    before = read.rows(folder)

    assert run(["resume", str(folder), "runner.max_steps=4800", "--local", "--no-progress"]) == 0
    log = read.rows(folder)
    assert log[: len(before)] == before
    first, last_before = log[len(before)], before[-1]
    assert first["env_steps"] == "4000"
    assert float(first["epsilon"]) == pytest.approx(0.62, abs=1e-9)
    for row in log:
        assert float(row["epsilon"]) == pytest.approx(1 - 0.95 * int(row["env_steps"]) / 10_000, abs=1e-9)

    for counter in ("updates", "weight_version"):
        assert int(first[counter]) == int(last_before[counter]) + 1
        assert [int(row[counter]) for row in log] == list(range(1, len(log) + 1))
    for counter in ("stored_steps", "trained_steps"):
        assert int(first[counter]) == int(last_before[counter]) + 8
    episodes = [int(row["episodes"]) for row in log]
    assert episodes == sorted(episodes)
    assert int(first["episodes"]) >= int(last_before["episodes"]) > 0
    assert headers(folder) == 1


def test_k28_the_target_is_reached_once_in_total_and_the_learning_rate_goes_on(
    tmp_path: Path, read: Any
) -> None:
    """100 updates, stopped after 40: the same command makes the other 60, with the rates of one whole run."""
    folder = tmp_path / "run"
    config = ppo(folder, 100, lr={"kind": "linear", "start": 1e-3, "end": 0.0})
    summary = omnirl.run.train(config, local=True, observer_objects=[StopAt(40)])
    assert summary.status == "interrupted"
    assert 40 <= summary.updates < 100
    made = summary.updates

    summary = omnirl.run.train(config, local=True)
    assert (summary.status, summary.updates, summary.env_steps) == ("finished", 100, 1600)
    log = read.rows(folder)
    assert [int(row["updates"]) for row in log] == list(range(1, 101))
    # Update n begins with n - 1 of the 100 behind it, or with its own rollout already counted as progress.
    rates = [float(row["lr"]) for row in log]
    steps = [rates[n] - rates[n + 1] for n in range(99)]
    assert steps == pytest.approx([1e-5] * 99, abs=1e-9)
    assert rates[made - 1] - rates[made] == pytest.approx(1e-5, abs=1e-9)
    assert headers(folder) == 1


@pytest.mark.parametrize(
    ("lr", "values"),
    [
        (  # halved every fifth of the run
            {"kind": "exponential", "start": 0.032, "end": 0.001},
            {0: 0.032, 4: 0.016, 8: 0.008, 12: 0.004, 16: 0.002},
        ),
        (
            {"kind": "piecewise", "points": [[0.2, 0.01], [0.6, 0.03], [1, 0]]},
            {0: 0.01, 4: 0.01, 8: 0.02, 12: 0.03},
        ),
        (
            {"kind": "piecewise", "steps": [[64, 0.01], [192, 0.03], [320, 0]]},
            {0: 0.01, 3: 0.01, 7: 0.02, 11: 0.03, 19: 0.0},
        ),
    ],
    ids=["exponential", "points", "steps"],
)
def test_k28_every_kind_of_schedule_goes_on_exactly(
    tmp_path: Path, read: Any, lr: dict[str, Any], values: dict[int, float]
) -> None:
    """20 updates of 16 steps, stopped after 7. Update n + 1 has the rate of n updates, or that of 16 (n + 1) steps,
    those that it learns from among them, whenever it is made."""
    omnirl.run.train(ppo(tmp_path / "whole", 20, lr=lr), local=True)
    config = ppo(tmp_path / "stopped", 20, lr=lr)
    assert omnirl.run.train(config, local=True, observer_objects=[StopAt(7)]).status == "interrupted"
    assert omnirl.run.train(config, local=True).status == "finished"
    whole, stopped = (
        [float(row["lr"]) for row in read.rows(tmp_path / name)] for name in ("whole", "stopped")
    )
    assert stopped == whole
    assert {made: whole[made] for made in values} == pytest.approx(values, rel=1e-9)


def test_k34_ppo_learns_from_versions_0_to_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Any
) -> None:
    consumed: list[list[int]] = []
    take = Memory.next_batch

    def watched(memory: Memory, clock: Any) -> Any:
        batch = take(memory, clock)
        consumed.append([rollout.version for rollout in batch])
        return batch

    monkeypatch.setattr(Memory, "next_batch", watched)
    omnirl.run.train(ppo(tmp_path / "run", 5), local=True)
    assert consumed == [[0], [1], [2], [3], [4]]
    log = read.rows(tmp_path / "run")
    assert [(row["lag_p50"], row["lag_max"], row["dropped"]) for row in log] == [("0.0", "0", "0")] * 5


def test_k34_a_renamed_parameter_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Any
) -> None:
    honest = Learner.get_weights
    renamed: list[str] = []

    def renaming(learner: Learner) -> dict[str, Any]:
        weights = dict(honest(learner))
        name = sorted(weights)[0]
        renamed.append(name)
        weights["other"] = weights.pop(name)
        return weights

    monkeypatch.setattr(Learner, "get_weights", renaming)
    with pytest.raises(OmniRLError) as failed:
        omnirl.run.train(ppo(tmp_path / "run", 5), local=True)
    text = "\n".join(failed.value.lines)
    assert "other" in text
    assert renamed[0] in text
    assert failed.value.exit_code == 4
    assert len(renamed) == 1  # said at the first rollout, since no restart could mend it
    assert read.rows(tmp_path / "run") == []


def test_a_resume_with_another_network_names_the_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    omnirl.run.train(ppo(folder, 2), local=True)
    resume = ["resume", str(folder), "runner.max_updates=3", "--local", "--quiet"]
    assert run([*resume, "modules.network.hidden_sizes=[16]"]) == 5
    (line,) = capsys.readouterr().err.splitlines()
    assert "modules.network.hidden_sizes was [8], is [16]: resume with the values" in line
    assert run(resume) == 0


def test_an_agent_is_not_evaluated_with_another_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another activation fits the weights, and would give another policy without a word."""
    folder = tmp_path / "run"
    omnirl.run.train(ppo(folder, 2), local=True)
    test = ["test", str(folder), "--local", "--episodes", "1"]
    assert run([*test, "modules.network.activation=relu", "modules.network.hidden_sizes=[4]"]) == 5
    lines = capsys.readouterr().err.splitlines()
    assert sorted(line.partition(": ")[2] for line in lines) == [
        'modules.network.activation was "tanh", is "relu": give it the network that it was trained with',
        "modules.network.hidden_sizes was [8], is [4]: give it the network that it was trained with",
    ]
    assert run([*test, "modules.network.activation=tanh"]) == 0


def test_a_resume_with_other_wrappers_says_so_where_it_does_not_repeat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    omnirl.run.train(ppo(folder, 2), local=True)
    resume = ["resume", str(folder), "runner.max_updates=3", "--local", "--no-progress"]
    assert run([*resume, "env.wrappers=[{frame_skip: {frames: 2}}]"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "did not repeat exactly" in line]
    assert 'env.wrappers was [], is [{"frame_skip": {' in line
