"""The agent file: what is saved comes back, and nothing else is ever loaded."""

from __future__ import annotations

import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import torch

from omnirl.algorithms.shared.training.torch_state import AGENT_FILE
from omnirl.api import CheckpointError

WEIGHTS = {"layers.0.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "count": np.array(3, np.int64)}
META = {"algorithm": "ppo", "version": 7, "nested": {"list": [1, 2.5, None, True]}}


def test_round_trip(tmp_path):
    path = tmp_path / "agent_7.pth"
    AGENT_FILE.save(path, WEIGHTS, META)
    weights, meta = AGENT_FILE.load(path)
    assert meta == META
    assert set(weights) == set(WEIGHTS)
    for name, array in WEIGHTS.items():
        np.testing.assert_array_equal(weights[name], array)
        assert weights[name].dtype == array.dtype
    assert os.listdir(tmp_path) == ["agent_7.pth"]


def test_torch_alone_can_load_it(tmp_path):
    path = tmp_path / "agent.pth"
    AGENT_FILE.save(path, WEIGHTS, META)
    content = torch.load(path, weights_only=True)
    assert set(content) == {"weights", "meta"}
    assert content["meta"]["version"] == 7
    assert content["weights"]["layers.0.weight"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_read_only_weights_are_saved(tmp_path):
    array = np.ones(2, np.float32)
    array.flags.writeable = False
    AGENT_FILE.save(tmp_path / "agent.pth", {"w": array}, {})
    assert AGENT_FILE.load(tmp_path / "agent.pth")[0]["w"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("meta", [{"x": object()}, {"x": float("nan")}])
def test_meta_that_is_not_json_is_refused_and_leaves_no_file(tmp_path, meta):
    with pytest.raises((TypeError, ValueError)):
        AGENT_FILE.save(tmp_path / "agent.pth", WEIGHTS, meta)
    assert os.listdir(tmp_path) == []


class Hostile:
    """Unpickling it makes a folder."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return os.mkdir, (self.marker,)


@pytest.mark.parametrize("form", ["pickle", "torch", "zip"])
def test_a_file_with_code_is_refused_and_not_run(tmp_path, form):
    path, marker = tmp_path / "agent_5.pth", tmp_path / "marker"
    content = {"weights": Hostile(marker), "meta": {}}
    if form == "pickle":
        path.write_bytes(pickle.dumps(content))
    elif form == "torch":
        torch.save(content, path)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", pickle.dumps(content))
    with pytest.raises(CheckpointError, match="refused: not a weights-only file") as raised:
        AGENT_FILE.load(path)
    assert not marker.exists()
    assert raised.value.lines == (f"{path}: refused: not a weights-only file",)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", json.dumps({"weights": {}}).encode()])
def test_a_damaged_or_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "agent.pth"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="refused"):
        AGENT_FILE.load(path)


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "agent.pth"
    AGENT_FILE.save(path, WEIGHTS, META)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(CheckpointError, match="refused"):
        AGENT_FILE.load(path)


def test_tensors_of_another_form_are_refused(tmp_path):
    path = tmp_path / "agent.pth"
    torch.save({"policy": torch.zeros(1)}, path)
    with pytest.raises(CheckpointError, match="refused"):
        AGENT_FILE.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="no such file"):
        AGENT_FILE.load(tmp_path / "agent_9.pth")
