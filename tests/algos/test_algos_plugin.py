"""What omnirl-algos declares: every part is there, the torch-free ones are torch-free, the presets are
valid."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from importlib import resources

import numpy as np
import pytest

from omnirl.algorithms import plugin
from omnirl.api import ArraySpec, ConfigError, ContinuousAction, DiscreteAction, EnvSpec, FlowContext
from omnirl.api.plugin import API_NUMBER, load_object
from omnirl.config.files import load_text
from omnirl.testing.spaces import spaces_of

PARTS = ("config", "data_flow", "policy", "memory", "learner", "agent_file")
SOURCES = (
    "CleanRL, ",
    "MinAtar, ",
    "RLlib, ",
    "SLM-Lab, ",
    "Tianshou, ",
    "pgx, ",
    "rl-baselines3-zoo, ",
    "those of cartpole-dqn",
)
MODULES = ["omnirl.algorithms.plugin", "omnirl.presets", "omnirl.networks", "omnirl.networks.numpy_mlp"]


def test_it_is_written_for_the_api():
    assert plugin.OMNIRL_API == API_NUMBER
    names = [spec.name for spec in plugin.omnirl_algorithms()]
    assert {
        "ppo",
        "a2c",
        "impala",
        "dqn",
        "ddqn",
        "dueling_dqn",
        "per_dqn",
        "c51",
        "qr_dqn",
        "ddpg",
        "td3",
        "sac",
    } <= set(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("spec", plugin.ALGORITHMS, ids=lambda spec: spec.name)
def test_every_part_resolves(spec):
    for part in PARTS:
        assert load_object(getattr(spec, part)) is not None
    assert len(set(spec.metric_names)) == len(spec.metric_names)
    package = importlib.import_module(f"omnirl.algorithms.{spec.name}")
    for part, name in (
        ("config", "Config"),
        ("policy", "Policy"),
        ("memory", "Memory"),
        ("learner", "Learner"),
    ):
        assert getattr(package, name) is load_object(getattr(spec, part))
    with pytest.raises(AttributeError, match="Critic"):
        package.Critic  # noqa: B018


def loaded_after(statement, *names):
    code = f"import sys\n{statement}\nprint([name for name in {names!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


@pytest.mark.parametrize("spec", plugin.ALGORITHMS, ids=lambda spec: spec.name)
def test_acting_and_counting_need_no_torch(spec, learner_context, tmp_path):
    """Built and used, not only imported: a policy acts, a memory and the pacing are made."""
    action = DiscreteAction(2)
    if "discrete" not in spec.supports.actions:
        action = ContinuousAction((-1.0,), (1.0,))
    config, env_spec = load_object(spec.config)(), EnvSpec(ArraySpec((3,)), action)
    weights = load_object(spec.learner)(config, env_spec, learner_context).get_weights()
    np.savez(tmp_path / "weights.npz", **weights)
    code = f"""
import numpy as np
from omnirl.api import *
from omnirl.api.plugin import load_object
config = load_object({spec.config!r})()
spec = EnvSpec(ArraySpec((3,)), {action!r})
load_object({spec.data_flow!r})(config, FlowContext(8, 1))
load_object({spec.memory!r})(config, spec, MemoryContext(0, 1, lambda array, op: array))
policy = load_object({spec.policy!r})(config, spec, PolicyContext("sampler", 0, 1, 2))
policy.set_weights(dict(np.load({str(tmp_path / "weights.npz")!r})))
act = ActContext(np.random.default_rng(0), 0, 0.0, np.zeros(2, bool))
assert policy.sample_action(np.zeros((2, 3), np.float32), act).action.shape == (2, *spec.action.shape)
"""
    assert loaded_after(code, "torch", "gymnasium", "ray") == "[]"


@pytest.mark.parametrize("module", MODULES)
def test_light_modules_stay_light(module):
    heavy = ("torch", "gymnasium", "ray")
    if module != "omnirl.networks.numpy_mlp":
        heavy += ("numpy", "pydantic")
    assert loaded_after(f"import {module}", *heavy) == "[]"


def test_a_learner_never_imports_torch_optim():
    """An optimizer's constructor loads torch's compiler: 2 s and 72 MB. Nor anything else beyond torch
    itself."""
    code = """
