"""The examples say what they claim to say: each pair of files is a valid configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnirl.cli.app import run
from omnirl.config.files import load_text

EXAMPLES = Path(__file__).parents[2] / "examples" / "cartpole"


def pair(runner: str, agent: str) -> list[str]:
    return ["--runner-config", str(EXAMPLES / runner), "--agent-config", str(EXAMPLES / agent)]


@pytest.mark.parametrize("runner", ["train.yaml", "test.yaml"])
@pytest.mark.parametrize("agent", ["ppo.yaml", "dqn.yaml"])
def test_each_pair_is_valid(runner, agent, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["config", "validate", "--deep", *pair(runner, agent)]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out == f"valid: {agent.removesuffix('.yaml')} with gymnasium\n"


@pytest.mark.parametrize(
    ("agent", "updates", "model"), [("ppo.yaml", 100, "agent_100"), ("dqn.yaml", 49500, "agent_49500")]
)
def test_the_agent_that_is_tested_is_the_one_that_training_ends_with(agent, updates, model, capsys):
    shown = {}
    for runner in ("train.yaml", "test.yaml"):
        assert run(["config", "show", *pair(runner, agent)]) == 0
        shown[runner] = load_text(capsys.readouterr().out, "shown").data["runner"]
    assert shown["train.yaml"]["max_updates"] == updates
    assert shown["test.yaml"]["eval_model"] == model
    assert shown["test.yaml"]["ckpt_dir"] == shown["train.yaml"]["ckpt_dir"]
    assert shown["test.yaml"]["num_evaluators"] == 4
    assert shown["test.yaml"]["num_episodes"] == 25
