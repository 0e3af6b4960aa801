"""Plugins are found in real distributions on disk; one that is broken costs only itself."""

from __future__ import annotations

from typing import Any

import pytest

GOOD = """
from omnirl.api import ObserverSpec, PresetSpec, hookimpl
OMNIRL_API = 1

@hookimpl
def omnirl_presets():
    return [PresetSpec("acme-walk", "walks", "acme:walk.yaml")]

@hookimpl
def omnirl_observers():
    yield ObserverSpec("acme-log", "acme:Log")
"""
STATUS = """
from omnirl.plugins import report
answer = {row.plugin: [row.status, list(row.problems), row.provides] for row in report.rows(registry)}
"""


@pytest.fixture
def good(installation: Any) -> Any:
    installation.add("acme-good", "1.0", {"good": "acme_good"}, {"acme_good": GOOD})
    return installation


def broken(source: str) -> str:
    return f"from omnirl.api import *\nfrom omnirl.api import PresetSpec, hookimpl\nOMNIRL_API = 1\n{source}"


def test_a_good_plugin_is_reported_with_what_it_provides(good: Any) -> None:
    status, problems, provides = good.ask(STATUS)["good"]
    assert (status, problems) == ("ok", [])
    assert provides == {"presets": ["acme-walk"], "observers": ["acme-log"]}


BROKEN = [
    (
        "import not_installed_anywhere",
        "import: ModuleNotFoundError: No module named 'not_installed_anywhere'",
    ),
    ("raise SystemExit('bye')", "import: SystemExit: bye"),
    ("1 +", "import: SyntaxError: invalid syntax ({module}.py, line 1)"),
    ("", "api: {module} does not say OMNIRL_API = 1"),
    ("OMNIRL_API = 2", "api: OMNIRL_API = 2, this omnirl-core accepts 1 (pip install -U omnirl-core)"),
    ("OMNIRL_API = 0", "api: OMNIRL_API = 0, this omnirl-core accepts 1 (update the plugin)"),
    ("OMNIRL_API = True", "api: OMNIRL_API = True, this omnirl-core accepts 1 (update the plugin)"),
    ("OMNIRL_API = '1'", "api: OMNIRL_API = '1', this omnirl-core accepts 1 (update the plugin)"),
    (
        broken("def omnirl_presets(): return []"),
        "hooks: omnirl_presets is not marked with @hookimpl",
    ),
    (
        broken("@hookimpl\ndef omnirl_preset(): return []"),
        "hooks: there is no hook 'omnirl_preset' (hooks: omnirl_algorithms, omnirl_env_backends, "
        "omnirl_presets, omnirl_observers, omnirl_commands)",
    ),
    (
        broken("@hookimpl\ndef omnirl_presets(config): return []"),
        "hooks: omnirl_presets must take no arguments, but is omnirl_presets(config)",
    ),
    (
        broken("@hookimpl\ndef omnirl_presets(*, config): return []"),
        "hooks: omnirl_presets must take no arguments, but is omnirl_presets(*, config)",
    ),
    (
        broken("@hookimpl(wrapper=True)\ndef omnirl_presets():\n    return (yield)"),
        "hooks: omnirl_presets must not be a wrapper",
    ),
    (
        broken("@hookimpl\ndef omnirl_presets(): raise ValueError('no\\n luck')"),
        "call: omnirl_presets: ValueError: no luck",
    ),
    (
        broken("@hookimpl\ndef omnirl_presets():\n    yield PresetSpec('a', 'b', 'c:d')\n    1 / 0"),
        "call: omnirl_presets: ZeroDivisionError: division by zero",
    ),
    (
        broken("@hookimpl\ndef omnirl_presets(): pass"),
        "descriptors: omnirl_presets returned None, not a list of PresetSpec",
    ),
    (
        broken("@hookimpl\ndef omnirl_presets(): return 'walk'"),
        "descriptors: omnirl_presets returned 'walk', not a list of PresetSpec",
    ),
    (
        broken("@hookimpl\ndef omnirl_presets(): return [ObserverSpec('a', 'b:c')]"),
        "descriptors: omnirl_presets: an object of type ObserverSpec is no PresetSpec",
    ),
    (
        broken("@hookimpl\ndef omnirl_presets(): return [PresetSpec('a b', '', 'c:d')]"),
        "descriptors: omnirl_presets: 'a b' is no name (letters, digits, '_' and '-', beginning with "
        "a letter "
        "or digit)",
    ),
    (
        broken("@hookimpl\ndef omnirl_presets(): return [PresetSpec('a', '', 'walk.yaml')]"),
        "descriptors: PresetSpec 'a': resource is 'walk.yaml', not of the form 'package.module:name'",
    ),
    (
        broken("@hookimpl\ndef omnirl_observers(): return [ObserverSpec('a', 'b:c', default=1)]"),
        "descriptors: ObserverSpec 'a': default is 1, not True or False",
    ),
    (
        broken(
            "P = ['m:x'] * 6\n@hookimpl\ndef omnirl_algorithms(): "
            "return [AlgorithmSpec('a', '', '', Supports(actions=('descrete',)), *P, metric_names=())]"
        ),
        "descriptors: AlgorithmSpec 'a': supports.actions has 'descrete', which is none of discrete, "
        "multi_discrete, continuous, bounded_continuous",
    ),
    (
        broken(
            "P = ['m:x'] * 6\n@hookimpl\ndef omnirl_algorithms(): "
            "return [AlgorithmSpec('a', '', '', Supports(actions=('discrete',)), *P, "
            "metric_names=['loss'])]"
        ),
        "descriptors: AlgorithmSpec 'a': metric_names is ['loss'], not a tuple of strings",
    ),
]
"""Modules and the problem that is reported; ``{module}`` is the module's name."""


