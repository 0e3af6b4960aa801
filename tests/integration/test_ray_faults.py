"""On Ray: who has torch, which clusters are used, and what a crash leaves behind. Faults of workers: faults/."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.ray
RUN = ["train", "cartpole-ppo", "--run-dir", "run", "runner.log_interval=0", "runner.num_episodes=2"]
LONG = [*RUN, "runner.max_updates=4000", "runner.max_steps=", "runner.eval_interval=5"]


def has_torch(process: psutil.Process) -> bool:
    return any("libtorch" in file.path for file in process.memory_maps())


def test_only_the_learner_imports_torch(start: Callable[..., Any], tmp_path: Path, read: Any) -> None:
    run = start(*LONG)
    run.until(lambda: len(read.rows(tmp_path / "run")) > 6)
    (learner,) = run.workers("LearnerWorker")
    others = [psutil.Process(run.process.pid), *run.workers("Sampler"), *run.workers("Evaluator")]
    assert len(others) == 3
    assert has_torch(learner)
    assert [has_torch(process) for process in others] == [False, False, False]
    run.send(signal.SIGINT)
    assert run.wait(60) == 130


def test_a_crash_of_the_driver_leaves_nothing(start: Callable[..., Any], tmp_path: Path) -> None:
    code = (
        "import omnirl.run, omnirl.runtime.logbook as logbook\n"
        "def crash(*args, **kwargs): raise RuntimeError('a bug')\n"
        "logbook.LogBook.row = crash\n"
        "omnirl.run.train('cartpole-ppo', overrides=['runner.ckpt_dir=run', 'runner.log_interval=0'])\n"
    )
    run = start(code=code)
    assert run.wait(90) == 1
    assert "RuntimeError: a bug" in run.output
    assert run.left_over() == []


def test_k36_more_workers_than_cores_run_on_our_own_cluster(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    run = start(*RUN, "runner.num_samplers=5", "runner.max_updates=3", "runner.max_steps=")
    assert run.wait(120) == 0, run.output
    assert "finished: 3 updates" in run.output
    assert run.left_over() == []


@pytest.mark.parametrize("why", ["its path is long", "it lies in the virtual environment"])
def test_a_temp_folder_that_does_not_suit_ray_is_no_hang(
    start: Callable[..., Any], tmp_path: Path, ray_folder: Path, why: str
) -> None:
    folder = tmp_path / ("long" * 10) if why == "its path is long" else ray_folder / "t"
    folder.mkdir()
    variables = {"RAY_TMPDIR": str(folder), "VIRTUAL_ENV": str(ray_folder)}
    run = start(*RUN, "runner.max_updates=2", "runner.max_steps=", variables=variables)
    assert run.wait(60) == 0, run.output
    assert run.left_over() == []


def one_line_about_the_deadline(run: Any, tmp_path: Path) -> Path:
    """Ends with exit 6, one line, nothing left; returns the folder of Ray's logs that the line names."""
    assert run.wait(60) == 6, run.output
    (line,) = [line for line in run.output.splitlines() if "ray.start_timeout_s" in line]
    assert "Traceback" not in run.output
    logs = Path(line.rpartition(" are in ")[2])
    assert logs.is_dir()
    assert run.left_over() == []
    assert not (tmp_path / "run" / "checkpoint.ckpt").exists()
    return logs


def test_workers_that_die_as_they_start_are_not_waited_for_for_ever(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    ends = "import os, sys\nif any('default_worker' in word for word in sys.orig_argv): os._exit(1)\n"
    (tmp_path / "site" / "sitecustomize.py").write_text(ends, encoding="utf-8")
    variables = {"PYTHONPATH": str(tmp_path / "site")}
    run = start(*RUN, "runner.max_updates=2", "ray.start_timeout_s=15", variables=variables)
    assert (one_line_about_the_deadline(run, tmp_path) / "raylet.out").exists()
    assert "3 of 3 workers' processes did not come up within 15 s" in run.output


def test_a_ray_that_never_starts_is_not_waited_for_for_ever(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    run = start(*RUN, "runner.max_updates=2", "ray.start_timeout_s=8")
    server = run.until(lambda: next((p for p in run.processes() if p.name() == "gcs_server"), None))
    server.send_signal(signal.SIGSTOP)
    one_line_about_the_deadline(run, tmp_path)
    assert "Ray did not start within 8 s" in run.output


def test_a_worker_killed_for_memory_says_how_much_was_used_and_what_to_lower(
    start: Callable[..., Any],
) -> None:
    """Ray kills workers while more than a share of the machine's memory is used: here, more than a millionth."""
    variables = {"RAY_memory_usage_threshold": "0.000001", "RAY_memory_monitor_refresh_ms": "100"}
    run = start(*RUN, "runner.max_updates=2", variables=variables)
    assert run.wait(60) == 24, run.output
    (line,) = [line for line in run.output.splitlines() if "running low on memory" in line]
    assert re.search(r"GB used / [0-9.]+GB limit", line)
    assert "lower modules.memory.capacity, runner.num_samplers or runner.num_envs_per_sampler" in line
    assert "Traceback" not in run.output
    assert run.left_over() == []


def test_a_dead_address_is_refused_at_once(start: Callable[..., Any], tmp_path: Path) -> None:
    run = start(*RUN, "--address", "127.0.0.1:1")
    assert run.wait(30) == 6
    assert "nothing answers at 127.0.0.1:1" in run.output
    assert "Traceback" not in run.output


def test_k36_a_joined_cluster_must_have_the_resources(
    start: Callable[..., Any], tmp_path: Path, ray_folder: Path
) -> None:
    head = start(code=HEAD)
    address = head.until(lambda: _read(tmp_path / "address"), timeout=60)
    run = start(*RUN, "--address", address, "runner.num_samplers=64", "runner.num_evaluators=1")
    assert run.wait(60) == 6, run.output
    assert "needs 66 CPUs, the cluster" in run.output
    assert "has 2 CPUs" in run.output
    unasked = start(*RUN, "runner.max_updates=2", "runner.max_steps=")
    assert unasked.wait(90) == 0, unasked.output
    assert _read(tmp_path / "jobs") == ""
    head.send(signal.SIGTERM)


HEAD = """
import pathlib, signal, sys, time, ray
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
context = ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
pathlib.Path("address").write_text(context.address_info["gcs_address"])
while True:
    busy = ray.available_resources().get("CPU", 0) < 2
    pathlib.Path("jobs").write_text("somebody works here" if busy else "")
    time.sleep(0.2)
"""


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


assert sys.platform.startswith("linux"), "these tests look at /proc"
