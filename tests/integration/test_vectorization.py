"""``env.vectorization``: the same run however its environments are stepped, and a decision that is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnirl.api import Decision
from omnirl.config.files import load_file
from omnirl.envs.gymnasium import backend
from omnirl.run import configure, train
from omnirl.runtime import checkpoint, setup
from omnirl.runtime.run_dir import CONFIG_FILE

SMALL = {
    "runner": {"num_envs_per_sampler": 3, "num_evaluators": 0},
    "modules": {"memory": {"unroll_length": 16}, "learner": {"minibatch_size": 48}},
}


@pytest.fixture
def trained(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """``trained(name, updates, vectorization)`` -> run_config.yaml; goes on with the run where it is there."""

    def run(name: str, updates: int, vectorization: str, resume: str = "auto") -> dict[str, Any]:
        overrides = {"runner": {"ckpt_dir": str(tmp_path / name), "max_updates": updates, "max_steps": None}}
        config = configure("cartpole-ppo", SMALL, overrides, {"env": {"vectorization": vectorization}})
        train(config, local=True, resume=resume)  # type: ignore[arg-type]
        return dict(load_file(tmp_path / name / CONFIG_FILE).data)

    return run


@pytest.fixture
def decides(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Any]]:
    """``decides("process")``: the backend's decision from now on; the contexts that it was asked with."""
    asked: list[Any] = []

    def choose(value: str) -> list[Any]:
        def decide(config: Any, context: Any) -> list[Decision]:
            asked.append(context)
            return (
                [Decision("vectorization", value, "a step takes 9 ms")]
                if config.vectorization == "auto"
                else []
            )

        monkeypatch.setattr(backend, "BACKEND", replace(backend.BACKEND, decide=decide))
        return asked

    return choose


def test_a_run_in_processes_equals_a_run_in_one(trained: Callable[..., Any], tmp_path: Path) -> None:
    weights = []
    for way in ("inline", "process"):
        assert trained(way, 4, way)["env"]["vectorization"] == way
        weights.append(checkpoint.load_latest(tmp_path / way))
    left, right = (loaded.tree for loaded in weights)
    leaves = list(arrays(left))
    assert len(leaves) > 5
    for (place, a), (_, b) in zip(leaves, arrays(right), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=place)


def arrays(tree: Any, place: str = "") -> Any:
    if isinstance(tree, dict):
        for key in sorted(tree):
            yield from arrays(tree[key], f"{place}/{key}")
    elif isinstance(tree, np.ndarray):
        yield place, tree


def test_auto_is_decided_once_written_down_and_kept(
    trained: Callable[..., Any], decides: Callable[[str], list[Any]]
) -> None:
    asked = decides("process")
    assert trained("run", 2, "auto")["env"]["vectorization"] == "process"
    assert (asked[0].num_envs, asked[0].num_samplers) == (
        3,
        setup.check.num_samplers(configure("cartpole-ppo")),
    )
    decides("inline")
    assert trained("run", 4, "auto", "must")["env"]["vectorization"] == "process"


def test_the_reason_is_told_when_the_run_starts(decides: Callable[[str], list[Any]]) -> None:
    decides("process")
    config = configure("cartpole-ppo", SMALL)
    decided = setup.decide(config)
    assert decided.env.vectorization == "process"
    assert decided.notes == ("env.vectorization: auto is process: a step takes 9 ms",)
    assert decided.replace({"runner": {"max_steps": 500}}).notes == decided.notes


def test_what_was_decided_before_is_not_decided_again(decides: Callable[[str], list[Any]]) -> None:
    asked = decides("process")
    earlier = {"env": {"vectorization": "inline"}, "runner": {"num_samplers": 7}, "device": {"threads": 5}}
    config = configure("cartpole-ppo", SMALL, {"runner": {"num_samplers": "auto"}})
    decided = setup.decide(config, earlier)
    assert (decided.env.vectorization, decided.runner.num_samplers, decided.device.threads) == (
        "inline",
        7,
        5,
    )
    assert all(context.num_samplers == 7 for context in asked)
    # What the user sets is no ``auto``.
    config = configure("cartpole-ppo", SMALL, {"env": {"vectorization": "process"}})
    assert setup.decide(config, earlier).env.vectorization == "process"
