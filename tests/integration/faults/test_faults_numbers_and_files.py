"""NaN, full disks, killed writers, foreign files and signals; in one process, without Ray, where that is the same."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from omnirl.runtime import checkpoint

TOY = [
    *(
        "train",
        "--run-dir",
        "run",
        "--local",
        "agent.module=omnirl.testing.algorithm",
        "runner.log_interval=0",
    ),
    *("env.module=omnirl.testing.environments", "runner.num_envs_per_sampler=2", "runner.num_evaluators=0"),
]
COUNT = ["env.id=count", "env.length=20"]
LONG = [*TOY, *COUNT, "runner.max_updates=100000", "modules.learner.sleep=0.002"]


@pytest.mark.parametrize("mode", ["nan_reward", "nan_obs"])
def test_k38_nan_from_the_environment_ends_the_run(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, mode: str
) -> None:
    run = start(
        *TOY, "env.id=bad", f"env.mode={mode}", "env.at=7", "runner.on_nan=error", "runner.max_updates=9"
    )
    what = "reward is nan" if mode == "nan_reward" else "observation is nan"
    with within(f"{mode}, on_nan: error", "exit 22, nothing of it learned", 15):
        assert run.wait(30) == 22, run.output
    assert f"sampler 0, env step 7, {what}" in run.output
    assert "Traceback" not in run.output


def test_k38_nan_from_the_environment_is_refused(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, read: Any
) -> None:
    run = start(
        *TOY, "env.id=bad", "env.mode=nan_reward", "env.at=700", "env.times=1", "runner.max_updates=200"
    )
    with within("nan_reward, on_nan: drop", "the rollout is refused, the run has all its updates", 15):
        assert run.wait(30) == 0, run.output
    assert "a rollout was refused: sampler 0, env step 700, reward is nan" in run.output
    last = read.rows(tmp_path / "run")[-1]
    assert (last["updates"], last["dropped"]) == ("200", "16")
    assert int(last["env_steps"]) == int(last["stored_steps"]) + 16


def test_k38_too_many_nan_end_the_run(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, read: Any
) -> None:
    run = start(*TOY, "env.id=bad", "env.mode=nan_reward", "env.at=100", "runner.max_updates=200")
    with within("over 1 % nan_reward, on_nan: drop", "exit 22", 15):
        assert run.wait(30) == 22, run.output
    assert "10 of 22 rollouts held a NaN or an infinity, the limit is 1 %" in run.output


def test_k38_a_learning_rate_without_measure_ends_the_run(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, read: Any
) -> None:
    run = start(
        *("train", "cartpole-dqn", "--run-dir", "run", "--local", "modules.learner.lr=1e30"),
        *("modules.memory.unroll_length=16", "modules.network.hidden_sizes=[8]", "runner.num_evaluators=0"),
        "runner.save_interval=0.01",
    )
    with within("NaN loss or gradient", "updates skipped, exit 22 after 10 in a row", 60):
        assert run.wait(60) == 22, run.output
    ((number, times),) = re.findall(
        r"update (\d+): the loss or gradient was not finite (\d+) times in a row", run.output
    )
    assert int(times) >= 10
    assert int(number) - int(times) == 1  # the first one still was
    assert "Traceback" not in run.output
    saved = dict(arrays(checkpoint.load_latest(tmp_path / "run").tree["learner"]))
    agents = [torch.load(path, weights_only=True)["weights"] for path in (tmp_path / "run").glob("agent_*")]
    assert saved
    assert agents
    for agent in agents:
        saved.update({name: tensor.numpy() for name, tensor in agent.items()})
    assert [name for name, array in saved.items() if not np.isfinite(array).all()] == []


def arrays(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Those of a checkpoint, each by its path."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from arrays(value, f"{name}/{key}")
    elif isinstance(tree, np.ndarray) and tree.dtype.kind == "f":
        yield name, tree


def in_a_small_disk(size: str, *arguments: str) -> list[str]:
    """The command, run in ``run`` on a disk of ``size`` bytes that only it can see."""
    mount = f"mkdir -p run && mount -t tmpfs -o size={size} tmpfs run && "
    keep = "; code=$?; mkdir -p kept && cp -r run/. kept/; exit $code"
    words = " ".join(f"'{word}'" for word in (sys.executable, "-c", OMNIRL, *arguments))
    return ["unshare", "--mount", "sh", "-c", mount + words + keep]


OMNIRL = "from omnirl.cli.app import main; main()"


def test_a_full_disk_keeps_the_old_checkpoint(
    within: Callable[..., Any], tmp_path: Path, repetition: int
) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a mount namespace")
    long = [word for word in LONG if "max_updates" not in word]
    memory = [
        "modules.memory.kind=replay",
        "modules.memory.capacity=100000",
        "modules.memory.warmup_steps=64",
    ]
    command = in_a_small_disk(
        "600k", *long, *memory, "runner.save_interval=0.2", "runner.max_updates=4000000"
    )
    with within("disk full while saving", "old checkpoint kept, exit 23 after 3 failed saves", 90):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 23, done.stdout + done.stderr
    assert "No space left on device" in done.stdout + done.stderr
    loaded = checkpoint.load_latest(tmp_path / "kept")
    assert loaded.manifest["counters"]["updates"] > 0
    assert not list((tmp_path / "kept").rglob("*.tmp"))


def test_killed_while_saving(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, repetition: int
) -> None:
    """Every checkpoint that a killed run leaves loads, and none is older than the one before."""
    rng = random.Random(repetition)
    command = [*LONG, "modules.memory.kind=replay", "runner.save_interval=0"]
    newest = 0
    for _ in range(12):
        run = start(*command)
        run.until(lambda newest=newest: _updates(tmp_path / "run") > newest, timeout=30)
        time.sleep(rng.random() * 0.2)
        run.send(signal.SIGKILL)
        run.wait(10)
        updates = _updates(tmp_path / "run")
        assert updates >= newest
        newest = updates
    with within("kill -9 while saving (12 kills)", "old or new checkpoint loads, counters never go back", 2):
        checkpoint.load_latest(tmp_path / "run")


def _updates(folder: Path) -> int:
    if not checkpoint.has_checkpoint(folder):
        return 0
    loaded = checkpoint.load_latest(folder)
    assert not loaded.notices
    return int(loaded.manifest["counters"]["updates"])


def test_a_damaged_checkpoint_is_told_and_the_previous_one_used(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path
) -> None:
    run = start(
        *TOY, *COUNT, "runner.max_updates=400", "runner.save_interval=0", "modules.learner.sleep=0.002"
    )
    run.until(lambda: (tmp_path / "run" / checkpoint.PREVIOUS).exists())
    run.send(signal.SIGKILL)
    run.wait(10)
    path = tmp_path / "run" / checkpoint.CURRENT
    flip_a_bit(path, "arrays/0.npy")
    again = start(
        *TOY, *COUNT, "runner.max_updates=400", "runner.save_interval=0", "modules.learner.sleep=0.002"
    )
    with within("bit flip in a checkpoint", "refused by name, the previous one used", 30):
        assert again.wait(60) == 0, again.output
    assert "run/checkpoint.ckpt: refused" in again.output
    assert "damaged" in again.output
    assert "going on from checkpoint.prev.ckpt" in again.output


def flip_a_bit(path: Path, entry: str) -> None:
    """Flip a bit in the content of an entry; one in the archive's own dates would change nothing that is read."""
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(entry)
    data = bytearray(path.read_bytes())
    data[info.header_offset + 30 + len(entry) + info.file_size - 1] ^= 4
    path.unlink()  # for a moment of each save the previous checkpoint is a link to the same file
    path.write_bytes(bytes(data))


