"""Checkpoints of several learners: what is equal is written once, each rank reads its own part and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnirl.runtime import checkpoint
from omnirl.runtime.ranks import part_of_rank, shared


def state(weight: float, pending: float) -> dict[str, Any]:
    return {"weight": np.full(3, weight), "pending": {"sum": np.full(2, pending)}, "version": 7}


def test_only_what_is_equal_in_every_bit_is_shared() -> None:
    first = state(1.0, 2.0)
    other = shared(state(1.0, 5.0), first)
    assert other["weight"] is first["weight"]
    assert other["version"] == 7
    np.testing.assert_array_equal(other["pending"]["sum"], [5.0, 5.0])
    for different in (np.full(3, 1.0, np.float32), np.full((3, 1), 1.0), np.array([1.0, 1.0, np.nan])):
        assert shared({"weight": different}, first)["weight"] is different
    assert shared({"weight": np.array([-0.0])}, {"weight": np.array([0.0])})["weight"].tobytes()[-1] == 0x80
    for first_of_another_form in ({}, {"weight": {"a": 1}}, {"weight": 3.0}, None):
        assert shared(state(1.0, 5.0), first_of_another_form)["weight"].tolist() == [1.0, 1.0, 1.0]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint of three learners with memories of three segments each."""
    monkeypatch.setattr(checkpoint, "_SEGMENT_BYTES", 1024)
    first = state(1.0, 0.0)
    ranks = {
        str(rank): {"learner": shared(state(1.0, float(rank)), first), "memory": {"rows": rows(rank)}}
        for rank in (1, 2)
    }
    tree = {"driver": {"wall": 0.0}, "learner": first, "memory": {"rows": rows(0)}, "ranks": ranks}
    checkpoint.write(tmp_path / checkpoint.CURRENT, {"learners": 3}, tree)
    return tmp_path


def rows(rank: int) -> Any:
    return np.full((3, 128), float(rank)) + 10.0 * np.arange(3)[:, None]


def read(folder: Path, rank: int, count: int) -> dict[str, Any]:
    return checkpoint.read(folder / checkpoint.CURRENT, lambda tree: part_of_rank(tree, rank, count))[1]


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_each_rank_gets_its_own_part(written: Path, rank: int) -> None:
    part = read(written, rank, 3)
    assert sorted(part) == ["learner", "memory"]
    np.testing.assert_array_equal(part["learner"]["weight"], np.full(3, 1.0))
    np.testing.assert_array_equal(part["learner"]["pending"]["sum"], np.full(2, float(rank)))
    np.testing.assert_array_equal(part["memory"]["rows"], rows(rank))


@pytest.mark.parametrize(("rank", "count"), [(0, 1), (1, 2), (3, 4)])
def test_another_number_of_learners_gets_the_learner_of_rank_0_alone(
    written: Path, rank: int, count: int
) -> None:
    part = read(written, rank, count)
    assert sorted(part) == ["learner"]
    np.testing.assert_array_equal(part["learner"]["pending"]["sum"], [0.0, 0.0])


def test_the_checkpoint_of_one_learner_is_as_it_was(tmp_path: Path) -> None:
    tree = {"learner": state(1.0, 2.0), "memory": {"rows": np.arange(3)}}
    checkpoint.write(tmp_path / checkpoint.CURRENT, {}, tree)
    assert checkpoint.load_latest(tmp_path).learners == 1
    assert sorted(read(tmp_path, 0, 1)) == ["learner", "memory"]
    assert sorted(read(tmp_path, 0, 2)) == ["learner"]
    del tree["memory"]
    checkpoint.write(tmp_path / checkpoint.CURRENT, {}, tree)
    assert sorted(read(tmp_path, 0, 1)) == ["learner"]


def test_a_rank_reads_no_segment_of_the_others(written: Path) -> None:
    """A machine need not have the room for the memories of all."""
    encoded = checkpoint.segment_names
    kept: set[str] = set()

    def noted(tree: dict[str, Any]) -> dict[str, Any]:
        part = part_of_rank(tree, 1, 3)
        kept.update(encoded(part))
        return part

    checkpoint.read(written / checkpoint.CURRENT, noted)
    for path in (written / checkpoint.SEGMENTS).glob("*.npy"):
        if path.stem not in kept:
            path.unlink()
    assert len(list((written / checkpoint.SEGMENTS).glob("*.npy"))) == len(kept) == 3
    np.testing.assert_array_equal(read(written, 1, 3)["memory"]["rows"], rows(1))
    with pytest.raises(checkpoint.CheckpointError, match="cannot be read"):
        read(written, 2, 3)


def test_equal_arrays_are_written_once(written: Path) -> None:
    manifest = checkpoint.read_manifest(written / checkpoint.CURRENT)
    arrays = [name for name in manifest["sha256"] if name.endswith(".npy")]
    assert len(arrays) == 1 + 3  # one weight, a pending sum of each rank
