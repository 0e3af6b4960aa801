"""On a cluster that somebody else started, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.ray

HEAD = """
import os, pathlib, signal, sys, tempfile, time, ray
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
address = pathlib.Path("address").absolute()
os.chdir(tempfile.mkdtemp(dir="."))
context = ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
address.write_text(context.address_info["gcs_address"])
while True:
    time.sleep(0.2)
"""


@pytest.fixture
def train(start: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """``train(*options)`` -> a run of three updates in the folder ``run``, on a cluster that is there."""
    address = tmp_path / "address"
    head = start(code=HEAD)
    head.until(lambda: address.exists() and address.read_text(encoding="utf-8"))
    where = ("--run-dir", "run", "--address", address.read_text(encoding="utf-8"))
    return lambda *options: start("train", "cartpole-ppo", *where, "--updates", "3", *options)


def test_a_relative_run_folder_is_the_one_where_the_command_was_given(
    train: Callable[..., Any], tmp_path: Path, read: Any
) -> None:
    run = train("runner.num_episodes=2")
    assert run.wait(120) == 0, run.output
    assert {"agent_3.pth", "checkpoint.ckpt", "log.csv"} <= {
        path.name for path in (tmp_path / "run").iterdir()
    }
    assert read.rows(tmp_path / "run")[-1]["updates"] == "3"


def test_several_learners_meet_at_the_address_of_a_node(
    train: Callable[..., Any], tmp_path: Path, read: Any
) -> None:
    learners = ("runner.num_evaluators=0", "runner.num_learners=2")
    refused = train(*learners, "--samplers", "4")
    assert refused.wait(60) == 6, refused.output
    assert "the run needs 6 CPUs" in refused.output
    run = train(*learners, "--samplers", "2")
    assert run.wait(120) == 0, run.output
    assert read.rows(tmp_path / "run")[-1]["updates"] == "3"
