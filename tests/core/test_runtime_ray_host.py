"""The host of a worker in a process of Ray's: what it does around the worker's own methods; without Ray's processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WORKER = """\
class Worker:
    def __init__(self):
        self.parts = [[] for _ in range(10_000)]  # as many as a worker that is built may bring

    def start(self):
        return len(self.parts)

    def fails(self):
        raise ValueError("mine")
"""
PROGRAM = """\
import gc
from omnirl.runtime.ray_transport import _Host

host = _Host("sampler 0", "host_worker:Worker", (), ".")
before = gc.get_freeze_count()  # some Pythons begin with a few
error = host.call("fails", 1)
print(error.summary, gc.get_freeze_count() - before)
print(host.call("start", 1), gc.get_freeze_count() - before > 10_000)
"""


def test_the_garbage_collector_leaves_alone_what_a_worker_was_built_of(tmp_path: Path) -> None:
    """Only once it is built; errors come back as values."""
    (tmp_path / "host_worker.py").write_text(WORKER)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [":actor_name:sampler 0", "ValueError: mine 0", "10000 True"]
