"""Which agent file of a run is meant, and what is said of one that does not fit."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from omnirl.api import ArraySpec, ContinuousAction, DiscreteAction, EnvSpec
from omnirl.api.errors import CheckpointError, NotFoundError
from omnirl.runtime.agents import agent_path, check_fits, check_network

SPEC = EnvSpec(ArraySpec((3,)), DiscreteAction(2))


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run with the agents 9 and 40, of which 9 is the best, and one that lies elsewhere."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("agent_9.pth", "agent_40.pth", "agent_mine.pth", "../other.pth"):
        (folder / name).touch()
    (folder / "best.json").write_text('{"updates": 9, "return_mean": 1.5}', encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (None, "agent_40.pth"),
        ("best", "agent_9.pth"),
        ("agent_9", "agent_9.pth"),
        ("agent_9.pth", "agent_9.pth"),
        ("agent_mine", "agent_mine.pth"),
    ],
)
def test_a_model_of_the_run(run_folder: Path, model: str | None, found: str) -> None:
    assert agent_path(run_folder, model) == run_folder / found


def test_a_file_elsewhere_by_its_path(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert agent_path(run_folder, "other.pth") == Path("other.pth")
    with pytest.raises(NotFoundError, match=r"no model 'agent_7'; there are: agent_9, agent_40"):
        agent_path(run_folder, "agent_7")


def test_what_was_saved_of_the_same_spaces_fits() -> None:
    meta = json.loads(json.dumps({"algorithm": "ppo", "spaces": SPEC.describe()}))
    check_fits("agent", meta, "ppo", SPEC)


def test_each_difference_is_a_line() -> None:
    meta = json.loads(json.dumps({"algorithm": "ppo", "spaces": SPEC.describe()}))
    with pytest.raises(CheckpointError) as caught:
        check_fits("agent", meta, "dqn", SPEC)
    assert caught.value.lines == ("agent: saved by 'ppo', the configuration says 'dqn'",)
    wider = dataclasses.replace(SPEC, observation=ArraySpec((4,)))
    with pytest.raises(CheckpointError) as caught:
        check_fits("agent", meta, "ppo", wider)
    (line,) = caught.value.lines
    assert line.startswith("agent: observation space saved ")
    other = dataclasses.replace(SPEC, action=ContinuousAction((-1.0,), (1.0,)))
    with pytest.raises(CheckpointError) as caught:
        check_fits("agent", meta, "ppo", other)
    (line,) = caught.value.lines
    assert line.startswith("agent: action space saved ")


def test_each_key_of_another_network_is_a_line() -> None:
    """Keys that only one of both knows say nothing; nor does a file without a configuration."""
    meta = {"config": {"modules": {"network": {"hidden_sizes": [8], "activation": "tanh", "old": 1}}}}
    check_network("agent", meta, {"hidden_sizes": (8,), "activation": "tanh", "new": 2})
    check_network("agent", {}, {"hidden_sizes": (8,)})
    check_network("agent", meta, {})
    with pytest.raises(CheckpointError) as caught:
        check_network("agent", meta, {"hidden_sizes": (8, 8), "activation": "relu"})
    assert caught.value.lines == (
        "agent: modules.network.hidden_sizes was [8], is [8, 8]: give it the network that it was trained with",
        'agent: modules.network.activation was "tanh", is "relu": give it the network that it was trained with',
    )
