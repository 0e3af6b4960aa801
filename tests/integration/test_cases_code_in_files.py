"""K30: a shared run or configuration that would run code when it is unpickled: refused, and nothing is run."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnirl.cli.app import run

RUN = """\
runner: {max_updates: 1, num_samplers: 1, num_envs_per_sampler: 2, num_evaluators: 0, ckpt_dir: run}
device: {threads: 1}
env: {module: gymnasium, id: CartPole-v1}
agent: {module: ppo}
modules:
  memory: {unroll_length: 4}
  learner: {minibatch_size: 8, epochs: 1}
  network: {hidden_sizes: [8]}
"""


class Hostile:
    """Unpickling it makes a folder."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (self.marker,)


def as_pickle(path: Path, content: Any) -> None:
    path.write_bytes(pickle.dumps(content))


def as_torch(path: Path, content: Any) -> None:
    import torch

    torch.save(content, path)


def as_zip(path: Path, content: Any) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", pickle.dumps(content))
        archive.writestr("archive/data.pkl", pickle.dumps(content))


FORMS = pytest.mark.parametrize("write", [as_pickle, as_torch, as_zip])


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    path = tmp_path / "marker"
    pickle.loads(pickle.dumps(Hostile(path)))  # the trap works
    path.rmdir()
    return path


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder of a run of one update, as somebody may have sent it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(RUN, encoding="utf-8")
    assert run(["train", "run.yaml", "--local", "--quiet"]) == 0
    capsys.readouterr()
    return tmp_path / "run"


def refused(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(arguments) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert "a bug" not in err
    return err


@FORMS
@pytest.mark.parametrize("command", ["test", "eval"])
def test_k30_an_agent(
    command: str,
    write: Callable[[Path, Any], None],
    shared: Path,
    marker: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(shared / "agent_5.pth", {"weights": Hostile(marker), "meta": {}})
    for arguments in (["run"], ["run", "--model", "agent_5"]):
        error = refused([command, *arguments, "--local"], 5, capsys)
        assert error == "run/agent_5.pth: refused: not a weights-only file\n"
        assert not marker.exists()


@FORMS
def test_k30_a_checkpoint(
    write: Callable[[Path, Any], None], shared: Path, marker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("checkpoint.ckpt", "checkpoint.prev.ckpt"):
        write(shared / name, {"weights": Hostile(marker)})
    error = refused(["resume", "run", "--local", "runner.max_updates=2"], 5, capsys)
    assert error.startswith("run/checkpoint.ckpt: refused: not a weights-only file")
    assert not marker.exists()


def test_k30_an_array_in_a_checkpoint(shared: Path, marker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An .npy of objects is a pickle: with a hash that is right it must still not be loaded."""
    stream = io.BytesIO()
    np.save(stream, np.array([Hostile(marker)], dtype=object), allow_pickle=True)
    path = shared / "checkpoint.ckpt"
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in entries if name.endswith(".npy"))
    entries[name] = stream.getvalue()
    manifest = json.loads(entries["manifest.json"])
    (hashes,) = (value for value in manifest.values() if isinstance(value, dict) and name in value)
    hashes[name] = hashlib.sha256(entries[name]).hexdigest()
    entries["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for entry, content in entries.items():
            archive.writestr(entry, content)
    (shared / "checkpoint.prev.ckpt").unlink(missing_ok=True)
    error = refused(["resume", "run", "--local", "runner.max_updates=2"], 5, capsys)
    assert error.startswith("run/checkpoint.ckpt: refused: not a weights-only file")
    assert not marker.exists()


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.mkdir [{marker}]\n",
        "runner: !!python/object/apply:os.mkdir [{marker}]\n",
        "runner: {{ckpt_dir: !!python/object/new:os.mkdir [{marker}]}}\n",
    ],
)
def test_k30_a_yaml_file(
    text: str, shared: Path, marker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = text.format(marker=marker)
    (tmp_path / "shared.yaml").write_text(hostile, encoding="utf-8")
    for command in (["train", "shared.yaml"], ["test", "shared.yaml"], ["config", "validate", "shared.yaml"]):
        error = refused(command, 2, capsys)
        assert error.startswith("shared.yaml:1:")
        assert "the tag !!python/object/" in error
        assert "is refused: a configuration holds plain values only" in error
    (shared / "run_config.yaml").write_text(hostile, encoding="utf-8")
    for command in (["resume", "run"], ["test", "run"]):
        assert refused(command, 2, capsys).startswith("run/run_config.yaml:1:")
    refused(["train", "cartpole-ppo", f"runner={hostile.strip()}"], 2, capsys)
    assert not marker.exists()
