"""A name leads to its descriptor, or to one line that says what can be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnirl.api.errors import ConfigError, NotFoundError, PluginError
from omnirl.api.plugin import CommandSpec, EnvBackendSpec, ObserverSpec, PresetSpec
from omnirl.plugins import PluginFailure, PluginSource, Provided, Registry, report

ALGOS = PluginSource("algos", "omnirl-algos", "0.1.0", "omnirl.algorithms.plugin")
ONE = PluginSource("one", "acme-one", "1.0", "acme_one")
TWO = PluginSource("two", "acme-two", "2.5", "acme_two")


def presets(*items: tuple[str, PluginSource]) -> Registry:
    return Registry(
        {"omnirl_presets": [Provided(PresetSpec(name, "", "a:b"), source) for name, source in items]},
        loaded=list(dict.fromkeys(source for _, source in items)),
    )


def test_a_name_that_two_plugins_provide_is_unusable_and_no_other() -> None:
    registry = presets(("walk", ONE), ("walk", TWO), ("run", TWO))
    with pytest.raises(PluginError) as caught:
        registry.preset("walk")
    assert caught.value.lines == (
        "the preset 'walk' is provided by plugin 'one' (acme-one 1.0) and plugin 'two' (acme-two "
        "2.5): uninstall "
        "one, or switch one off with OMNIRL_DISABLE_PLUGINS=two",
    )
    assert registry.preset("run").name == "run"
    assert registry.clashes() == [str(caught.value)]


def test_an_alias_clashes_too() -> None:
    specs = [
        Provided(EnvBackendSpec("gym", "", "a:b", "a:c"), ONE),
        Provided(EnvBackendSpec("other", "", "a:b", "a:c", aliases=("gym",)), TWO),
    ]
    registry = Registry({"omnirl_env_backends": specs})
    with pytest.raises(PluginError, match=r"acme-one 1\.0.*acme-two 2\.5"):
        registry.env_backend("gym")
    assert registry.env_backend("other").name == "other"


def test_clashing_commands_and_default_observers_are_left_out() -> None:
    registry = Registry(
        {
            "omnirl_commands": [
                Provided(CommandSpec(name, "", "a:b"), source)
                for name, source in (("x", ONE), ("x", TWO), ("y", ONE))
            ],
            "omnirl_observers": [
                Provided(ObserverSpec(name, "a:b", default=default), source)
                for name, source, default in (
                    ("x", ONE, True),
                    ("x", TWO, True),
                    ("y", ONE, True),
                    ("z", ONE, False),
                )
            ],
        }
    )
    assert [item.spec.name for item in registry.commands()] == ["y"]
    assert [spec.name for spec in registry.default_observers()] == ["y"]


def test_an_unknown_preset_gets_the_nearest_and_the_installed() -> None:
    registry = presets(("cartpole-ppo", ALGOS), ("pong-dqn", ALGOS))
    with pytest.raises(NotFoundError) as caught:
        registry.preset("cartpole-pop")
    assert caught.value.lines == (
        "unknown preset 'cartpole-pop' (did you mean 'cartpole-ppo'?); installed: cartpole-ppo, pong-dqn",
    )
    with pytest.raises(NotFoundError, match=r"'PONG-DQN' \(did you mean 'pong-dqn'\?\)"):
        registry.preset("PONG-DQN")


@pytest.mark.parametrize(
    ("kind", "name", "line"),
    [
        (
            "algorithm",
            "ppo",
            "unknown algorithm 'ppo'; no algorithm is installed; pip install omnirl-algos",
        ),
        (
            "env_backend",
            "gymnasium",
            "unknown environment backend 'gymnasium'; no environment backend is installed; "
            "pip install omnirl-gymnasium",
        ),
        ("observer", "tensorboard", "unknown observer 'tensorboard'; no observer is installed"),
        (
            "algorithm",
            "not_there.algo",
            "unknown algorithm 'not_there.algo'; no module named 'not_there'; no algorithm is installed; "
            "pip install omnirl-algos",
        ),
        (
            "algorithm",
            "json.tool",
            "unknown algorithm 'json.tool'; the module holds no ALGORITHM; no algorithm is installed; "
            "pip install omnirl-algos",
        ),
    ],
)
def test_what_is_not_installed_comes_with_the_pip_command(kind: str, name: str, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        getattr(Registry({}), kind)(name)
    assert caught.value.lines == (line,)


@pytest.mark.parametrize("name", ["ppo", "omnirl.algorithms.ppo"])
def test_a_failed_plugin_that_would_provide_the_name_is_the_error(name: str) -> None:
    registry = Registry({}, failures=[PluginFailure(ALGOS, "import", "ImportError: torch")])
    with pytest.raises(PluginError) as caught:
        registry.algorithm(name)
    assert caught.value.lines == (
        f"algorithm {name!r} cannot be used: plugin 'algos' (omnirl-algos 0.1.0) failed (import): "
        f"ImportError: torch",
    )


@pytest.mark.parametrize("name", ["acme_one", "acme-one", "one", "acme_one.algorithms.x"])
def test_a_third_partys_failed_plugin_is_known_by_its_names(name: str) -> None:
    registry = Registry({}, failures=[PluginFailure(ONE, "api", "OMNIRL_API = 7")])
    with pytest.raises(PluginError, match=r"plugin 'one' \(acme-one 1.0\) failed \(api\): OMNIRL_API = 7"):
        registry.algorithm(name)


def test_an_unrelated_failed_plugin_is_only_mentioned() -> None:
    registry = Registry({}, failures=[PluginFailure(ONE, "api", "OMNIRL_API = 7")], loaded=[ALGOS])
    with pytest.raises(ConfigError) as caught:
        registry.algorithm("qqq")
    assert caught.value.lines == (
        "unknown algorithm 'qqq'; no algorithm is installed; it may come from plugin 'one' (acme-one "
        "1.0) failed "
        "(api): OMNIRL_API = 7",
    )


def test_a_disabled_plugin_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        Registry({}, disabled=[ALGOS]).algorithm("ppo")
    assert caught.value.lines == (
        "unknown algorithm 'ppo'; no algorithm is installed; plugin 'algos' (omnirl-algos 0.1.0) is "
        "switched off by "
        "OMNIRL_DISABLE_PLUGINS",
    )


def test_a_dotted_path_names_a_plugins_package(fake_registry: Any, fakes: Any) -> None:
    assert fake_registry.algorithm("acme.algorithms.q") is fakes.Q
    assert fake_registry.algorithm("acme.algorithms.pg") is fakes.GRADIENT
    assert fake_registry.env_backend("acme.envs") is fakes.ENVS


def test_a_dotted_path_finds_a_descriptor_that_is_no_plugin(
    fake_registry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "draft_package"
    package.mkdir()
    (package / "good.py").write_text("from acme_rl import ALGORITHM\n")
    (package / "wrong.py").write_text("ALGORITHM = 'ppo'\n")
    (package / "raises.py").write_text("1 / 0\n")
    (package / "lacks.py").write_text("import not_installed_anywhere\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert fake_registry.algorithm("draft_package.good").name == "draft"
    assert fake_registry.source_of(fake_registry.algorithm("draft_package.good")) is None
    for name, line in {
        "wrong": "draft_package.wrong.ALGORITHM: 'ppo' is no AlgorithmSpec",
        "raises": "the module 'draft_package.raises' cannot be imported: ZeroDivisionError: division by zero",
        "lacks": "the module 'draft_package.lacks' cannot be imported: ModuleNotFoundError: No "
        "module named "
        "'not_installed_anywhere'",
    }.items():
        with pytest.raises(PluginError) as caught:
            fake_registry.algorithm(f"draft_package.{name}")
        assert caught.value.lines == (line,)


def test_show_finds_by_entry_point_and_by_distribution() -> None:
    registry = presets(("walk", ONE), ("walk", TWO))
    assert [row.plugin for row in report.show(registry, "one")] == ["one"]
    (row,) = report.show(registry, "acme-two")
    assert (row.plugin, row.version, row.status) == ("two", "2.5", "ok")
    assert row.problems == tuple(registry.clashes())
    with pytest.raises(NotFoundError, match=r"no plugin 'acme-tow' \(did you mean 'acme-two'\?\)"):
        report.show(registry, "acme-tow")
