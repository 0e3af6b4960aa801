"""K39 and K40: what is written in a file is what runs, and a mistake is told before anything starts."""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from omnirl.cli.app import run

RUNNER = """\
runner: {max_updates: 1, num_samplers: 1, num_envs_per_sampler: 2, num_evaluators: 0, ckpt_dir: run}
device: {threads: 1}
env:
  module: gymnasium
  id: CartPole-v1
"""
PPO = """\
agent: {module: ppo}
modules:
  learner:
    lr: 1e-3
    minibatch_size: 8
  memory: {unroll_length: 4}
  network: {hidden_sizes: [8]}
"""
DQN = """\
agent: {module: dqn}
modules:
  learner: {lr: 1e-3}
  memory:
    capacity: 1e5
    batch_size: 64
    warmup_steps: 1000
"""
SECONDS = 5.0


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "train.yaml") -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return write


def resolved(*arguments: str, capsys: pytest.CaptureFixture[str]) -> dict:
    assert run(["config", "show", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def computed() -> float:
    """Seconds that the processors spent on child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def refused(*arguments: str) -> list[str]:
    """The lines of ``omnirl train``, which ends with 2 within 5 seconds and without importing Ray or torch. The seconds
    are those of its own computing, so that nothing that runs beside it counts."""
    code = (
        "import sys\nfrom omnirl.cli.app import run\n"
        f"code = run({['train', *arguments]!r})\n"
        "heavy = [name for name in ('ray', 'torch') if name in sys.modules]\n"
        "print(*heavy)\nsys.exit(code)\n"
    )
    begin = computed()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    seconds = computed() - begin
    assert done.returncode == 2, done.stderr
    assert done.stdout == "\n", "ray or torch was imported"
    assert seconds < SECONDS
    return done.stderr.splitlines()


def test_k39_a_rate_in_scientific_notation_reaches_the_optimizer(write, tmp_path: Path) -> None:
    assert run(["train", write(RUNNER + PPO), "--local", "--quiet", "runner.log_interval=0"]) == 0
    with open(tmp_path / "run" / "log.csv", encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert float(row["lr"]) == 0.001


def test_k39_a_whole_number_may_be_written_as_a_float(write, capsys: pytest.CaptureFixture[str]) -> None:
    capacity = resolved(write(RUNNER + DQN), capsys=capsys)["modules"]["memory"]["capacity"]
    assert capacity == 100_000
    assert isinstance(capacity, int)
    file = write(RUNNER + DQN.replace("1e5", "1.5"))
    assert refused(file) == ["train.yaml:10:5 modules.memory.capacity: must be a whole number, not 1.5"]


def test_k39_no_is_a_name(write, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(RUNNER.replace("CartPole-v1", "no") + PPO)
    assert resolved(file, capsys=capsys)["env"]["id"] == "no"
    (line,) = refused(file)
    assert line.startswith("train.yaml:5:3 env.id: unknown environment 'no'")


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "y"])
def test_k39_only_true_and_false_are_flags(word: str, write) -> None:
    lines = refused(write(RUNNER + PPO), f"modules.learner.normalize_returns={word}")
    key = "override modules.learner.normalize_returns"
    assert lines == [f"{key}: must be true or false, not {word!r}"]


def test_k39_a_time_of_day_is_text_and_a_leading_zero_is_no_octal(
    write, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(RUNNER.replace("max_updates: 1,", "max_updates: 017,") + PPO)
    assert resolved(file, capsys=capsys)["runner"]["max_updates"] == 17  # YAML 1.1 reads 15
    file = write(RUNNER.replace("max_updates: 1,", "max_updates: 12:30,") + PPO)
    assert refused(file) == ["train.yaml:1:10 runner.max_updates: must be a whole number, not '12:30'"]


def test_k39_a_key_that_stands_twice(write) -> None:
    text = "agent: {module: ppo}\nmodules:\n  learner:\n    lr: 1\n    gamma: 0.9\n    epochs: 1\n    lr: 1\n"
    assert refused(write(text)) == ["train.yaml:7:5 duplicate key 'lr' (first at line 4)"]


@pytest.mark.parametrize(
    ("text", "assignment", "expected"),
    [
        (
            RUNNER + PPO.replace("    minibatch_size", "    gama: 0.9\n    minibatch_size"),
            None,
            "train.yaml:10:5 modules.learner.gama: unknown key (did you mean 'gamma'?) [algorithm ppo]",
        ),
        (RUNNER + PPO, "modules.learner.gama=0.9", "unknown key (did you mean 'gamma'?)"),
        (RUNNER + PPO, "modules.learner.gamma=1.5", "modules.learner.gamma: must be at most 1, not 1.5"),
        (RUNNER + PPO, "runner.num_samplers=0", "runner.num_samplers: must be 'auto' or at least 1, not 0"),
        (
            RUNNER + DQN,
            "modules.memory.capacity=1000 modules.memory.batch_size=1001 modules.memory.warmup_steps=1000",
            "modules.memory.batch_size: 1001 is more than the capacity 1000",
        ),
        (RUNNER + DQN, "modules.memory.warmup_steps=63", "modules.memory.warmup_steps: 63 is less than"),
        (RUNNER.replace("  id: CartPole-v1\n", "") + PPO, None, "train.yaml:3:1 env.id: missing"),
        (
            RUNNER + PPO,
            "modules.learner.epochs=four",
            "modules.learner.epochs: must be a whole number, not 'four'",
        ),
        (
            RUNNER + DQN.replace("{lr: 1e-3}", "{lr: 1e-3, clip: 0.2}"),
            None,
            "train.yaml:8:23 modules.learner.clip: unknown key ('clip' is a key of ppo) [algorithm dqn]",
        ),
    ],
    ids=[
        *("misspelt", "misspelt-override", "gamma", "num_samplers", "batch", "warmup", "missing", "type"),
        "ppo-key-in-dqn",
    ],
)
def test_k40_a_mistake_is_one_line(text: str, assignment: str | None, expected: str, write) -> None:
    lines = refused(write(text), *(assignment or "").split())
    assert len(lines) == 1
    assert expected in lines[0]


def test_k40_the_merged_configuration_gives_the_same_run(write, tmp_path: Path) -> None:
    runner, agent = write(RUNNER, "runner.yaml"), write(PPO, "agent.yaml")
    arguments = ["--runner-config", runner, "--agent-config", agent, "--seed", "3", "runner.log_interval=0"]
    assert run(["train", *arguments, "runner.max_updates=3", "--local", "--quiet"]) == 0
    again = ["train", "run/run_config.yaml", "--run-dir", "again", "--local", "--quiet"]
    assert run(again) == 0
    logs = []
    for folder in ("run", "again"):
        with open(tmp_path / folder / "log.csv", encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        clocks = ("wall_time", "steps_per_s", "updates_per_s")
        logs.append([{key: value for key, value in row.items() if key not in clocks} for row in rows])
    assert len(logs[0]) == 3
    assert logs[0] == logs[1]
