"""K22: the spaces that users have, with every algorithm: trained on, or refused in one line beforehand.

What is expected follows from what each algorithm declares, so one that is added is tried without a word here; the
documentation's table of algorithms and spaces says the same.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest

import omnirl.run
from omnirl import plugins
from omnirl.api import AlgorithmSpec, load_object
from omnirl.api.errors import ConfigError
from omnirl.config.spaces import is_supported
from omnirl.envs.gymnasium.backend import BACKEND
from omnirl.envs.gymnasium.config import GymnasiumConfig

ZOO = """
    import gymnasium
    import numpy as np
    from gymnasium import spaces

    VECTOR = spaces.Box(-1, 1, (3,))
    CAMERA = spaces.Box(0, 255, (12, 12, 3), np.uint8)
    ACTIONS = {
        "Endless": spaces.Box(-np.inf, np.inf, (2,)),
        "Bounded": spaces.Box(-2, 1, (2,)),
        "Whole": spaces.Box(0, 5, (1,), np.int64),
        "Table": spaces.MultiDiscrete([[2], [2]]),
        "Bits": spaces.MultiBinary(4),
        "Named": spaces.Dict({"speed": spaces.Discrete(2)}),
        "Shifted": spaces.Discrete(3, start=-1),
    }
    OBSERVATIONS = {
        "Parts": spaces.Dict({"a": VECTOR, "b": spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(2)))}),
        "Pair": spaces.Tuple((VECTOR, spaces.Discrete(3))),
        "Sight": spaces.Dict({"a": VECTOR, "camera": CAMERA}),
        "Words": spaces.Dict({"a": VECTOR, "word": spaces.Text(3)}),
    }
    RECEIVED = []


    class Zoo(gymnasium.Env):
        def __init__(self, action_space, observation_space=VECTOR, masked=0, stuck=False, harmless=False):
            self.action_space, self.masked, self.stuck = action_space, masked, stuck
            self.harmless = harmless
            self.observation_space = observation_space
            if masked:
                self.observation_space = spaces.Dict({"a": VECTOR, "action_mask": spaces.MultiBinary(masked)})

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.observation_space.seed(seed)
            self.steps = 0
            return self.observe(), {}

        def step(self, action):
            assert self.action_space.contains(action), action
            if self.masked == 4 and not self.harmless:
                assert self.mask[action], (action, self.mask)
            if self.masked == 5:
                assert self.mask[action[0]] and self.mask[2 + action[1]], (action, self.mask)
            RECEIVED.append(action)
            self.steps += 1
            return self.observe(), float(self.np_random.random()), False, self.steps == 10, {}

        def observe(self):
            row = self.observation_space.sample()
            if self.masked:
                self.mask = row["action_mask"]
                self.mask[[0, self.masked - 1]] = 1
                if self.stuck and self.steps == 5:
                    self.mask[:] = 0
            return row


    def register(name, *what):
        gymnasium.register(f"zoo/{name}-v0", lambda **kwargs: Zoo(*what, **kwargs))


    for name, space in ACTIONS.items():
        register(name, space)
    for name, space in OBSERVATIONS.items():
        register(f"{name}Discrete", spaces.Discrete(3), space)
        register(f"{name}Box", ACTIONS["Bounded"], space)
    register("Masked", spaces.Discrete(4), None, 4)
    register("MaskedDigits", spaces.MultiDiscrete([2, 3]), None, 5)
    register("Stuck", spaces.Discrete(4), None, 4, True)