@pytest.fixture(scope="module")
def statuses(shared_installation: Any) -> Any:
    """The report of one installation with a good plugin and all the broken ones."""
    shared_installation.add("acme-good", "1.0", {"good": "acme_good"}, {"acme_good": GOOD})
    for number, (source, _) in enumerate(BROKEN):
        name = f"acme_bad{number}"
        shared_installation.add(f"acme-bad{number}", "0.3", {f"bad{number}": name}, {name: source})
    return shared_installation.ask(STATUS)


@pytest.mark.parametrize("number", range(len(BROKEN)), ids=lambda number: BROKEN[number][1])
def test_a_broken_plugin_says_why(statuses: Any, number: int) -> None:
    problem = BROKEN[number][1].replace("{module}", f"acme_bad{number}")
    assert statuses[f"bad{number}"] == ["failed", [problem], {}]


def test_broken_plugins_cost_only_themselves(statuses: Any) -> None:
    assert statuses["good"][:2] == ["ok", []]


def test_an_entry_point_must_refer_to_a_module(good: Any) -> None:
    good.add("acme-bad", "0.3", {"bad": "acme_bad:plugin"}, {"acme_bad": "plugin = 3"})
    assert good.ask(STATUS)["bad"][1] == ["import: the entry point 'acme_bad:plugin' must refer to a module"]


def test_a_hook_may_have_another_function_name(installation: Any) -> None:
    source = broken(
        "@hookimpl(specname='omnirl_presets')\n"
        "def presets(verbose=False): return [PresetSpec('a', '', 'b:c')]"
    )
    installation.add("acme-good", "1.0", {"good": "acme_good"}, {"acme_good": source})
    assert installation.ask(STATUS)["good"] == ["ok", [], {"presets": ["a"]}]


def test_a_disabled_plugin_is_not_even_imported(good: Any) -> None:
    good.add("acme-bad", "0.3", {"bad": "acme_bad"}, {"acme_bad": "import sys; sys.exit('imported')"})
    good.variables["OMNIRL_DISABLE_PLUGINS"] = "other, bad"
    found = good.ask("import sys\n" + STATUS + "answer['imported'] = 'acme_bad' in sys.modules")
    assert found["bad"] == ["disabled", [], {}]
    assert found["imported"] is False
    assert found["good"][0] == "ok"


@pytest.mark.parametrize("value", ["", "0"])
def test_without_strict_failures_are_only_recorded(good: Any, value: str) -> None:
    good.add("acme-bad", "0.3", {"bad": "acme_bad"}, {"acme_bad": "1 / 0"})
    good.variables["OMNIRL_STRICT_PLUGINS"] = value
    assert good.ask(
        "answer = [str(failure) for failure in registry.failures if failure.source.plugin == 'bad']"
    ) == ["plugin 'bad' (acme-bad 0.3) failed (import): ZeroDivisionError: division by zero"]


def test_strict_makes_every_failure_and_clash_an_error(good: Any) -> None:
    good.add("acme-bad", "0.3", {"bad": "acme_bad"}, {"acme_bad": "1 / 0"})
    good.add("acme-twin", "2.0", {"twin": "acme_twin"}, {"acme_twin": GOOD})
    good.variables["OMNIRL_STRICT_PLUGINS"] = "1"
    done = good.run(
        "import omnirl.plugins\nfrom omnirl.api.errors import PluginError\n"
        "try: omnirl.plugins.load()\n"
        "except PluginError as error: print(error.exit_code, *error.lines, sep='\\n')"
    )
    code, *lines = done.stdout.splitlines()
    assert code == "4"
    lines = [line for line in lines if "acme" in line]
    assert lines[0] == "plugin 'bad' (acme-bad 0.3) failed (import): ZeroDivisionError: division by zero"
    assert [line.partition(" is provided")[0] for line in lines[1:]] == [
        "the preset 'acme-walk'",
        "the observer 'acme-log'",
    ]


def test_a_command_with_a_name_of_omnirls_own_is_refused_alone(installation: Any) -> None:
    source = broken(
        "@hookimpl\ndef omnirl_commands():\n"
        "    return [CommandSpec('train', '', 'acme:train'), CommandSpec('acme', '', 'acme:run')]"
    )
    installation.add("acme-good", "1.0", {"good": "acme_good"}, {"acme_good": source})
    status, problems, provides = installation.ask(STATUS)["good"]
    assert status == "partly"
    assert problems == ["command: the command 'train' is refused: the name is OmniRL's own"]
    assert provides == {"commands": ["acme"]}


def test_looking_for_plugins_imports_nothing_heavy(good: Any) -> None:
    heavy = ["numpy", "pydantic", "yaml", "torch", "ray", "gymnasium"]
    assert good.ask(f"import sys\nanswer = [name for name in {heavy} if name in sys.modules]") == []