def test_a_foreign_checkpoint_is_one_line(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path
) -> None:
    run = start(*TOY, *COUNT, "runner.max_updates=5")
    assert run.wait(30) == 0, run.output
    (tmp_path / "run" / checkpoint.CURRENT).write_bytes(b"PK no zip at all")
    (tmp_path / "run" / checkpoint.PREVIOUS).unlink(missing_ok=True)
    again = start("resume", "run", "--local", "runner.max_updates=9")
    with within("foreign file as a checkpoint", "one line, exit 5", 3):  # a second of it starts Python
        assert again.wait(30) == 5, again.output
    lines = [line for line in again.output.splitlines() if "refused" in line]
    assert len(lines) == 1
    assert "run/checkpoint.ckpt" in lines[0]
    assert "Traceback" not in again.output


@pytest.mark.parametrize(
    ("name", "number", "code", "bound"),
    [("Ctrl-C", signal.SIGINT, 130, 15), ("SIGTERM", signal.SIGTERM, 143, 25)],
)
@pytest.mark.ray
def test_a_signal_ends_the_run_with_a_save(
    start: Callable[..., Any],
    within: Callable[..., Any],
    tmp_path: Path,
    read: Any,
    name: str,
    number: int,
    code: int,
    bound: float,
) -> None:
    run = start(*(word for word in LONG if word != "--local"))
    run.until(lambda: len(read.rows(tmp_path / "run")) > 20)
    with within(name, f"update finished, saved, resume command, exit {code}", bound):
        run.send(number)
        assert run.wait(40) == code, run.output
    assert "omnirl resume run" in run.output
    assert _updates(tmp_path / "run") == int(read.rows(tmp_path / "run")[-1]["updates"])
    assert run.left_over() == []


@pytest.mark.ray
def test_ctrl_c_twice_ends_it_at_once(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, read: Any
) -> None:
    # An environment that is slow to step, so that the update that the first Ctrl-C waits for takes long.
    slow = ["env.id=sleepy", "env.ms=400", "env.length=1000"]
    run = start(*(word for word in LONG if word not in ("--local", *COUNT)), *slow)
    run.until(lambda: len(read.rows(tmp_path / "run")) > 0, timeout=60)
    run.send(signal.SIGINT)
    time.sleep(0.3)
    with within("Ctrl-C twice", "ended at once, exit 130", 2):
        run.send(signal.SIGINT)
        assert run.wait(20) == 130, run.output
    assert run.left_over(within=3) == []


assert shutil.which("unshare") or os.name != "posix"
