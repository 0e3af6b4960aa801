"""The example plugins as their users have them: installed beside the core alone, found, checked, trained, tested.

The environment holds the core's wheel, the two examples and what the core depends on: no omnirl-algos, no
omnirl-gymnasium, no torch. Dependencies are linked from the interpreter that runs the tests, which costs nothing.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "plugins"
ABSENT = ("omnirl", "__editable__", "_editable", "torch", "gymnasium", "ray", "acme")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def link_dependencies(folder: Path) -> None:
    """Links to all that the tests' own interpreter has installed, but ours and what the core must do without."""
    folder.mkdir()
    for site in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for item in Path(site).iterdir():
            if not item.name.startswith(ABSENT) and item.suffix != ".pth":
                (folder / item.name).symlink_to(item)


@pytest.fixture(scope="module")
def core_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = os.environ.get("OMNIRL_WHEELS")
    folder = Path(built) if built else tmp_path_factory.mktemp("wheels")
    if not built:
        command = ["wheel", "-q", "--no-deps", *isolation(), "-w", str(folder), str(ROOT / "omnirl-core")]
        subprocess.run([sys.executable, "-m", "pip", *command], check=True)
    return next(folder.glob("omnirl_core-*.whl"))


def isolation() -> list[str]:
    """pip need not fetch hatchling where it is installed."""
    return [] if importlib.util.find_spec("hatchling") is None else ["--no-build-isolation"]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory, core_wheel: Path) -> Run:
    """``clean("omnirl", "algos", "list")`` runs a program of a fresh virtual environment in a folder of its own."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "venv", symlinks=True)
    programs = folder / "venv" / "bin"
    link_dependencies(folder / "dependencies")
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(str(folder / "dependencies"), encoding="utf-8")
    work = folder / "work"
    work.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMNIRL_", "PYTHON"))}
    env = {**kept, "PATH": f"{programs}{os.pathsep}{kept.get('PATH', '')}", "OMP_NUM_THREADS": "1"}

    def run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(programs / command[0]), *command[1:]],
            cwd=work,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    install = ["-m", "pip", "--python", str(programs / "python"), "install", "-q", "--no-deps", *isolation()]
    sources = [str(core_wheel), *(str(EXAMPLES / name) for name in ("acme-gridworld", "acme-reinforce"))]
    subprocess.run([sys.executable, *install, *sources], check=True, env=env, timeout=180)
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
