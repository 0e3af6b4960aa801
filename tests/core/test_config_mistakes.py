"""Mistakes in a file: all at once, in file order, and those that show only across keys."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnirl.api import DataFlow
from omnirl.api.errors import ConfigError, PluginError
from omnirl.config.check import check_end, check_files, placed
from omnirl.config.files import load_text, merge
from omnirl.config.resolve import ResolvedConfig, resolve
from omnirl.plugins import PluginFailure, PluginSource, Provided, Registry

Checked = Callable[..., ResolvedConfig]
Lines = Callable[..., list[str]]

BASE = """\
runner: {max_updates: 10}
env: {module: acme_envs, id: walk}
agent: {module: acme_q}
"""


def test_all_mistakes_come_at_once_in_file_order(lines_of: Lines, fake_registry: Registry) -> None:
    text = """\
env:
  module: acme_envs
agent: {module: acme_q}
modules:
  learner:
    lr: 1e-3
    gama: 0.9
    gamma: 1.5
  memory: {alpha: 2}
runner:
  num_samplers: 0
  max_updates: 1e5
modul: {}
"""
    assert lines_of(text, fake_registry, "seed=x") == [
        "train.yaml:1:1 env.id: missing",
        "train.yaml:7:5 modules.learner.gama: unknown key (did you mean 'gamma'?) [algorithm acme_q]",
        "train.yaml:8:5 modules.learner.gamma: must be at most 1, not 1.5",
        "train.yaml:9:12 modules.memory.alpha: must be at most 1, not 2",
        "train.yaml:11:3 runner.num_samplers: must be 'auto' or at least 1, not 0",
        "train.yaml:13:1 modul: unknown section (did you mean 'modules'?)",
        "override seed: must be a whole number, or one each for learner, sampler and evaluator",
    ]


def test_positions_are_those_of_the_file_that_made_the_mistake(fake_registry: Registry) -> None:
    first = load_text(BASE + "modules: {learner: {gamma: 2}}\n", "one.yaml")
    second = load_text("modules:\n  memory:\n    alpha: 2\n", "two.yaml")
    with pytest.raises(ConfigError) as caught:
        resolve(merge(first, second), fake_registry)
    assert list(caught.value.lines) == [
        "one.yaml:4:21 modules.learner.gamma: must be at most 1, not 2",
        "two.yaml:3:5 modules.memory.alpha: must be at most 1, not 2",
    ]


def test_nothing_at_all_is_two_mistakes(lines_of: Lines, fake_registry: Registry) -> None:
    assert lines_of("", fake_registry) == [
        "train.yaml agent.module: missing: which algorithm? (installed: acme_ac, acme_pg, acme_q)",
        "train.yaml env.module: missing: which environment backend? (installed: acme_envs)",
    ]


def test_sections_that_are_no_mappings(lines_of: Lines, fake_registry: Registry) -> None:
    text = "runner: 3\nenv: walk\nagent: acme_q\n"
    assert lines_of(text, fake_registry) == [
        "train.yaml:1:1 runner: must be a mapping, not 3",
        "train.yaml:2:1 env: must be a mapping, not 'walk'",
        "train.yaml:3:1 agent: must be a mapping, not 'acme_q'",
    ]


@pytest.mark.parametrize(
    "empty", ["modules:", "modules:\n  learner:\n", "ray:", "seed:", "versions:", "device: {}"]
)
def test_an_empty_section_is_as_good_as_none(checked: Checked, fake_registry: Registry, empty: str) -> None:
    assert checked(BASE + empty, fake_registry) == checked(BASE, fake_registry)


def test_the_end_of_training_must_be_said(lines_of: Lines, checked: Checked, fake_registry: Registry) -> None:
    line = "runner.max_updates: missing: say when training stops, by runner.max_updates or runner.max_steps"
    assert lines_of(BASE, fake_registry, "runner.max_updates=") == [f"override {line}"]
    config = checked(BASE, fake_registry, "runner.max_updates=", "runner.eval_model=agent_100")
    with pytest.raises(ConfigError, match="say when training stops"):
        check_end(config)
    check_end(checked(BASE, fake_registry))


def test_learners_need_samplers(lines_of: Lines, fake_registry: Registry) -> None:
    assert lines_of(
        BASE, fake_registry, "agent.module=acme_pg", "runner.num_learners=3", "runner.num_samplers=2"
    ) == ["override runner.num_learners: 3 learners need at least as many samplers, not 2"]


def test_a_minibatch_must_fit_the_rollout(lines_of: Lines, checked: Checked, fake_registry: Registry) -> None:
    # 16 steps x 2 environments x 1 sampler
    settings = ["agent.module=acme_pg", "runner.num_samplers=1", "runner.num_envs_per_sampler=2"]
    assert lines_of(BASE, fake_registry, *settings) == [
        "train.yaml modules.learner.minibatch_size: 64 is more than a rollout, 32"
    ]
    checked(BASE, fake_registry, *settings, "modules.learner.minibatch_size=32")


def test_one_window_takes_one_evaluator(lines_of: Lines, checked: Checked, fake_registry: Registry) -> None:
    settings = ["env.render_mode=human", "runner.num_evaluators=2"]
    assert lines_of(BASE, fake_registry, *settings) == [
        "override env.render_mode: human opens one window: set runner.num_evaluators to 1, not 2"
    ]
    checked(BASE, fake_registry, "env.render_mode=human", "runner.num_evaluators=1")


def test_a_folder_that_is_a_file(
    lines_of: Lines, checked: Checked, fake_registry: Registry, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert lines_of(BASE, fake_registry, f"runner.ckpt_dir={file}") == [
        f"override runner.ckpt_dir: {file} is a file, not a folder"
    ]
    assert lines_of(BASE, fake_registry, f"runner.ckpt_dir={file}/run") == [
        f"override runner.ckpt_dir: {file}/run cannot be made: {file} is a file"
    ]
    checked(BASE, fake_registry, f"runner.ckpt_dir={tmp_path}/new/run")
    assert not (tmp_path / "new").exists()


def test_a_folder_without_permission(
    lines_of: Lines, fake_registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write anywhere, so the answer of the operating system is given.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    assert lines_of(BASE, fake_registry, f"runner.ckpt_dir={tmp_path}") == [
        f"override runner.ckpt_dir: {tmp_path} cannot be written to: no permission to write in {tmp_path}"
    ]
    assert lines_of(BASE, fake_registry, f"runner.ckpt_dir={tmp_path}/run") == [
        f"override runner.ckpt_dir: {tmp_path}/run cannot be made: no permission to write in {tmp_path}"
    ]


def test_a_plugins_lines_get_their_positions(checked: Checked, fake_registry: Registry) -> None:
    config = checked(BASE, fake_registry)
    error = ConfigError(["env.id: unknown environment 'walk'", "memory.capacity: too small", "a: no key"])
    assert placed(config, error).lines == (
        "train.yaml:2:26 env.id: unknown environment 'walk'",
        "train.yaml modules.memory.capacity: too small",
        "a: no key",
    )


def test_the_home_folder_is_meant_by_a_tilde(
    fake_registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    config = resolve(load_text(BASE + "modules: {}\n", "t"), fake_registry).replace(
        {"runner": {"ckpt_dir": "~/r"}}
    )
    assert config.runner.ckpt_dir == "/somewhere/r"


@pytest.mark.parametrize(
    ("assignment", "line"),
    [
        ('runner.ckpt_dir="a\\0b"', "runner.ckpt_dir: must be a path, without the character NUL"),
        ("runner.log_name=..", "runner.log_name: must be a file name without a folder, not '..'"),
        ("runner.log_name=a/b", "runner.log_name: must be a file name without a folder, not 'a/b'"),
        ("ray.address=host:0", "ray.address: must be local, auto or host:port, not 'host:0'"),
        ("ray.address=host:65536", "ray.address: must be local, auto or host:port, not 'host:65536'"),
        (
            "ray.object_store_memory=78643199",
            "ray.object_store_memory: must be at least 78643200 (75 MiB, Ray's minimum), not 78643199",
        ),
    ],
)
def test_values_just_beyond_their_range(
    lines_of: Lines, fake_registry: Registry, assignment: str, line: str
) -> None:
    assert lines_of(BASE, fake_registry, assignment) == [f"override {line}"]


def test_values_just_within_their_range(checked: Checked, fake_registry: Registry) -> None:
    config = checked(BASE, fake_registry, "ray.address=host:65535", "ray.object_store_memory=78643200")
    assert (config.ray.address, config.ray.object_store_memory) == ("host:65535", 78643200)


@pytest.mark.parametrize(
    "number", [{"unroll_length": 0}, {"steps_per_update": 0}, {"warmup_steps": -1}, {"max_lead": -1}]
)
def test_a_data_flow_out_of_range_is_the_plugins_mistake(
    fakes: Any, fake_registry: Registry, monkeypatch: pytest.MonkeyPatch, number: dict[str, int]
) -> None:
    flow = DataFlow(**{"unroll_length": 4, "steps_per_update": 4, **number})
    monkeypatch.setattr(fakes, "q_flow", lambda config, context: flow)
    with pytest.raises(
        PluginError, match=r"'acme_q': its data_flow returned .*, whose numbers are out of range"
    ):
        check_files(resolve(load_text(BASE, "train.yaml"), fake_registry))


def registry_with(fakes: Any, *specs: Any, **rest: Any) -> Registry:
    source = PluginSource("acme", "acme-rl", "1.2", "acme_rl.plugin")
    provided = {
        "omnirl_algorithms": [Provided(spec, source) for spec in specs],
        "omnirl_env_backends": [Provided(fakes.ENVS, source)],
    }
    return Registry(provided, loaded=[source], **rest)


def test_a_failed_plugin_that_is_asked_for_is_a_plugin_error(fakes: Any) -> None:
    failure = PluginFailure(PluginSource("acme_q", "acme-q", "1", "acme_q"), "import", "ImportError: x")
    with pytest.raises(PluginError) as caught:
        resolve(load_text(BASE, "train.yaml"), registry_with(fakes, failures=[failure]))
    assert list(caught.value.lines) == [
        "train.yaml:3:9 agent.module: algorithm 'acme_q' cannot be used: plugin 'acme_q' (acme-q 1) failed "
        "(import): ImportError: x"
    ]


def test_a_defect_of_a_plugins_model_is_a_plugin_error(fakes: Any) -> None:
    registry = registry_with(fakes, fakes.BROKEN)
    with pytest.raises(PluginError) as caught:
        resolve(load_text(BASE.replace("acme_q", "broken"), "train.yaml"), registry)
    assert list(caught.value.lines) == [
        "algorithm broken: its configuration model raised TypeError: a defect of the plugin"
    ]


def test_a_model_that_is_not_there_is_a_plugin_error(fakes: Any) -> None:
    missing = fakes.algorithm("gone", "NoSuchConfig", "q_flow", fakes.Q.supports, "acme.gone")
    with pytest.raises(PluginError) as caught:
        resolve(load_text(BASE.replace("acme_q", "gone"), "train.yaml"), registry_with(fakes, missing))
    assert list(caught.value.lines) == [
        "algorithm 'gone' of plugin 'acme' (acme-rl 1.2): its configuration model cannot be loaded: "
        "AttributeError: 'acme_rl' has no 'NoSuchConfig' (from 'acme_rl:NoSuchConfig')"
    ]


def test_another_plugins_defect_does_not_hide_a_mistake(lines_of: Lines, fakes: Any) -> None:
    missing = fakes.algorithm("gone", "NoSuchConfig", "q_flow", fakes.Q.supports, "acme.gone")
    assert lines_of(BASE, registry_with(fakes, missing, fakes.Q), "modules.learner.gama=1") == [
        "override modules.learner.gama: unknown key (did you mean 'gamma'?) [algorithm acme_q]"
    ]


def test_a_big_wrong_file_is_answered_at_once(lines_of: Lines, fake_registry: Registry) -> None:
    text = BASE + "modules:\n" + "".join(f"  key{n}: {n}\n" for n in range(2000))
    begin = time.monotonic()
    assert len(lines_of(text, fake_registry)) == 2000
    assert time.monotonic() - begin < 20
