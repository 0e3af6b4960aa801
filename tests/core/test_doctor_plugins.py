"""``omnirl plugins doctor`` and ``omnirl doctor`` on real distributions: each kind of defect, and how to mend it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

PLUGIN = """
from omnirl.api import AlgorithmSpec, CommandSpec, EnvBackendSpec, ObserverSpec, PresetSpec, Supports, hookimpl
OMNIRL_API = 1

@hookimpl
def omnirl_algorithms():
    return [AlgorithmSpec(
        name="acme", summary="s", family="f", supports=Supports(actions=("discrete",)),
        config="acme_parts:Config", data_flow="omnirl.testing.algorithm:data_flow",
        policy="acme_parts:lost", memory="omnirl.testing.toy:toy_memory", learner="acme_learner:Learner",
        agent_file="acme_parts:NUMBER", metric_names=("loss",))]

@hookimpl
def omnirl_env_backends():
    return [EnvBackendSpec("acme_env", "s", "omnirl.testing.environments:PropConfig",
        "omnirl.testing.environments:build_env")]

@hookimpl
def omnirl_presets():
    return [PresetSpec("gone", "s", "acme_plugin:gone.yaml")]

@hookimpl
def omnirl_observers():
    return [ObserverSpec("quits", "acme_quits:Observer")]

@hookimpl
def omnirl_commands():
    return [CommandSpec("fine", "s", "acme_parts:Config")]
"""
MODULES = {
    "acme_plugin": PLUGIN,
    "acme_parts": "from pydantic import BaseModel\nclass Config(BaseModel):\n    gamma: float = 0.9\nNUMBER = 1\n",
    "acme_learner": "import frobnicate_torch\n",
    "acme_quits": "raise SystemExit(0)\n",
}
SOUND = """
from omnirl.api import EnvBackendSpec, hookimpl
OMNIRL_API = 1

@hookimpl
def omnirl_env_backends():
    from omnirl.testing.environments import BACKEND
    return [BACKEND]
