"""Checkpoints: what is read is what was written, or it is refused; nothing is ever unpickled."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnirl.api.errors import CheckpointError
from omnirl.runtime import checkpoint
from omnirl.runtime.saving import CheckpointWriter, Snapshot, agent_versions, prune, remove_leftovers


def tree() -> dict[str, Any]:
    return {
        "learner": {
            "flat": np.arange(5, dtype=np.float32),
            "step": 7,
            "nested": {"mask": np.array([True])},
            "0d": np.array(4),
        },
        "memory": {"rows": np.arange(12, dtype=np.uint8).reshape(3, 4), "text": "x", "none": None},
        "driver": {"returns": [1.5, float("inf")], "name": "a/b"},
    }


def write(folder: Path, content: dict[str, Any], updates: int = 1) -> Path:
    path = folder / checkpoint.CURRENT
    checkpoint.write(path, {"algorithm": "toy", "counters": {"updates": updates}}, content)
    return path


def test_a_tree_comes_back_equal(tmp_path: Path) -> None:
    manifest, got = checkpoint.read(write(tmp_path, tree()))
    assert manifest["algorithm"] == "toy"
    np.testing.assert_array_equal(got["learner"]["flat"], np.arange(5, dtype=np.float32))
    assert got["learner"]["flat"].dtype == np.float32
    assert got["learner"]["nested"]["mask"].tolist() == [True]
    assert got["learner"]["0d"].shape == ()
    assert got["driver"] == {"returns": [1.5, float("inf")], "name": "a/b"}
    assert got["memory"]["none"] is None
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.ckpt"]


def test_the_previous_one_stays_and_is_used_when_the_newest_is_damaged(tmp_path: Path) -> None:
    write(tmp_path, tree(), updates=1)
    path = write(tmp_path, tree(), updates=2)
    assert checkpoint.load_latest(tmp_path).manifest["counters"]["updates"] == 2
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(bytes(data))
    loaded = checkpoint.load_latest(tmp_path)
    assert loaded.manifest["counters"]["updates"] == 1
    assert len(loaded.notices) == 1
    assert str(path) in loaded.notices[0]
    assert "going on from checkpoint.prev.ckpt" in loaded.notices[0]


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    path = write(tmp_path, tree())
    good = path.read_bytes()
    _, expected = checkpoint.read(path)
    rng = random.Random(0)
    refused: list[tuple[str, ...]] = []
    for _ in range(400):
        data = bytearray(good)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(data))
        try:
            manifest, got = checkpoint.read(path)
        except CheckpointError as error:
            refused.append(error.lines)
            continue
        # A flip in what carries no content (a date of the archive) changes nothing that is read.
        assert manifest["counters"] == {"updates": 1}
        np.testing.assert_array_equal(got["learner"]["flat"], expected["learner"]["flat"])
        np.testing.assert_array_equal(got["memory"]["rows"], expected["memory"]["rows"])
        assert got["driver"] == expected["driver"]
    assert len(refused) > 200
    assert all(len(lines) == 1 and str(path) in lines[0] for lines in refused)


@pytest.mark.parametrize("length", [0, 1, 100, 1000])
def test_a_truncated_file_is_refused(tmp_path: Path, length: int) -> None:
    path = write(tmp_path, tree())
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CheckpointError, match=r"checkpoint\.ckpt: "):
        checkpoint.read(path)


class _MakesFolder:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (self.path,)


def test_a_pickle_is_refused_and_never_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    evil = pickle.dumps(_MakesFolder(str(marker)))
    path = tmp_path / checkpoint.CURRENT
    path.write_bytes(evil)
    with pytest.raises(CheckpointError, match="refused: not a weights-only file"):
        checkpoint.read(path)
    with zipfile.ZipFile(path, "w") as archive:  # the layout of a torch file
        archive.writestr("archive/data.pkl", evil)
    with pytest.raises(CheckpointError, match="refused: not a weights-only file"):
        checkpoint.read(path)
    array = io.BytesIO()
    np.lib.format.write_array(array, np.array([_MakesFolder(str(marker))], object), allow_pickle=True)
    write(tmp_path, {"learner": {"flat": np.zeros(1)}})
    forge(path, "arrays/0.npy", array.getvalue())
    with pytest.raises(CheckpointError, match="Object arrays cannot be loaded"):
        checkpoint.read(path)
    assert not marker.exists()


def forge(path: Path, entry: str, data: bytes) -> None:
    """Replace an entry and its checksum, as a stranger could."""
    import hashlib

    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    entries[entry] = data
    manifest = json.loads(entries["manifest.json"])
    manifest["sha256"][entry] = hashlib.sha256(data).hexdigest()
    entries["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def test_a_newer_format_names_the_way_out(tmp_path: Path) -> None:
    path = write(tmp_path, tree())
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    entries["manifest.json"] = entries["manifest.json"].replace(b'"format": 1', b'"format": 99')
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    with pytest.raises(CheckpointError, match=r"format 99, this version reads up to 1; upgrade omnirl-core"):
        checkpoint.read(path)


def test_segments_of_a_large_memory_are_written_once(tmp_path: Path) -> None:
    rows = np.zeros((40, 1 << 20), np.uint8)
    rows[:] = np.arange(40, dtype=np.uint8)[:, None]
    content = {"memory": {"rows": rows}}
    write(tmp_path, content)
    first = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "replay").iterdir()}
    assert len(first) == 5  # 40 MB in segments of 8 MB
    rows[39] = 99
    path = write(tmp_path, content)
    second = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "replay").iterdir()}
    assert len(second) == 6
    assert all(second[name] == time for name, time in first.items())
    _, got = checkpoint.read(path)
    np.testing.assert_array_equal(got["memory"]["rows"], rows)
    write(tmp_path, content)  # now neither checkpoint refers to the segment that was replaced
    prune(tmp_path, 3, keep_last=0)
    assert len(list((tmp_path / "replay").iterdir())) == 5
    segment = next((tmp_path / "replay").iterdir())
    segment.write_bytes(segment.read_bytes()[:-1] + b"\x07")
    with pytest.raises(CheckpointError, match=segment.name):
        checkpoint.read(path)


def snapshot(folder: Path, version: int, keep_last: int = 2) -> Snapshot:
    return Snapshot(str(folder), version, {"counters": {"updates": version}}, tree(), True, {}, keep_last)


def test_the_writer_keeps_the_newest_agents_and_reports(tmp_path: Path) -> None:
    writer = CheckpointWriter()
    for version in (1, 2, 10):
        writer.start(snapshot(tmp_path, version), lambda path: Path(path).touch() or None)
    writer.wait()
    assert [(outcome.version, outcome.error) for outcome in writer.outcomes()] == [(1, ""), (2, ""), (10, "")]
    assert writer.outcomes() == ()
    assert agent_versions(tmp_path) == [2, 10]
    assert checkpoint.load_latest(tmp_path).manifest["counters"]["updates"] == 10


@pytest.mark.parametrize(
    ("keep_last", "left"), [(1, [20, 40, 50]), (2, [20, 40, 45, 50]), (0, [20, 40, 45, 50])]
)
def test_agents_of_a_time_that_no_longer_counts_go_with_the_next_save(
    tmp_path: Path, keep_last: int, left: list[int]
) -> None:
    """A run was killed after update 60, whose agent was a best one, and goes on from 40."""
    for version in (20, 40, 45, 60):
        (tmp_path / f"agent_{version}.pth").touch()
    writer = CheckpointWriter()
    saved = replace(snapshot(tmp_path, 50, keep_last), best=(20, 40))
    writer.start(saved, lambda path: Path(path).touch() or None)
    writer.wait()
    assert [outcome.error for outcome in writer.outcomes()] == [""]
    assert agent_versions(tmp_path) == left


def test_a_damaged_checkpoint_that_became_the_previous_one_fails_no_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run went on from the one before; its memory is in segments."""
    monkeypatch.setattr(checkpoint, "_SEGMENT_BYTES", 4)
    writer = CheckpointWriter()
    for version in (1, 2, 3):
        writer.start(snapshot(tmp_path, version), lambda path: Path(path).touch() or None)
        writer.wait()
        if version == 2:
            (tmp_path / checkpoint.CURRENT).write_bytes(b"damaged")
    assert [outcome.error for outcome in writer.outcomes()] == ["", "", ""]
    assert checkpoint.load_latest(tmp_path).manifest["counters"]["updates"] == 3


def test_a_failed_save_leaves_the_old_checkpoint_and_no_stub(tmp_path: Path) -> None:
    writer = CheckpointWriter()
    writer.start(snapshot(tmp_path, 1), lambda path: Path(path).touch() or None)

    def fails(path: str) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    writer.start(snapshot(tmp_path, 2), fails)
    writer.wait()
    (_, second) = writer.outcomes()
    assert "No space left on device" in second.error
    assert checkpoint.load_latest(tmp_path).manifest["counters"]["updates"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent_1.pth", "checkpoint.ckpt"]


def test_leftovers_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    (tmp_path / "replay").mkdir()
    (tmp_path / "checkpoint.ckpt.tmp").touch()
    (tmp_path / "replay" / "abc.npy.tmp").touch()
    (tmp_path / "notes.txt").touch()
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["notes.txt"]


def test_no_checkpoint_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        checkpoint.load_latest(tmp_path)
