"""The transport without processes: what a worker raises is the caller's to see."""

from __future__ import annotations

import pytest

from omnirl.runtime.transport import LocalTransport, WorkerRaisedError

SOURCE = """\
import sys

class Quitter:
    def leave(self):
        sys.exit(0)

    def close(self):
        sys.exit(0)
"""


def test_a_worker_that_ends_its_process_fails_like_any_other(tmp_path, monkeypatch):
    (tmp_path / "quitting_worker.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    transport = LocalTransport()
    (ref,) = transport.call(transport.spawn("sampler 0", "quitting_worker:Quitter"), "leave")
    with pytest.raises(WorkerRaisedError, match="SystemExit: 0"):
        transport.get(ref)
    transport.close()
