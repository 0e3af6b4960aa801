"""Each import contract of the root pyproject.toml is broken by one forbidden import, and by nothing else.

A contract that names a module wrongly passes for ever. So a small tree of our layout is laid down, clean once
and then once per rule with one line too much, and import-linter judges it by the real contracts. Tree and
contracts are renamed, since an installed omnirl would be found beside the tree and read instead of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RENAMED = "samplerl"
NAMES = (
    "a2c",
    "c51",
    "ddpg",
    "ddqn",
    "dqn",
    "dueling_dqn",
    "impala",
    "per_dqn",
    "ppo",
    "qr_dqn",
    "sac",
    "td3",
    "tqc",
)
ROOMS = ("acting", "training", "off_policy", "on_policy", "values", "bounded_actions")
LINES = {
    "api/__init__": "",
    "api/plugin": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch",
    "buffers/__init__": "",
    "cli/app": "",
    "cli/__init__": "",
    "config/__init__": "",
    "doctor/__init__": "",
    "loops/__init__": "",
    "observers/__init__": "",
    "observers/plugin": "",
    "plugins/__init__": "import omnirl.api",
    "runs/__init__": "import omnirl.runtime",
    "run": "import omnirl.plugins\nimport omnirl.runtime.train",
    "runtime/__init__": "",
    "runtime/cluster": "import ray",
    "runtime/ray_transport": "import ray",
    "runtime/train": "import omnirl.runtime.ray_transport",
    "testing/__init__": "",
    "algorithms/__init__": "",
    "algorithms/plugin": "import omnirl.api.plugin",
    "algorithms/shared/__init__": "",
    **{f"algorithms/shared/{room}/__init__": "" for room in ROOMS},
    "algorithms/shared/training/torch_state": "import io, os, pathlib, torch",
    **{
        f"algorithms/{name}/{part}": ""
        for name in NAMES
        for part in ("__init__", "config", "learner", "memory", "policy")
    },
    "networks/__init__": "",
    "networks/mlp": "import torch",
    "networks/numpy_mlp": "import numpy",
    "presets/__init__": "",
    "envs/gymnasium/__init__": "",
    "envs/gymnasium/backend": "import gymnasium",
    "envs/gymnasium/config": "",
    "envs/gymnasium/plugin": "import omnirl.api",
}
CORE = "The core knows neither torch nor gymnasium nor the other distributions"
RAY = "Ray belongs to two files of the runtime"
ALGORITHMS = "Algorithms and networks know neither the runtime nor an environment"
BACKEND = "The Gymnasium backend knows neither algorithms nor the runtime"
LIGHT = "What describes a plugin, and what acts or remembers, starts without torch, gymnasium and ray"
RUNS = "Runs on the disk are read without those who watch or start runs"
ONE_WAY = "The rooms of what algorithms share stand on each other in one direction"
FILES = "Algorithms touch no files, except torch_state"


def judge(folder: Path, module: str = "", line: str = "") -> tuple[int, set[str]]:
    """Lay the tree down with ``line`` added to ``module``; return the exit code and the broken contracts."""
    for name, text in LINES.items():
        path = folder / RENAMED / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(renamed(f"{text}\n{line if name == module else ''}\n"))
    (folder / "pyproject.toml").write_text(renamed((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as c; c()",
        "--no-cache",
    ]
    env = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    run = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    broken = {text.partition(" BROKEN")[0] for text in run.stdout.splitlines() if " BROKEN" in text}
    return run.returncode, broken


def renamed(text: str) -> str:
    return text.replace("omnirl", RENAMED)


def test_a_clean_tree_passes(tmp_path: Path) -> None:
    assert judge(tmp_path) == (0, set())


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("runtime/train", "import ray", {RAY}),
        ("cli/app", "def start():\n    import ray", {RAY}),
        ("loops/__init__", "import torch", {CORE}),
        ("cli/app", "def start():\n    import omnirl.algorithms.ppo", {CORE}),
        ("algorithms/ppo/learner", "import omnirl.runtime.seeding", {ALGORITHMS}),
        ("networks/mlp", "import gymnasium", {ALGORITHMS}),
        ("envs/gymnasium/backend", "import torch", {BACKEND}),
        ("envs/gymnasium/backend", "from omnirl import buffers", {BACKEND}),
        ("api/plugin", "import omnirl.testing", {"The API stands on nothing of ours"}),
        (
            "runtime/train",
            "import omnirl.cli",
            {"The runtime knows neither the command line nor the plugins"},
        ),
        ("runs/__init__", "import omnirl.observers", {RUNS}),
        ("runs/__init__", "import omnirl.run", {RUNS}),
        ("plugins/__init__", "import omnirl.runtime", {"The plugins know nothing of the runtime"}),
        ("algorithms/ppo/learner", "from omnirl.algorithms import dqn", {"No algorithm imports another"}),
        ("algorithms/shared/acting/__init__", "import omnirl.algorithms.shared.values", {ONE_WAY}),
        ("algorithms/shared/values/__init__", "import omnirl.algorithms.shared.on_policy", {ONE_WAY}),
        ("algorithms/dqn/memory", "import torch", {LIGHT}),
        ("algorithms/dqn/policy", "from omnirl.networks import mlp", {LIGHT}),
        ("algorithms/dqn/config", "def model():\n    import torch", {LIGHT}),
        ("envs/gymnasium/plugin", "import omnirl.envs.gymnasium.backend", {LIGHT}),
        ("algorithms/dqn/learner", "import os", {FILES}),
        ("networks/mlp", "from pathlib import Path", {FILES}),
    ],
)
def test_one_forbidden_import_breaks_its_contract(
    tmp_path: Path, module: str, line: str, broken: set[str]
) -> None:
    code, found = judge(tmp_path, module, line)
    assert code != 0
    assert found == broken