"""
ACTIONS = ("Endless", "Bounded", "Whole", "Table", "Bits", "Named", "Shifted")
OBSERVATIONS = ("Parts", "Pair", "Sight", "Words", "Masked", "MaskedDigits")
ALGORITHMS = {provided.spec.name: provided.spec for provided in plugins.load().algorithms()}
ENV_SIZES = {"num_samplers": 1, "num_envs_per_sampler": 2, "num_evaluators": 1, "num_episodes": 2}
SMALL: dict[str, dict[str, Any]] = {
    "network": {"hidden_sizes": [8]},
    "memory": {
        "unroll_length": 10,
        "batch_size": 8,
        "warmup_steps": 40,
        "capacity": 100,
        "rollouts_per_update": 1,
    },
    "learner": {"minibatch_size": 10},
}
"""Sizes for runs of 200 steps, for the algorithms that have such keys."""


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


def env_id(algorithm: AlgorithmSpec, space: str) -> str:
    """Environments of observations come with actions that the algorithm takes."""
    if space in ("Parts", "Pair", "Sight", "Words"):
        space += "Discrete" if "discrete" in algorithm.supports.actions else "Box"
    return f"zoo/{space}-v0"


def settings(algorithm: AlgorithmSpec, space: str, zoo: str) -> dict[str, Any]:
    sections = load_object(algorithm.config).model_fields
    modules = {
        section: {
            key: value for key, value in keys.items() if key in sections[section].annotation.model_fields
        }
        for section, keys in SMALL.items()
        if section in sections
    }
    return {
        "runner": {**ENV_SIZES, "max_steps": 200, "ckpt_dir": "run", "log_interval": 0},
        "device": {"threads": 1},
        "env": {
            "module": "gymnasium",
            "id": env_id(algorithm, space),
            "imports": [zoo],
            "vectorization": "inline",
        },
        "agent": {"module": algorithm.name},
        "modules": modules,
    }


def is_refused(algorithm: AlgorithmSpec, space: str, zoo: str) -> bool:
    """What is to be expected: the backend has no word for the space, or the algorithm does not declare it."""
    try:
        spec = BACKEND.get_env_spec(GymnasiumConfig(id=env_id(algorithm, space), imports=(zoo,)))
    except ConfigError:
        assert space in ("Whole", "Named", "Words")
        return True
    return not is_supported(algorithm.supports, spec)


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


def names_both(line: str, algorithm: AlgorithmSpec) -> bool:
    """Whether a refusal says which algorithm and which space it is about."""
    kinds = ("actions", "observations", "action masks", "action bounds", "space ")
    told = line.partition("(installed for it")[0]
    return algorithm.name in told and any(kind in told for kind in kinds)


@pytest.mark.parametrize("space", [*ACTIONS, *OBSERVATIONS])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_k22_trained_on_or_refused_by_name(name: str, space: str, zoo: str, tmp_path: Path) -> None:
    algorithm = ALGORITHMS[name]
    config = settings(algorithm, space, zoo)
    begin = time.monotonic()
    if is_refused(algorithm, space, zoo):
        with pytest.raises(ConfigError) as refused:
            omnirl.run.train(config, local=True)
        # One line, or two where neither actions nor observations fit.
        assert 1 <= len(refused.value.lines) <= 2
        assert all(names_both(line, algorithm) for line in refused.value.lines)
        assert not (tmp_path / "run" / "log.csv").exists()
    else:
        summary = omnirl.run.train(config, local=True)
        assert summary.status == "finished"
        assert summary.env_steps >= 200
        assert len(sys.modules[zoo].RECEIVED) >= 200  # and each was one of the space, and legal
        assert finite(tmp_path / "run")
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize(
    ("name", "space", "line"),
    [
        ("ppo", "Whole", "the action space Box(0, 5, (1,), int64) is a Box of int64"),
        ("ppo", "Named", "the action space Dict('speed': Discrete(2)) is not supported"),
        ("ppo", "Words", "entry 'word': the observation space Text("),
        ("dqn", "Endless", "dqn needs discrete actions; zoo/Endless-v0 has continuous actions of 2 values"),
        (
            "dqn",
            "Table",
            "dqn needs discrete actions; zoo/Table-v0 has multi-discrete actions of [2, 2] values",
        ),
        ("dqn", "Bits", "dqn needs discrete actions; zoo/Bits-v0 has multi-discrete actions of [2, 2, 2, 2]"),
        ("sac", "Endless", "sac needs finite action bounds: action_space.low[0] = -inf"),
        (
            "sac",
            "Masked",
            "sac takes no action masks; zoo/Masked-v0 has action_mask (env.action_mask: none leaves it",
        ),
    ],
)
def test_k22_what_is_said(name: str, space: str, line: str, zoo: str) -> None:
    with pytest.raises(ConfigError) as refused:
        omnirl.run.train(settings(ALGORITHMS[name], space, zoo), local=True)
    (told,) = refused.value.lines
    assert line in told


def test_the_table_of_the_documentation_says_what_is_tried_here(
    module_at: Callable[[Path], ModuleType],
) -> None:
    generate = module_at(Path(__file__).parents[2] / "docs" / "generate.py")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in generate.spaces() if line]
    table = {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows}
    for name, algorithm in ALGORITHMS.items():
        supports = algorithm.supports
        assert (table["an action mask"][name] == "yes") is supports.action_mask
        assert (table["`Dict`, `Tuple` with images"][name] == "yes") is (
            {"dict", "image"} <= set(supports.observations)
        )
        assert (table["`Box` of floats, some bounds infinite"][name] == "yes") is (
            "continuous" in supports.actions
        )


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_k22_a_mask_that_allows_nothing_ends_the_run_in_one_line(name: str, zoo: str) -> None:
    """No new sampler would change what the environment says, so none is started."""
    with pytest.raises(ConfigError) as told:
        omnirl.run.train(settings(ALGORITHMS[name], "Stuck", zoo), local=True)
    assert told.value.lines == ("sampler 0, environment 0 (zoo/Stuck-v0): action_mask allows no action",)


@pytest.mark.parametrize("space", ["Parts", "Sight", "Masked"])
def test_k22_environments_in_processes_of_their_own(space: str, zoo: str, tmp_path: Path) -> None:
    """Named observations come back from there too; each environment checks what it is given itself."""
    config = settings(ALGORITHMS["ppo"], space, zoo)
    config["env"]["vectorization"] = "process"
    assert omnirl.run.train(config, local=True).status == "finished"
    assert finite(tmp_path / "run")


def test_k22_the_way_out_of_a_mask(zoo: str) -> None:
    """An algorithm that takes no masks trains without, as its refusal says; this environment never runs into one."""
    config = settings(ALGORITHMS["sac"], "Stuck", zoo)
    config["env"]["kwargs"] = {"harmless": True}
    config["env"]["action_mask"] = "none"
    assert omnirl.run.train(config, local=True).status == "finished"


@pytest.mark.parametrize(
    "name", [name for name, spec in ALGORITHMS.items() if "discrete" in spec.supports.actions]
)
def test_k22_actions_of_a_discrete_space_begin_at_its_start(name: str, zoo: str, tmp_path: Path) -> None:
    """Discrete(3, start=-1): the environment gets -1, 0 and 1 and nothing else; it checks each itself."""
    config = settings(ALGORITHMS[name], "Shifted", zoo)
    policy = load_object(ALGORITHMS[name].config).model_fields.get("policy")
    if policy is not None and "epsilon" in policy.annotation.model_fields:
        config["modules"]["policy"] = {"epsilon": 1.0}
    config["runner"]["max_steps"] = 500
    summary = omnirl.run.train(config, local=True)
    assert summary.env_steps >= 500
    received = sys.modules[zoo].RECEIVED
    assert len(received) >= 500
    assert set(received) == {-1, 0, 1}
    assert finite(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "space", "wrong"),
    [
        ("ppo", "Named", "the action space Dict('speed': Discrete(2)) is not supported"),
        ("dqn", "Bits", "dqn needs discrete actions; zoo/Bits-v0 has multi-discrete actions of [2, 2, 2, 2]"),
        ("ppo", "Endless", None),
        ("dqn", "Masked", None),
    ],
)
def test_k22_through_the_command_line(
    name: str, space: str, wrong: str | None, zoo: str, tmp_path: Path
) -> None:
    config = settings(ALGORITHMS[name], space, zoo)
    lines = [f"{section}: {values}" for section, values in config.items()]  # JSON of this kind is YAML
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
        assert name in line