"""


def command(installation: Any, *arguments: str) -> Any:
    return installation.run(f"import sys; from omnirl.cli.app import run; sys.exit(run({list(arguments)!r}))")


def examined(installation: Any) -> dict[str, Any]:
    done = command(installation, "plugins", "doctor", "--json")
    assert done.stderr == ""
    return {row["plugin"]: row for row in json.loads(done.stdout)}


@pytest.fixture(scope="module")
def broken(shared_installation: Any) -> Any:
    shared_installation.add("acme-rl", "1.2", {"acme": "acme_plugin"}, MODULES)
    shared_installation.add("old-rl", "0.1", {"old": "old_plugin"}, {"old_plugin": "OMNIRL_API = 0"})
    shared_installation.add("lost-rl", "3.0", {"lost": "lost_plugin"}, {"lost_plugin": "import quux"})
    return shared_installation


@pytest.fixture(scope="module")
def findings(broken: Any) -> dict[str, Any]:
    rows = examined(broken)
    assert {name: rows[name]["status"] for name in ("acme", "old", "lost")} == dict.fromkeys(
        ("acme", "old", "lost"), "problem"
    )
    return {item["subject"]: item for item in rows["acme"]["findings"]}


@pytest.mark.parametrize(
    ("subject", "status", "text", "remedy"),
    [
        (
            "algorithm 'acme', learner",
            "problem",
            "acme_learner:Learner cannot be loaded: ModuleNotFoundError: No module named 'frobnicate_torch'",
            "pip install frobnicate_torch",
        ),
        (
            "algorithm 'acme', policy",
            "problem",
            "acme_parts:lost cannot be loaded: AttributeError: 'acme_parts' has no 'lost' (from 'acme_parts:lost')",
            "pip install -U acme-rl, or do without it: OMNIRL_DISABLE_PLUGINS=acme",
        ),
        (
            "algorithm 'acme', agent_file",
            "problem",
            "acme_parts:NUMBER is an object of type int, which cannot be used as that",
            "pip install -U acme-rl, or do without it: OMNIRL_DISABLE_PLUGINS=acme",
        ),
        (
            "algorithm 'acme', config",
            "warning",
            "keys without a description: gamma",
            "tell the authors of acme-rl: Field(description=...)",
        ),
        (
            "environment backend 'acme_env', backend",
            "problem",
            "omnirl.testing.environments:build_env is an object of type function, which cannot be used as that",
            "pip install -U acme-rl, or do without it: OMNIRL_DISABLE_PLUGINS=acme",
        ),
        (
            "observer 'quits'",
            "problem",
            "acme_quits:Observer cannot be loaded: SystemExit: 0",
            "pip install -U acme-rl, or do without it: OMNIRL_DISABLE_PLUGINS=acme",
        ),
    ],
)
def test_a_part_that_is_broken(findings, subject, status, text, remedy):
    found = findings[subject]
    assert (found["status"], found["text"], found["remedy"]) == (status, text, remedy)


def test_a_preset_without_its_file(findings):
    assert findings["preset 'gone'"]["status"] == "problem"
    assert "gone.yaml" in findings["preset 'gone'"]["text"]


def test_what_is_sound_is_not_mentioned(findings):
    assert len(findings) == 7


def test_a_plugin_that_cannot_be_asked(broken):
    rows = examined(broken)
    (old,), (lost,) = rows["old"]["findings"], rows["lost"]["findings"]
    assert old["subject"] == "api"
    assert "OMNIRL_API = 0" in old["text"]
    assert (lost["subject"], lost["remedy"]) == ("import", "pip install quux")


def test_a_plugin_whose_own_module_is_gone(installation):
    installation.add("torn-rl", "1.0", {"torn": "torn_plugin.inner"}, {})
    (torn,) = examined(installation)["torn"]["findings"]
    assert torn["remedy"] == "pip install --force-reinstall --no-deps torn-rl"


def test_a_clash_of_names(installation):
    installation.add("one-rl", "1.0", {"one": "one_plugin"}, {"one_plugin": SOUND})
    installation.add("two-rl", "1.0", {"two": "two_plugin"}, {"two_plugin": SOUND})
    rows = examined(installation)
    for name in ("one", "two"):
        (clash,) = rows[name]["findings"]
        assert clash["text"].startswith("the environment backend 'testing' is provided by")
        assert "OMNIRL_DISABLE_PLUGINS=two" in clash["remedy"]


def test_text_and_exit_codes(installation):
    installation.add("sound-rl", "1.0", {"sound": "sound_plugin"}, {"sound_plugin": SOUND})
    installation.variables["OMNIRL_DISABLE_PLUGINS"] = "algos,gymnasium"
    done = command(installation, "plugins", "doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert "ok       sound (sound-rl 1.0)" in done.stdout.splitlines()
    installation.add("lost-rl", "3.0", {"lost": "lost_plugin"}, {"lost_plugin": "import quux"})
    done = command(installation, "plugins", "doctor")
    assert (done.returncode, done.stderr) == (4, "")
    lines = done.stdout.splitlines()
    place = lines.index("problem  lost (lost-rl 3.0)")
    assert lines[place + 1 : place + 3] == [
        "  problem  import: ModuleNotFoundError: No module named 'quux'",
        "           -> pip install quux",
    ]


# ------------------------------------------------------------------ omnirl doctor

QUICK = (
    "from omnirl.doctor import machine\n"
    "machine.look = lambda: iter([machine.cores(4), machine.loopback()])\n"
    "import sys; from omnirl.cli.app import run; sys.exit(run({arguments!r}))"
)


def doctor(installation: Any, *arguments: str) -> Any:
    """``omnirl doctor`` without the slow look at Ray and torch."""
    return installation.run(QUICK.format(arguments=["doctor", *arguments]))


def test_the_doctor_prints_a_line_for_each_thing(installation):
    installation.variables["OMNIRL_DISABLE_PLUGINS"] = "algos,gymnasium"
    done = doctor(installation)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"ok       python: {sys.version.split()[0]}"
    assert "ok       package omnirl: shared by OmniRL's distributions alone" in lines
    assert "ok       cores: 4" in lines


def test_the_doctor_as_json_and_its_exit_code(installation):
    installation.add("lost-rl", "3.0", {"lost": "lost_plugin"}, {"lost_plugin": "import quux"})
    done = doctor(installation, "--json")
    data = json.loads(done.stdout)
    assert (done.returncode, done.stderr, data["status"]) == (4, "", "problem")
    (plugins,) = [item for item in data["checks"] if item["subject"] == "plugins"]
    assert (plugins["status"], plugins["remedy"]) == ("problem", "omnirl plugins doctor")


def test_the_doctor_looks_at_the_real_machine(installation):
    """Whatever it finds here, it finds its way to the end."""
    done = command(installation, "doctor", "--json")
    subjects = [item["subject"] for item in json.loads(done.stdout)["checks"]]
    assert subjects[-3:] == ["loopback", "ray", "torch"]
    assert done.returncode in (0, 4, 6)
    assert done.stderr == ""


# ------------------------------------------------------------------ the first version beside ours

UNINSTALL = "python -m pip uninstall --yes omnirl-framework"


@pytest.fixture
def first_version(installation: Any) -> Any:
    """A distribution as the first version is: it owns the package ``omnirl``."""
    installation.add("omnirl-framework", "0.3.1", {}, {"omnirl_framework_marker": ""})
    return installation


@pytest.mark.parametrize("arguments", [["version"], ["train", "cartpole-ppo"], ["plugins", "doctor"]])
def test_every_command_names_the_first_version(first_version, arguments):
    done = command(first_version, *arguments)
    assert (done.returncode, done.stdout) == (4, "")
    assert "omnirl-framework, OmniRL's first version, is installed" in done.stderr
    assert UNINSTALL in done.stderr
    assert "Traceback" not in done.stderr


def test_the_doctor_names_it_among_all_else(first_version):
    done = doctor(first_version)
    assert (done.returncode, done.stderr) == (4, "")
    assert "problem  package omnirl: omnirl-framework, OmniRL's first version, is installed" in done.stdout
    assert f"-> {UNINSTALL}" in done.stdout
    assert "ok       cores: 4" in done.stdout
