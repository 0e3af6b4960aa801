"""Mistakes with files, folders and names: files that are no configuration, runs and agents that are not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from omnirl.cli.app import run

PPO = ("cartpole-ppo",)


FILES: list[tuple[bytes, str]] = [
    (b"runner:\n\tmax_updates: 1\n", "a.yaml:2:1 a tab: YAML is indented with spaces"),
    (b"seed: 1\n---\nseed: 2\n", "a.yaml:2:1 a second document begins here; a configuration is one document"),
    (b"seed: 1\nagent: {module: ppo}\nseed: 2\n", "a.yaml:3:1 duplicate key 'seed' (first at line 1)"),
    (b"runner: {log_name: caf\xe9}\n", "a.yaml:1:23 the byte 0xe9 is not UTF-8 text"),
    (
        b"a: &a [1, 1]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        "a.yaml:1:4 anchors and aliases (&a) are refused: write it out",
    ),
    (b"# " + b"x" * 1_000_001, "a.yaml: larger than 1 MB, so this is no configuration"),
    (b"- seed\n", "a.yaml:1:1 a configuration is a mapping of sections, not a list"),
    (b"runner: {max_updates: 1\n", "a.yaml:2:1 "),
]


@pytest.mark.parametrize(("content", "expected"), FILES, ids=[item[1][7:40] for item in FILES])
def test_a_file_that_is_no_configuration(
    content: bytes, expected: str, refused: Callable[..., list[str]], tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_bytes(content)
    for command in (["config", "validate"], ["train"], ["train", "--dry-run"], ["test"], ["config", "show"]):
        (line,) = refused(*command, "a.yaml")
        assert line.startswith(expected)


def test_swapped_files(refused: Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(
        "runner: {max_updates: 1}\nenv: {module: gymnasium, id: CartPole-v1}\n"
    )
    (tmp_path / "ppo.yaml").write_text("agent: {module: ppo}\nmodules: {learner: {lr: 1e-3}}\n")
    for command in ("train", "test"):
        (line,) = refused(command, "--runner-config", "ppo.yaml", "--agent-config", "train.yaml")
        assert line.startswith(
            "the runner file and the agent file are swapped: ppo.yaml (runner) holds agent, modul"
        )


SMALL = (
    *("runner.num_samplers=1", "runner.num_envs_per_sampler=2", "runner.num_evaluators=0"),
    *("modules.memory.unroll_length=4", "modules.learner.minibatch_size=8", "modules.learner.epochs=1"),
)


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """A finished run of two updates in the folder ``here``."""
    monkeypatch.chdir(tmp_path)
    assert run(["train", *PPO, *SMALL, "--updates", "2", "--run-dir", "here", "--local", "--quiet"]) == 0
    capsys.readouterr()
    return "here"


def test_a_folder_of_another_run(trained: str, refused: Callable[..., list[str]]) -> None:
    arguments = ["train", *PPO, *SMALL, "--run-dir", trained, "--local"]
    (line,) = refused(*arguments, "--updates", "3")
    assert line.startswith("here: holds another run (its run_config.yaml differs")
    (line,) = refused(*arguments, "--updates", "2")
    assert line.startswith("here: holds this run, finished")


def test_a_model_that_is_missing(trained: str, refused: Callable[..., list[str]], tmp_path: Path) -> None:
    """Named on the command line it is not found (3); named in a file, the file is wrong (2)."""
    there = "here: no model 'agent_9'; there are: agent_2"
    assert refused("test", trained, "--model", "agent_9", code=3) == [there]
    (tmp_path / "test.yaml").write_text(
        "runner:\n  ckpt_dir: here\n  eval_model: agent_9\n"
        "env: {module: gymnasium, id: CartPole-v1}\nagent: {module: ppo}\n"
    )
    assert refused("test", "test.yaml") == [f"test.yaml:3:3 runner.eval_model: {there}"]


def test_a_folder_that_cannot_be_written(
    refused: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write anywhere, so the answer of the operating system is given.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    (line,) = refused("train", *PPO, "--run-dir", "out", "--local")
    assert line.startswith("--run-dir runner.ckpt_dir: out cannot be made: no permission to write in ")


def test_runs_that_is_a_file(refused: Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    (line,) = refused("train", *PPO, "--local")
    assert line == "runner.ckpt_dir: runs/cartpole-ppo-seed0: cannot be made: Not a directory"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("train", "cartpole-pop"), "unknown preset 'cartpole-pop' (did you mean 'cartpole-ppo'?)"),
        (("train", "nosuch.yaml"), "nosuch.yaml: no such file"),
        (("train", "."), ".: is a folder, not a YAML file"),
        (("test", "cartpole-ppo"), "runs/cartpole-ppo-seed0: no such run"),
        (("resume", "nosuch"), "nosuch: no such run"),
        (("config", "init", "cartpole"), "unknown preset 'cartpole'"),
        (("algos", "show", "pp"), "unknown algorithm 'pp' (did you mean 'ppo'?)"),
    ],
)
def test_what_the_command_line_names_is_not_there(
    arguments: tuple[str, ...], expected: str, refused: Callable[..., list[str]]
) -> None:
    (line,) = refused(*arguments, code=3)
    assert line.startswith(expected)


def test_all_mistakes_are_told_at_once(refused: Callable[..., list[str]]) -> None:
    wrong = ("modules.learner.gama=1", "modules.learner.gamma=2", "runner.num_samplers=0", "seed=x")
    assert len(refused("train", *PPO, *wrong)) == 4
