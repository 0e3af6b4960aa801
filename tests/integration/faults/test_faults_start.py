"""What keeps a run from starting: addresses, too small a cluster, a Ray that does not come up, files that run code."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnirl.runtime import checkpoint

TOY = [
    *("train", "--run-dir", "run", "agent.module=omnirl.testing.algorithm"),
    *("env.module=omnirl.testing.environments", "env.id=count", "env.length=20", "runner.num_evaluators=0"),
]
SHORT = [*TOY, "runner.max_updates=3"]
HEAD = """
import pathlib, signal, sys, time, ray
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
context = ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
pathlib.Path("address").write_text(context.address_info["gcs_address"])
time.sleep(600)
"""
DIES = "import os, sys\nif any('default_worker' in word for word in sys.orig_argv): os._exit(1)\n"


def test_a_stale_address(start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path) -> None:
    with within("stale address", "nothing answers there, exit 6", 3):  # the command's own start is in it
        run = start(*SHORT, "--address", "127.0.0.1:1")
        assert run.wait(30) == 6, run.output
    assert "nothing answers at 127.0.0.1:1" in run.output


@pytest.mark.ray
def test_k36_a_cluster_that_is_too_small(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path
) -> None:
    head = start(code=HEAD)
    address = tmp_path / "address"
    head.until(lambda: address.exists() and address.read_text("utf-8"))
    with within("more CPUs wanted than there are", "needed and available are told, exit 6", 5):
        run = start(*SHORT, "--address", address.read_text("utf-8"), "runner.num_samplers=64")
        assert run.wait(60) == 6, run.output
    assert "needs 65 CPUs, the cluster" in run.output
    head.send(signal.SIGTERM)
    head.wait(20)


@pytest.mark.ray
def test_workers_that_die_as_they_start(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(DIES, encoding="utf-8")
    with within("workers die as they start", "given up after 15 s (ray.start_timeout_s), exit 6", 45):
        run = start(*SHORT, "ray.start_timeout_s=15", variables={"PYTHONPATH": str(tmp_path / "site")})
        assert run.wait(60) == 6, run.output
    assert "2 of 2 workers' processes did not come up within 15 s" in run.output
    assert run.left_over() == []


@pytest.mark.ray
def test_the_death_of_ray(
    start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path, read: Any
) -> None:
    run = start(*TOY, "runner.max_updates=100000", "runner.log_interval=0")
    run.until(lambda: len(read.rows(tmp_path / "run")) > 20)
    (raylet,) = [process for process in run.processes() if process.name() == "raylet"]
    raylet.send_signal(signal.SIGKILL)
    with within("kill -9 raylet", "the run ends, exit 21, says how to go on", 15):
        assert run.wait(30) == 21, run.output
    assert "omnirl resume run" in run.output
    assert run.left_over() == []


class Evil:
    """Unpickled, it makes a file."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("executed",)


def test_a_file_that_runs_code(start: Callable[..., Any], within: Callable[..., Any], tmp_path: Path) -> None:
    run = start(*SHORT, "--local")
    assert run.wait(30) == 0, run.output
    for path in (tmp_path / "run").glob("checkpoint*"):
        path.unlink()
    (tmp_path / "run" / checkpoint.CURRENT).write_bytes(pickle.dumps(Evil()))
    with within("a pickle that runs code as a checkpoint", "refused, nothing executed, exit 5", 3):
        again = start("resume", "run", "--local", "runner.max_updates=9")
        assert again.wait(30) == 5, again.output
    (tmp_path / "evil.yaml").write_text("runner: !!python/object/apply:os.mkdir [executed]\n", "utf-8")
    with within("!!python/object in YAML", "refused, nothing executed, exit 2", 3):
        third = start("train", "evil.yaml")
        assert third.wait(30) == 2, third.output
    assert not (tmp_path / "executed").exists()
    assert "Traceback" not in again.output + third.output
