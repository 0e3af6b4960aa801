"""What a checkpoint stands on: it is on the disk before it counts; what it refers to is there, whole and its own."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnirl.api.errors import CheckpointError
from omnirl.runtime import checkpoint
from omnirl.runtime.saving import CheckpointWriter, Snapshot, replace_agent


def content(*rows: int) -> dict[str, Any]:
    """A memory of two segments, where a segment has four bytes."""
    return {"learner": {"step": 7}, "memory": {"rows": np.array(rows, np.uint8)}}


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "_SEGMENT_BYTES", 4)


@pytest.fixture
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is waited for (``disk``) and what takes its place (``place``), in order, by the names of files."""
    events: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        status = os.fstat(descriptor)
        places = (tmp_path, *tmp_path.rglob("*"))
        (path,) = (path for path in places if os.path.samestat(path.stat(), status))
        events.append(("disk", "segment" if ".npy" in path.name else path.name))
        fsync(descriptor)

    def replaced(source: Path, target: Path) -> None:
        events.append(("place", "segment" if ".npy" in Path(source).name else Path(source).name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    return events


def test_nothing_takes_its_place_before_it_is_on_the_disk(
    tmp_path: Path, small_segments: None, done: list[tuple[str, str]]
) -> None:
    segment = [("disk", "segment"), ("place", "segment")]
    written = ("disk", "checkpoint.ckpt.tmp")
    last = [("place", "checkpoint.ckpt.tmp"), ("disk", tmp_path.name)]
    path = tmp_path / checkpoint.CURRENT
    checkpoint.write(path, {}, content(1, 2, 3, 4, 5, 6, 7, 8))
    # The folder of the segments too: their names must be there when the checkpoint is.
    assert done == [*segment, *segment, ("disk", "replay"), written, *last]
    done.clear()
    checkpoint.write(path, {}, content(1, 2, 3, 4, 5, 6, 7, 9))
    assert done == [*segment, ("disk", "replay"), written, ("place", "checkpoint.prev.ckpt.tmp"), *last]
    done.clear()
    checkpoint.write(path, {}, content(1, 2, 3, 4, 5, 6, 7, 9))  # no segment is new
    assert done == [written, ("place", "checkpoint.prev.ckpt.tmp"), *last]


def test_an_agent_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, done: list[tuple[str, str]]
) -> None:
    replace_agent(tmp_path / "agent_7.pth", lambda path: Path(path).write_bytes(b"weights") and None)
    assert done == [("disk", "agent_7.pth.tmp"), ("place", "agent_7.pth.tmp")]
    assert (tmp_path / "agent_7.pth").read_bytes() == b"weights"


def test_the_segments_of_the_previous_checkpoint_stay_as_long_as_it_does(
    tmp_path: Path, small_segments: None
) -> None:
    writer = CheckpointWriter()
    for version in (1, 2, 3):
        tree = content(1, 1, 1, 1, version, version, version, version)
        snapshot = Snapshot(str(tmp_path), version, {"counters": {"updates": version}}, tree, True, {}, 2)
        writer.start(snapshot, lambda path: Path(path).touch() or None)
    writer.wait()
    assert [outcome.error for outcome in writer.outcomes()] == ["", "", ""]
    assert len(list((tmp_path / "replay").iterdir())) == 3  # what both share, and one of each
    (tmp_path / checkpoint.CURRENT).write_bytes(b"damaged")
    loaded = checkpoint.load_latest(tmp_path)
    assert loaded.manifest["counters"]["updates"] == 2
    assert loaded.tree["memory"]["rows"].tolist() == [1, 1, 1, 1, 2, 2, 2, 2]


def exchanged(path: Path, entry: str, old: bytes, new: bytes) -> None:
    """Put other bytes into an entry of an archive that is otherwise in order."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    assert old in entries[entry]
    entries[entry] = entries[entry].replace(old, new)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)


def test_an_entry_that_is_not_the_one_of_its_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / checkpoint.CURRENT
    checkpoint.write(path, {}, content(1))
    exchanged(path, "tree.json", b'"step": 7', b'"step": 8')
    with pytest.raises(CheckpointError, match=r"tree\.json does not match its checksum"):
        checkpoint.read(path)


def test_the_very_next_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / checkpoint.CURRENT
    checkpoint.write(path, {}, content(1))
    now, following = checkpoint.FORMAT, checkpoint.FORMAT + 1
    exchanged(path, "manifest.json", f'"format": {now}'.encode(), f'"format": {following}'.encode())
    with pytest.raises(CheckpointError, match=f"format {following}, this version reads up to {now}"):
        checkpoint.read(path)
