"""The templates of ``examples/algorithms`` hold every key of their algorithm, and what they say is a default is it."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.api.plugin import load_object
from omnirl.cli.app import run
from omnirl.config.files import load_text

TEMPLATES = sorted((Path(__file__).parents[2] / "examples" / "algorithms").glob("*.yaml"))
SPECS = {spec.name: spec for spec in ALGORITHMS}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_every_key_is_there(path):
    text = path.read_text(encoding="utf-8")
    data = load_text(text, path.name).data
    config = load_object(SPECS[data["agent"]["module"]].config)
    defaults = config()
    for section in config.model_fields:
        keys = type(getattr(defaults, section)).model_fields
        assert list(data["modules"][section]) == list(keys), section
        for field in keys.values():  # described in the words of the reference
            assert field.description.split()[0] in text
    if path.stem == data["agent"]["module"]:  # the others show a variant's values
        assert config.model_validate(data["modules"]) == defaults


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_its_command_is_valid(path, tmp_path, monkeypatch, capsys):
    text = path.read_text(encoding="utf-8")
    (command,) = [line for line in text.splitlines() if line.startswith("#   omnirl train ")]
    assert command.split()[3] == f"examples/algorithms/{path.name}"
    monkeypatch.chdir(path.parents[2])
    arguments = [*command.split()[2:], "--local", "--dry-run", "--run-dir", str(tmp_path / "run")]
    assert run(arguments) == 0, capsys.readouterr().err
