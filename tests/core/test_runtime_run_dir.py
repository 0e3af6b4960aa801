"""The lock of a run's folder: one run at a time, though the file may vanish under the one that waits for it."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest

from omnirl.runtime import run_dir
from omnirl.runtime.run_dir import Chooser


def chooser() -> Chooser:
    return Chooser({}, "auto", lambda path: {})


def test_a_folder_is_claimed_once(tmp_path: Path) -> None:
    first = chooser().default(tmp_path / "a")
    second = chooser().default(tmp_path / "a")
    assert (first.path, second.path) == (tmp_path / "a", tmp_path / "a-2")
    assert second.notice == f"{tmp_path / 'a'} is taken; this run goes to {tmp_path / 'a-2'}"
    first.release()
    second.release()
    assert list(tmp_path.iterdir()) == []  # both were refused before they wrote anything


def test_a_lock_whose_file_was_removed_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last holder gave the folder up between our opening the file and our locking it: the next one makes another
    file, and both would hold a lock."""
    lock = fcntl.flock

    def removed_first(stream: Any, how: int) -> None:
        (tmp_path / run_dir.LOCK_FILE).unlink()
        lock(stream, how)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    assert run_dir._lock(tmp_path) is None
    monkeypatch.setattr(fcntl, "flock", lock)
    held = run_dir._lock(tmp_path)
    assert held is not None
    assert run_dir._lock(tmp_path) is None
    held.close()


@pytest.mark.parametrize(
    ("wanted", "stored", "same"),
    [
        ({"a": {"n": "auto"}}, {"a": {"n": 3}}, True),
        ({"a": {"n": 3}}, {"a": {"n": "auto"}}, False),
        (
            {"a": {"kind": "auto"}},
            {"a": {"kind": "cnn", "sizes": [8]}},
            True,
        ),  # what auto decided beside itself
        ({"a": {"kind": "auto", "sizes": [4]}}, {"a": {"kind": "cnn", "sizes": [8]}}, False),
        ({"a": {"kind": "cnn"}}, {"a": {"kind": "cnn", "sizes": [8]}}, False),
        ({"a": {"sizes": (4,)}}, {"a": {"sizes": [4]}}, True),
        ({"a": {"n": 1}}, {}, False),
        ({"runner": {"ckpt_dir": "x"}}, {"runner": {"ckpt_dir": "y"}, "versions": {"numpy": "1"}}, True),
    ],
)
def test_which_configurations_mean_the_same_run(
    wanted: dict[str, Any], stored: dict[str, Any], same: bool
) -> None:
    assert run_dir.same_configuration(wanted, stored) is same
