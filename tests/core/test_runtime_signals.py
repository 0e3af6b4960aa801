"""Ctrl-C and SIGTERM: requests while the workers live, and as long as they are being ended."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

import omnirl.run
from omnirl.runtime import signals
from omnirl.runtime.cluster import _as_terminated
from omnirl.runtime.signals import stop_requests
from omnirl.runtime.transport import LocalTransport


def config(folder: Path) -> dict[str, Any]:
    return {
        "runner": {"ckpt_dir": str(folder), "max_updates": 3, "num_samplers": 1, "num_evaluators": 0},
        "env": {"module": "omnirl.testing.environments", "id": "count"},
        "agent": {"module": "omnirl.testing.algorithm"},
        "modules": {"memory": {}, "learner": {}},
    }


class SignalAtClose(LocalTransport):
    """Somebody presses Ctrl-C while the workers are being ended."""

    def close(self, *, at_once: bool = False) -> None:
        signal.raise_signal(signal.SIGINT)
        super().close(at_once=at_once)


def test_handlers_are_those_from_before_whatever_was_set_within() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stop_requests() as stop:
        signal.signal(signal.SIGTERM, lambda *_: None)  # as ray.init does
        stop.catch()
        assert stop.signal == 0
        signal.raise_signal(signal.SIGTERM)
        assert stop.signal == signal.SIGTERM
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_run_that_is_through_stays_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omnirl.run, "LocalTransport", SignalAtClose)
    summary = omnirl.run.train(config(tmp_path / "a"), local=True)
    assert (summary.status, summary.updates, summary.message) == ("finished", 3, "")


def test_the_second_signal_ends_at_once_while_workers_are_being_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[tuple[str, int]] = []
    monkeypatch.setattr(signals, "end_at_once", lambda line, code: ended.append((line.strip(), code)))
    monkeypatch.setattr(omnirl.run, "LocalTransport", SignalAtClose)

    class Interrupted(omnirl.run.TrainLoop):
        def run(self) -> Any:
            signal.raise_signal(signal.SIGINT)
            return super().run()

    monkeypatch.setattr(omnirl.run, "TrainLoop", Interrupted)
    summary = omnirl.run.train(config(tmp_path / "a"), local=True)
    assert (summary.status, summary.message) == ("interrupted", "SIGINT")
    assert ended == [("ended at once; the last checkpoint stands", 130)]


@pytest.mark.parametrize(("code", "expected"), [(15, 143), (1, 1), (0, 0), (None, None), ("text", "text")])
def test_rays_own_handler_of_sigterm_gives_its_exit_code(code: object, expected: object) -> None:
    assert _as_terminated(SystemExit(code)).code == expected  # type: ignore[arg-type]
