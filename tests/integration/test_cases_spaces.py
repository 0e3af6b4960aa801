"""K22: the action spaces that users have, with every algorithm: trained on, or refused in one line beforehand."""

from __future__ import annotations

import csv
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import omnirl.run
from omnirl.api.errors import ConfigError

ZOO = """
    import gymnasium
    import numpy as np
    from gymnasium import spaces

    SPACES = {
        "Endless": spaces.Box(-np.inf, np.inf, (2,)),
        "Whole": spaces.Box(0, 5, (1,), np.int64),
        "Table": spaces.MultiDiscrete([[2], [2]]),
        "Bits": spaces.MultiBinary(4),
        "Named": spaces.Dict({"speed": spaces.Discrete(2)}),
        "Shifted": spaces.Discrete(3, start=-1),
    }
    RECEIVED = []


    class Zoo(gymnasium.Env):
        def __init__(self, space):
            self.observation_space = spaces.Box(-1, 1, (3,))
            self.action_space = space

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.steps = 0
            return self._observation(), {}

        def step(self, action):
            assert self.action_space.contains(action), action
            RECEIVED.append(action)
            self.steps += 1
            return self._observation(), float(self.np_random.random()), False, self.steps == 10, {}

        def _observation(self):
            return self.np_random.uniform(-1, 1, 3).astype(np.float32)


    for name, space in SPACES.items():
        gymnasium.register(f"zoo/{name}-v0", lambda space=space: Zoo(space))
"""
CASES = {
    ("ppo", "Endless"): None,
    ("ppo", "Whole"): "the action space Box(0, 5, (1,), int64) is a Box of int64",
    ("ppo", "Table"): None,
    ("ppo", "Bits"): None,
    ("ppo", "Named"): "the action space Dict('speed': Discrete(2)) is not supported",
    ("dqn", "Endless"): "dqn needs discrete actions; zoo/Endless-v0 has continuous actions of 2 values",
    ("dqn", "Whole"): "the action space Box(0, 5, (1,), int64) is a Box of int64",
    ("dqn", "Table"): "dqn needs discrete actions; zoo/Table-v0 has multi-discrete actions of [2, 2] values",
    ("dqn", "Bits"): "dqn needs discrete actions; zoo/Bits-v0 has multi-discrete actions of [2, 2, 2, 2]",
    ("dqn", "Named"): "the action space Dict('speed': Discrete(2)) is not supported",
}
"""What is wrong with it; None where it trains."""
ENV_SIZES = {"num_samplers": 1, "num_envs_per_sampler": 2, "num_evaluators": 1, "num_episodes": 2}


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of environments, as users have them."""
    name = f"space_zoo_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(ZOO), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield name
    for known in [known for known in gymnasium.registry if known.startswith("zoo/")]:
        del gymnasium.registry[known]


def settings(algorithm: str, space: str, zoo: str) -> dict[str, Any]:
    modules: dict[str, Any] = {"network": {"hidden_sizes": [8]}}
    if algorithm == "ppo":
        modules |= {"memory": {"unroll_length": 10}, "learner": {"minibatch_size": 10}}
    else:
        modules |= {"memory": {"batch_size": 8, "warmup_steps": 20, "unroll_length": 5}}
    return {
        "runner": {**ENV_SIZES, "max_steps": 200, "ckpt_dir": "run", "log_interval": 0},
        "device": {"threads": 1},
        "env": {"module": "gymnasium", "id": f"zoo/{space}-v0", "imports": [zoo]},
        "agent": {"module": algorithm},
        "modules": modules,
    }


def finite(folder: Path) -> bool:
    """Whether no agent of a run and no figure of its log is NaN or infinite."""
    import torch

    agents = [torch.load(path, weights_only=True)["weights"] for path in folder.glob("agent_*.pth")]
    assert agents
    with open(folder / "log.csv", encoding="utf-8", newline="") as stream:
        figures = [float(value) for row in csv.DictReader(stream) for value in row.values() if value]
    return bool(np.isfinite(figures).all()) and all(
        torch.isfinite(tensor).all() for weights in agents for tensor in weights.values()
    )


@pytest.mark.parametrize(("algorithm", "space"), CASES)
def test_k22_trained_on_or_refused_by_name(algorithm: str, space: str, zoo: str, tmp_path: Path) -> None:
    wrong = CASES[algorithm, space]
    begin = time.monotonic()
    if wrong is None:
        summary = omnirl.run.train(settings(algorithm, space, zoo), local=True)
        assert (summary.status, summary.env_steps) == ("finished", 200)
        assert finite(tmp_path / "run")
    else:
        with pytest.raises(ConfigError) as refused:
            omnirl.run.train(settings(algorithm, space, zoo), local=True)
        (line,) = refused.value.lines
        assert wrong in line
        assert algorithm in line.replace(zoo, "")
        assert not (tmp_path / "run" / "log.csv").exists()
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_k22_actions_of_a_discrete_space_begin_at_its_start(algorithm: str, zoo: str, tmp_path: Path) -> None:
    """Discrete(3, start=-1): the environment gets -1, 0 and 1 and nothing else; it checks each itself."""
    config = settings(algorithm, "Shifted", zoo)
    if algorithm == "dqn":
        config["modules"]["policy"] = {"epsilon": 1.0}
    config["runner"]["max_steps"] = 500
    summary = omnirl.run.train(config, local=True)
    assert summary.env_steps >= 500
    received = sys.modules[zoo].RECEIVED
    assert len(received) >= 500
    assert set(received) == {-1, 0, 1}
    assert finite(tmp_path / "run")


@pytest.mark.parametrize(("algorithm", "space"), [("ppo", "Named"), ("dqn", "Bits"), ("ppo", "Endless")])
def test_k22_through_the_command_line(algorithm: str, space: str, zoo: str, tmp_path: Path) -> None:
    wrong = CASES[algorithm, space]
    config = settings(algorithm, space, zoo)
    lines = [f"{name}: {section}" for name, section in config.items()]  # JSON of this kind is YAML
    (tmp_path / "zoo.yaml").write_text("\n".join(lines).replace("'", '"'), encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from omnirl.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "train", "zoo.yaml", "--local"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    if wrong is None:
        assert (done.returncode, done.stderr) == (0, "")
        assert finite(tmp_path / "run")
    else:
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert line.startswith("zoo.yaml:")
        assert wrong in line
        assert algorithm in line