from omnirl.api import *
from omnirl.algorithms.ppo import Config, Learner
Learner(Config(), EnvSpec(ArraySpec((3,)), DiscreteAction(2)), LearnerContext(0, 1, None, "cpu", 1, 0))
"""
    assert loaded_after(code, "torch._dynamo", "torch._inductor", "sympy") == "[]"


def test_two_learner_threads_are_set(learner_context, specs):
    import dataclasses

    import torch

    before = torch.get_num_threads()
    try:
        for spec in specs.values():
            torch.set_num_threads(1)
            config = load_object(spec.config)()
            env_spec = next(iter(spaces_of(spec.supports).values()))
            load_object(spec.learner)(config, env_spec, dataclasses.replace(learner_context, threads=2))
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("preset", plugin.PRESETS, ids=lambda preset: preset.name)
def test_presets_are_valid_and_name_their_source(preset, specs):
    package, _, name = preset.resource.partition(":")
    text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    (told,) = re.findall(r"^# Hyperparameters: (.*)$", text, re.MULTILINE)
    assert told.startswith(SOURCES)
    data = load_text(text, name).data
    algorithm = specs[data["agent"]["module"]]
    assert preset.name.endswith(algorithm.name.replace("_", "-"))
    config = load_object(algorithm.config).model_validate(data["modules"])
    runner = data["runner"]
    context = FlowContext(runner["num_envs_per_sampler"], runner["num_samplers"])
    assert load_object(algorithm.data_flow)(config, context).steps_per_update > 0
    on_pictures = preset.name.startswith(
        ("breakout-", "carracing-", "pong-")
    )  # an episode of those takes many seconds
    assert runner["num_episodes"] == (10 if on_pictures else 50)


def test_every_preset_file_is_declared():
    shipped = {
        path.name for path in resources.files("omnirl.presets").iterdir() if path.name.endswith(".yaml")
    }
    assert shipped == {preset.resource.partition(":")[2] for preset in plugin.PRESETS}


@pytest.mark.parametrize("spec", plugin.ALGORITHMS, ids=lambda spec: spec.name)
def test_every_key_is_described(spec):
    """One line per key, which is also the reference documentation."""
    for section, field in load_object(spec.config).model_fields.items():
        for key, entry in field.annotation.model_fields.items():
            assert entry.description, f"{section}.{key}"
            assert "\n" not in entry.description


@pytest.mark.parametrize("spec", plugin.ALGORITHMS, ids=lambda spec: spec.name)
@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("learner", "gamma", 1.5),
        ("learner", "gamma", "0.9"),
        ("learner", "gama", 0.9),
        ("learner", "lr", float("nan")),
        ("memory", "unroll_length", 0),
        ("memory", "unroll_length", 1.5),
        ("network", "activation", "gelu"),
        ("network", "hidden_sizes", [64, 0]),
        ("network", "kind", "transformer"),
    ],
)
def test_values_out_of_range_are_refused(spec, section, key, value):
    with pytest.raises(ValueError, match=key):
        load_object(spec.config).model_validate({section: {key: value}})


@pytest.mark.parametrize(
    ("part", "key", "value", "message"),
    [
        (("ppo", "learner"), "lr", -1e-3, "is -0.001 at its least"),
        (("ppo", "learner"), "clip", {"kind": "linear", "start": 0.2, "end": -0.1}, "is -0.1 at its least"),
        (("dqn", "learner"), "lr", {"kind": "piecewise", "points": [[0, 1], [1, -2]]}, "is -2 at its least"),
        (("dqn", "policy"), "epsilon", {"kind": "linear", "start": 1.5, "end": 0}, "reaches 1.5"),
    ],
)
def test_schedules_that_leave_their_range_are_refused(specs, part, key, value, message):
    algorithm, section = part
    with pytest.raises(ValueError, match=message):
        load_object(specs[algorithm].config).model_validate({section: {key: value}})


def test_a_minibatch_is_at_most_an_update():
    """32 steps x 2 environments x 3 samplers are 192 samples."""
    from omnirl.algorithms.ppo import config

    context = FlowContext(num_envs=2, num_samplers=3)

    def flow(size):
        return config.data_flow(
            config.Config.model_validate(
                {"learner": {"minibatch_size": size}, "memory": {"unroll_length": 32}}
            ),
            context,
        )

    assert flow(192).steps_per_update == 192
    with pytest.raises(ConfigError) as raised:
        flow(193)
    assert raised.value.lines == (
        "modules.learner.minibatch_size: 193 is more than the samples of an update, "
        "192 = unroll_length 32 x 2 environments x 3 samplers",
    )
