"""The ``network`` section that names a class: what is checked before anything is built, and how it is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from omnirl.cli.app import run
from omnirl.config.models import plain
from omnirl.networks.config import (
    ActorCriticNetworkConfig,
    CriticsNetworkConfig,
    DuelingNetworkConfig,
    NetworkConfig,
)

FAKES = Path(__file__).parent / "fakes"
HEAD = "agent: {module: ppo}\nenv: {module: omnirl.testing.environments, id: probe_p4}\nrunner: {max_updates: 1}\n"


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(FAKES))


@pytest.fixture
def told(tmp_path, monkeypatch, capsys):
    """``told(network, algorithm)`` -> the lines that ``config validate`` writes for a ``network`` section."""
    monkeypatch.chdir(tmp_path)

    def lines(network, algorithm="ppo"):
        text = HEAD.replace("ppo", algorithm) + f"modules: {{network: {network}}}\n"
        Path("train.yaml").write_text(text, encoding="utf-8")
        code = run(["config", "validate", "train.yaml"])
        output = capsys.readouterr()
        assert (code == 0) == (not output.err)
        assert code in (0, 2)
        return [line.partition("modules.network")[2] for line in output.err.splitlines()]

    return lines


def test_a_class_and_its_arguments_are_valid(told):
    assert told("{class: acme_nets:Anything, kwargs: {width: 1e1, sizes: [3, 4], gain: 2}}") == []
    assert told("{class: acme_nets:Echo, kwargs: {whatever: [1, a]}}") == []
    assert told("{class: acme_nets:Needy, kwargs: {width: 3}}", "sac") == []


def test_every_mistake_in_the_arguments_is_told_at_once(told):
    network = (
        "{class: acme_nets:Anything, kwargs: {widht: 3, gain: high, sizes: [1, b], mode: gatde, width: 1.5}}"
    )
    assert told(network) == [
        ".kwargs.widht: acme_nets:Anything takes no such argument (did you mean 'width'?)",
        ".kwargs.gain: must be a number, not 'high'",
        ".kwargs.sizes.1: must be a whole number, not 'b'",
        ".kwargs.mode: must be 'plain' or 'gated', not 'gatde' (did you mean 'gated'?)",
        ".kwargs.width: must be a whole number, not 1.5",
    ]


def test_an_argument_that_is_missing_is_named(told):
    needs = "acme_nets:Needy needs the argument 'width' (set modules.network.kwargs.width)"
    assert told("{class: acme_nets:Needy}") == [f": {needs}"]
    assert told("{class: acme_nets:Needy, kwargs: {levels: 1}}") == [
        f".kwargs: {needs}",
        ".kwargs.levels: acme_nets:Needy takes no such argument (it takes width)",
    ]


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("acme_nets.Anything", "must be of the form package.module:Class, not 'acme_nets.Anything'"),
        ("acme_nets:Anythin", "acme_nets:Anythin: the module has no 'Anythin' (did you mean 'Anything'?)"),
        ("acme_nets:NoNetwork", "acme_nets:NoNetwork: must be a subclass of torch.nn.Module"),
        ("acme_nets:flat", "acme_nets:flat: must be a subclass of torch.nn.Module"),
        (
            "acme_absent.nets:Net",
            "acme_absent.nets:Net: there is no module 'acme_absent' (install it, or put its folder into PYTHONPATH)",
        ),
        (
            "acme_slip:Net",
            "acme_slip:Net: its module cannot be imported: ModuleNotFoundError: No module named 'acme_lacks'",
        ),
        ("acme_attr:Net", "acme_attr:Net: its module cannot be imported: AttributeError: "),
    ],
)
def test_a_class_that_cannot_be_found_is_told_in_one_line(told, reference, text, tmp_path, monkeypatch):
    (tmp_path / "acme_slip.py").write_text("import acme_lacks\n")
    (tmp_path / "acme_attr.py").write_text("import json\njson.nothing\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (line,) = told(f"{{class: {reference!r}}}")
    assert line.startswith(f".class: {text}")


def test_keys_without_an_effect_are_refused(told):
    assert told("{class: acme_nets:Anything, kind: cnn}") == [
        ".kind: cnn has no effect beside class (leave it out)"
    ]
    assert told("{kwargs: {width: 3}}") == [
        ".kwargs: are those of a class of your own, and none is named (modules.network.class)"
    ]
    assert told("{layer_norm: true, hidden_sizes: []}") == [
        ": layer_norm has no effect: hidden_sizes is empty"
    ]
    assert told("{critic_layer_norm: true, critic_hidden_sizes: []}", "sac") == [
        ": critic_layer_norm has no effect: the critics have no hidden layers"
    ]
    (line,) = told("{shared_trunk: true}", "dqn")
    assert line.startswith(".shared_trunk: unknown key ('shared_trunk' is a key of a2c, impala, ppo)")
    (line,) = told("{hidden_sizes: []}", "dueling_dqn")
    assert "hidden_sizes needs at least one layer" in line


@pytest.mark.parametrize(
    "model", [NetworkConfig, ActorCriticNetworkConfig, DuelingNetworkConfig, CriticsNetworkConfig]
)
def test_a_section_with_a_class_is_the_same_once_written(model):
    config = model.model_validate(
        {"class": "acme_nets:Anything", "kwargs": {"sizes": [2]}, "layer_norm": True}
    )
    written = plain(config)
    assert (written["class"], written["kwargs"]) == ("acme_nets:Anything", {"sizes": [2]})
    assert model.model_validate(written) == config


def test_auto_is_decided_by_no_observation_where_a_class_is_named():
    from omnirl.api import ArraySpec

    config = NetworkConfig.model_validate({"class": "acme_nets:Anything"})
    assert config.for_observation(ArraySpec((4, 84, 84), "uint8", "image")) is config
    assert not config.undecided()


def test_a_class_that_is_no_text_is_a_mistake_of_type():
    with pytest.raises(ValidationError, match="valid string"):
        NetworkConfig.model_validate({"class": 3})


# ------------------------------------------------------------------------------ through the command line


def settings(name):
    return (
        "agent: {module: ppo}\nenv: {module: omnirl.testing.environments, id: probe_p4}\n"
        "runner: {max_updates: 2, num_samplers: 1, num_envs_per_sampler: 2, num_episodes: 2, ckpt_dir: runs/own}\n"
        "modules:\n  memory: {unroll_length: 8}\n  learner: {minibatch_size: 8}\n"
        f"  network:\n    class: acme_nets:{name}\n    hidden_sizes: [4]\n"
    )


@pytest.fixture
def file_of(tmp_path, monkeypatch):
    """``file_of(name)`` writes a file that names the class, into the folder that commands run in."""
    monkeypatch.chdir(tmp_path)
    return lambda name: Path("train.yaml").write_text(settings(name), encoding="utf-8")


def test_an_agent_is_evaluated_where_its_class_is_and_told_where_not(file_of, monkeypatch, capsys):
    file_of("Anything")
    assert run(["train", "train.yaml", "--local"]) == 0, capsys.readouterr().err
    assert run(["test", "runs/own", "--local"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(FAKES)])
    monkeypatch.delitem(sys.modules, "acme_nets")
    assert run(["test", "runs/own", "--local"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "run_config.yaml:" in line
    assert line.endswith(
        "modules.network.class: acme_nets:Anything: there is no module 'acme_nets' "
        "(install it, or put its folder into PYTHONPATH)"
    )


def test_a_class_that_breaks_its_promise_ends_the_run_with_its_place(file_of, capsys):
    file_of("BatchNormed")
    assert run(["train", "train.yaml", "--local"]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "BatchNormed" in line]
    assert line.partition("modules.network.class: ")[2].startswith("acme_nets:BatchNormed has the buffer")
    assert "train.yaml:8:5" in line
