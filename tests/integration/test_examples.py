"""The examples say what they claim to say: each pair of files is a valid configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnirl.cli.app import run
from omnirl.config.files import load_text

EXAMPLES = Path(__file__).parents[2] / "examples"


def pair(runner: str, agent: str, example: str = "cartpole") -> list[str]:
    folder = EXAMPLES / example
    return ["--runner-config", str(folder / runner), "--agent-config", str(folder / agent)]


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


@pytest.mark.parametrize("example", ["bipedal_walker", "car_racing"])
def test_the_examples_of_box2d(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shown = {}
    for runner in ("train.yaml", "test.yaml"):
        assert run(["config", "validate", *pair(runner, "ppo.yaml", example)]) == 0, capsys.readouterr().err
        capsys.readouterr()
        assert run(["config", "show", *pair(runner, "ppo.yaml", example)]) == 0
        shown[runner] = load_text(capsys.readouterr().out, "shown").data
    train, test = shown["train.yaml"], shown["test.yaml"]
    assert test["runner"]["eval_model"] == f"agent_{train['runner']['max_updates']}"
    assert test["runner"]["ckpt_dir"] == train["runner"]["ckpt_dir"]
    assert test["seed"]["evaluator"] != train["seed"]["evaluator"]
    # What the agent observes is the same in both.
    assert test["env"]["frame_stack"] == train["env"]["frame_stack"]
    seen = [entry for entry in train["env"]["wrappers"] if "reward_scale" not in entry]
    assert test["env"]["wrappers"] == seen


@pytest.mark.parametrize("example", ["bipedal_walker", "car_racing"])
def test_the_examples_of_box2d_fit_their_environments(example, tmp_path, monkeypatch, capsys):
    pytest.importorskip("Box2D", reason="the extra box2d is not installed")
    monkeypatch.chdir(tmp_path)
    for runner in ("train.yaml", "test.yaml"):
        assert run(["config", "validate", "--deep", *pair(runner, "ppo.yaml", example)]) == 0, (
            capsys.readouterr().err
        )
