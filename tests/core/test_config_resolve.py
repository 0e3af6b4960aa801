"""A valid tree becomes models: defaults, plain data that resolves to an equal one, changes, origins."""

from __future__ import annotations

import json
import os
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from pydantic import BaseModel

from omnirl.api import Constant, Linear
from omnirl.api.errors import ConfigError, PluginError
from omnirl.config.check import num_samplers
from omnirl.config.files import dump, from_mapping, load_text, merge
from omnirl.config.models import all_keys, annotation_at
from omnirl.config.overrides import parse
from omnirl.config.resolve import ResolvedConfig, resolve
from omnirl.config.schema import json_schema
from omnirl.config.sections import RUNNER_SECTIONS
from omnirl.plugins import Registry

TEXT = """\
runner: {max_updates: 1e5, ckpt_dir: runs/x}
device: {learner: gpu}
seed: 7
env:
  module: acme_envs
  id: no
  kwargs: {gravity: 9.81, tag: '1e-3', limit: .inf}
agent: {module: acme_q}
modules:
  learner:
    lr: {kind: linear, start: 1e-3, end: 0}
    gamma: 1
  network: {hidden_sizes: [32]}
"""


@pytest.fixture
def config(fake_registry: Registry) -> ResolvedConfig:
    return resolve(load_text(TEXT, "train.yaml"), fake_registry)


def test_values_are_read_as_people_mean_them(config: ResolvedConfig, fakes: Any) -> None:
    assert (config.algorithm, config.backend) == (fakes.Q, fakes.ENVS)
    assert config.runner.max_updates == 100_000
    assert isinstance(config.runner.max_updates, int)
    assert config.device.learner == "cuda"
    assert (config.seed.learner, config.seed.sampler, config.seed.evaluator) == (7, 7, 7)
    assert config.env.id == "no"
    assert config.agent.learner.lr == Linear(kind="linear", start=0.001, end=0.0)
    assert config.agent.learner.gamma == 1.0
    assert config.agent.network.hidden_sizes == (32,)


def test_defaults(config: ResolvedConfig) -> None:
    runner = config.runner
    assert (runner.num_learners, runner.num_samplers, runner.num_evaluators) == (1, "auto", 1)
    assert (runner.num_episodes, runner.num_envs_per_sampler, runner.keep_last) == (10, 8, 5)
    assert (runner.save_interval, runner.log_interval, runner.log_name) == (60.0, 10.0, "log")
    assert (runner.eval_interval, runner.save_memory) == (0, False)
    assert (runner.max_lead, runner.load_checkpoint, runner.max_steps, runner.eval_model) == (None,) * 4
    assert (config.ray.address, config.device.threads) == ("local", "auto")


def test_plain_data_is_the_file_with_every_default(config: ResolvedConfig, fake_registry: Registry) -> None:
    plain = config.plain()
    assert list(plain) == ["runner", "device", "seed", "env", "agent", "modules", "ray"]
    assert plain["seed"] == 7
    assert plain["env"] == {
        "module": "acme_envs",
        "id": "no",
        "render_mode": None,
        "kwargs": {"gravity": 9.81, "tag": "1e-3", "limit": float("inf")},
    }
    assert plain["modules"]["learner"] == {
        "lr": {"kind": "linear", "start": 0.001, "end": 0.0, "after": 0.0, "until": 1.0, "steps": None},
        "gamma": 1.0,
        "batch_size": 32,
        "n_step": 1,
        "double": False,
    }
    assert plain["modules"]["network"] == {"kind": "mlp", "hidden_sizes": [32]}
    json.dumps(plain)
    written = dump({**plain, "versions": {"omnirl-core": "0.1.0"}})
    again = resolve(load_text(written, "run_config.yaml"), fake_registry)
    assert again == config
    assert again.plain() == plain


def test_a_constant_schedule_is_written_as_its_number(fake_registry: Registry) -> None:
    config = resolve(
        load_text(TEXT.replace("{kind: linear, start: 1e-3, end: 0}", "1e-3"), "t"), fake_registry
    )
    assert config.agent.learner.lr == Constant(value=0.001)
    assert config.plain()["modules"]["learner"]["lr"] == 0.001


def test_seeds_may_differ(config: ResolvedConfig) -> None:
    changed = config.replace(parse(["seed={learner: 1, sampler: 2}"]))
    assert changed.plain()["seed"] == {"learner": 1, "sampler": 2, "evaluator": 0}


def test_replace_changes_values_and_checks_them(config: ResolvedConfig) -> None:
    changed = config.replace({"runner": {"num_samplers": 3}})
    assert changed.runner.num_samplers == 3
    assert changed.runner.max_updates == 100_000
    assert config.runner.num_samplers == "auto"
    with pytest.raises(
        ConfigError, match=r"override runner\.num_samplers: must be 'auto' or at least 1, not 0"
    ):
        config.replace({"runner": {"num_samplers": 0}})


def test_origins_and_lines(config: ResolvedConfig) -> None:
    assert str(config.origin("modules.learner.lr")) == "train.yaml:11:5"
    assert str(config.origin(("runner", "max_updates"))) == "train.yaml:1:10"
    assert config.origin("modules.memory.capacity") is None
    assert config.line("env.id", "not there") == "train.yaml:6:3 env.id: not there"
    assert config.line("modules.learner.n_step", "wrong") == "train.yaml:10:3 modules.learner.n_step: wrong"
    assert config.line("ray.address", "wrong") == "train.yaml ray.address: wrong"


