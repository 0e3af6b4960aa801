"""The example plugins as their users have them: installed beside the core alone, found, checked, trained, tested.

There is no omnirl-algos, no omnirl-gymnasium, no torch and no Ray.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def clean(make_environment: Callable[[], Any], isolation: list[str]) -> Run:
    """``clean("omnirl", "algos", "list")`` runs a program of an environment with the core and both examples."""
    environment = make_environment()
    sources = [str(EXAMPLES / name) for name in ("acme-gridworld", "acme-reinforce")]
    environment.pip("install", "--no-deps", *isolation, *sources)
    run: Run = environment.run
    return run


def test_the_environment_is_as_bare_as_it_says(clean: Run) -> None:
    names = ("torch", "ray", "gymnasium", "omnirl.algorithms")
    code = f"from importlib.util import find_spec; print([name for name in {names} if find_spec(name)])"
    assert clean("python", "-c", code).stdout == "[]\n"


def test_the_command_works_without_our_algorithms(clean: Run) -> None:
    assert "train" in clean("omnirl", "--help").stdout
    listed = json.loads(clean("omnirl", "algos", "list", "--json").stdout)
    assert [(row["name"], row["distribution"]) for row in listed] == [("acme_reinforce", "acme-reinforce")]
    missing = clean("omnirl", "algos", "show", "ppo", check=False)
    assert missing.returncode == 3
    assert "pip install omnirl-algos" in missing.stderr


def test_the_doctors_find_nothing_wrong(clean: Run) -> None:
    examined = {
        row["plugin"]: row for row in json.loads(clean("omnirl", "plugins", "doctor", "--json").stdout)
    }
    assert set(examined) == {"acme-gridworld", "acme-reinforce", "core"}
    assert all(row["status"] == "ok" and row["findings"] == [] for row in examined.values())
    done = clean("omnirl", "doctor", "--json", check=False)
    bad = [item["subject"] for item in json.loads(done.stdout)["checks"] if item["status"] == "problem"]
    assert (done.returncode, bad) == (6, ["ray"])  # which is kept away here: only --local works


def test_every_key_is_shown(clean: Run) -> None:
    keys = {
        row["key"]
        for row in json.loads(clean("omnirl", "envs", "show", "acme_gridworld", "--json").stdout)[
            "parameters"
        ]
    }
    assert keys == {"env.size", "env.step_cost", "env.max_steps"}


def test_a_slip_of_the_pen_is_found(clean: Run) -> None:
    arguments = [
        "train",
        str(EXAMPLES / "gridworld.yaml"),
        "--local",
        "env.sise=4",
        "modules.learner.gama=0.9",
    ]
    done = clean("omnirl", *arguments, check=False)
    assert done.returncode == 2
    assert "did you mean 'size'?" in done.stderr
    assert "did you mean 'gamma'?" in done.stderr


def train(clean: Run, folder: str, *settings: str) -> dict[str, object]:
    """The last event of a run."""
    file = str(EXAMPLES / "gridworld.yaml")
    done = clean("omnirl", "train", file, "--local", "--json", "--run-dir", folder, *settings)
    finished: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    assert finished["status"] == "finished"
    return finished


RANDOM = """
import numpy as np
from acme_gridworld.backend import BACKEND, build_env
from acme_gridworld.config import GridworldConfig
from omnirl.api import EnvContext
from omnirl.testing.fakes import FakeStreams

class Random:
    def choose_action(self, obs, act):
        return rng.integers(4, size=len(obs))

rng = np.random.default_rng(0)
grid = build_env(GridworldConfig(), EnvContext("evaluator", 0, 8))
print(BACKEND.aggregate_evaluations(BACKEND.evaluation_loop(grid, Random(), 200, FakeStreams()))["return_mean"])
"""


def test_training_finds_the_shortest_way(clean: Run) -> None:
    """The optimum is known: no detour from any cell, so 1 - 0.02 (d - 1) for a start at distance d, which is 0.937 on
    the mean of the 24 starts."""
    trained = train(clean, "trained")["evaluation"]
    assert isinstance(trained, dict)
    assert (trained["solved"], trained["detour"]) == (1.0, 0.0)
    assert trained["return_mean"] == pytest.approx(0.937, abs=0.015)
    assert float(clean("python", "-c", RANDOM).stdout) < 0.3


def test_a_saved_agent_is_tested(clean: Run) -> None:
    train(clean, "tested")
    done = clean("omnirl", "test", "tested", "--local", "--json", "--episodes", "50", "--min-return", "0.9")
    figures = json.loads(done.stdout)
    assert figures["episodes"] == 50
    assert figures["metrics"]["detour"] == 0.0


def test_the_environment_is_fit_for_training(clean: Run) -> None:
    said = json.loads(
        clean("omnirl", "envs", "check", "--backend", "acme_gridworld", "env.size=4", "--json").stdout
    )
    assert (said["environment"], said["status"], said["checks"]) == ("acme_gridworld", "ok", [])
    assert said["steps"] == 1000
    assert said["episodes"] >= 25  # none is longer than 40 steps


def test_an_agent_is_filmed_without_gymnasium(clean: Run) -> None:
    pytest.importorskip("imageio_ffmpeg")
    train(clean, "filmed")
    video = json.loads(clean("omnirl", "record", "filmed", "--out", "walk.gif", "--json").stdout)
    assert (video["file"], video["width"], video["height"]) == ("walk.gif", 80, 80)
    assert video["frames"] == video["metrics"]["length_mean"] + 1
    assert clean("omnirl", "enjoy", "filmed", check=False).returncode == 2  # it has no window


@pytest.mark.parametrize("name", ["acme-gridworld", "acme-reinforce"])
def test_their_own_tests_pass(clean: Run, name: str) -> None:
    done = clean(
        "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
        str(EXAMPLES / name / "tests"),
    )
    assert " passed" in done.stdout
    assert "failed" not in done.stdout