def test_settings_given_only_as_overrides_have_no_file(fake_registry: Registry) -> None:
    tree = parse(["env.module=acme_envs", "env.id=x", "agent.module=acme_q"])
    config = resolve(merge(tree), fake_registry)
    assert config.line("env.id", "wrong") == "override env.id: wrong"
    assert config.line("runner.max_updates", "missing") == "runner.max_updates: missing"


def test_what_is_decided_is_no_override_of_the_users(config: ResolvedConfig) -> None:
    """Neither of the section that it is in, nor of the key, which keeps the place where it was written."""
    decided = config.decided({"runner": {"max_updates": 7, "num_samplers": 2}, "env": {"id": "yes"}})
    assert (decided.runner.max_updates, decided.runner.num_samplers, decided.env.id) == (7, 2, "yes")
    assert decided.line("env", "wrong") == config.line("env", "wrong") == "train.yaml:4:1 env: wrong"
    assert decided.line("env.id", "wrong") == "train.yaml:6:3 env.id: wrong"
    assert decided.line("runner.max_updates", "wrong") == "train.yaml:1:10 runner.max_updates: wrong"
    assert decided.origin("runner.num_samplers") is None  # it was a default
    assert decided.line("modules.learner.lr", "wrong") == config.line("modules.learner.lr", "wrong")


def test_a_module_may_be_named_by_its_path(fake_registry: Registry, fakes: Any) -> None:
    text = TEXT.replace("module: acme_q", "module: acme.algorithms.q").replace("acme_envs", "acme.envs")
    config = resolve(load_text(text, "t"), fake_registry)
    # The same configuration, whatever it was called.
    assert config.plain()["agent"] == {"module": "acme_q"}
    assert config.plain()["env"]["module"] == "acme_envs"


def test_a_draft_keeps_its_path(fake_registry: Registry, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import ModuleType

    package, module = ModuleType("draft_pack"), ModuleType("draft_pack.algo")
    module.ALGORITHM = fakes.ALGORITHM  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "draft_pack", package)
    monkeypatch.setitem(sys.modules, "draft_pack.algo", module)
    text = TEXT.replace("module: acme_q", "module: draft_pack.algo")
    config = resolve(load_text(text, "t"), fake_registry)
    assert config.plain()["agent"] == {"module": "draft_pack.algo"}
    assert resolve(from_mapping(config.plain(), "again"), fake_registry) == config


def test_auto_samplers_are_the_cores_less_one(
    config: ResolvedConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cores, samplers in (({0}, 1), ({0, 1}, 1), ({0, 1, 2, 3}, 3)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, cores=cores: cores, raising=False)
        assert num_samplers(config) == samplers
    assert num_samplers(config.replace({"runner": {"num_samplers": 5}})) == 5


@pytest.mark.parametrize("name", sorted(RUNNER_SECTIONS))
def test_every_key_is_described_in_one_line(name: str) -> None:
    def fields(model: type[BaseModel]) -> Any:
        return model.model_fields.items()

    for key, info in fields(RUNNER_SECTIONS[name]):
        assert info.description, key
        assert "\n" not in info.description, key


def test_the_editors_schema_accepts_what_is_valid_and_no_more(
    config: ResolvedConfig, fake_registry: Registry, fakes: Any
) -> None:
    schema = json_schema(fake_registry, algorithm=fakes.Q, backend=fakes.ENVS)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(config.plain())
    assert validator.is_valid(
        config.tree.data | {"modules": {"memory": {"capacity": 1e5}, "learner": {"lr": 1e-3}}}
    )
    mistakes: list[dict[str, Any]] = [
        {"runner": {"max_update": 3}},
        {"runner": {"num_samplers": 0}},
        {"modules": {"learner": {"gama": 0.9}}},
        {"modules": {"learner": {"gamma": 1.5}}},
        {"modules": {"learner": {"n_step": 0}}},
        {"modules": {"learner": {"lr": {"kind": "linaer"}}}},
        {"modules": {"learner": {"lr": {"kind": "piecewise", "points": []}}}},
        {"modules": {"network": {"hidden_sizes": [0]}}},
        {"env": {"idd": "walk"}},
        {"agent": {"module": "acme_qq"}},
        {"seed": -1},
        {"modul": {}},
    ]
    for wrong in mistakes:
        assert not validator.is_valid(wrong), wrong
    memory = schema["$defs"]["QMemory"]["properties"]
    assert memory["capacity"]["description"] == "transitions kept"
    assert memory["capacity"]["minimum"] == 1


def test_the_editors_schema_without_a_choice_takes_any_module_keys(fake_registry: Registry) -> None:
    validator = jsonschema.Draft202012Validator(json_schema(fake_registry))
    assert validator.is_valid({"modules": {"learner": {"anything": 1}}, "env": {"module": "a.b", "x": 1}})
    assert not validator.is_valid({"runner": {"max_update": 3}})


def test_the_editors_schema_of_a_broken_plugin(fake_registry: Registry, fakes: Any) -> None:
    gone = fakes.algorithm("gone", "NoSuchConfig", "q_flow", fakes.Q.supports, "acme.gone")
    with pytest.raises(PluginError, match="gone: its configuration model cannot be loaded: AttributeError"):
        json_schema(fake_registry, algorithm=gone)


def test_keys_are_found_through_unions_and_lists(fakes: Any) -> None:
    assert ("learner", "lr") in set(all_keys(fakes.QConfig))
    assert ("learner", "lr", "start") not in set(all_keys(fakes.QConfig))
    assert annotation_at(fakes.QConfig, ("learner", "gamma"), {}) is float
    assert annotation_at(fakes.QConfig, ("learner", "nothing"), {}) is None
