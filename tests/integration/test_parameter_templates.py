"""The templates of ``examples/algorithms`` are what their script writes: every key of each algorithm, described, with
its default."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.api.plugin import load_object
from omnirl.cli.app import run
from omnirl.config.files import load_text

FOLDER = Path(__file__).parents[2] / "examples" / "algorithms"
TEMPLATES = sorted(FOLDER.glob("*.yaml"))
SPECS = {spec.name: spec for spec in ALGORITHMS}


@pytest.fixture(scope="module")
def script(module_at: Callable[[Path], ModuleType]) -> ModuleType:
    return module_at(FOLDER / "generate.py")


def test_each_algorithm_has_its_template(script: ModuleType) -> None:
    assert {path.stem for path in TEMPLATES} == set(script.TEMPLATES) == set(SPECS) | {"sac-discrete"}
    assert len(SPECS) == 13


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_is_what_the_script_writes(path: Path, script: ModuleType) -> None:
    expected = script.template_text(path.stem)
    assert path.read_text(encoding="utf-8") == expected, "run: python examples/algorithms/generate.py"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_every_key_is_there_with_its_meaning(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    data = load_text(text, path.name).data
    config = load_object(SPECS[data["agent"]["module"]].config)
    defaults = config()
    told = " ".join(line.strip().removeprefix("# ") for line in text.splitlines())
    for section in config.model_fields:
        fields = type(getattr(defaults, section)).model_fields
        assert list(data["modules"][section]) == [field.alias or name for name, field in fields.items()], (
            section
        )
        for name, field in fields.items():
            assert f" {field.description} {field.alias or name}: " in told
    if path.stem == data["agent"]["module"]:  # the others show a variant's values
        assert config.model_validate(data["modules"]) == defaults


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_its_command_is_valid(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = path.read_text(encoding="utf-8")
    (command,) = [line for line in text.splitlines() if line.startswith("#   omnirl train ")]
    assert command.split()[3] == f"examples/algorithms/{path.name}"
    monkeypatch.chdir(path.parents[2])
    arguments = [*command.split()[2:], "--local", "--dry-run", "--run-dir", str(tmp_path / "run")]
    assert run(arguments) == 0, capsys.readouterr().err


def test_a_variant_changes_what_it_says(script: ModuleType) -> None:
    told = load_text((FOLDER / "sac-discrete.yaml").read_text(encoding="utf-8"), "sac-discrete.yaml").data
    assert told["modules"]["memory"]["batch_size"] == 64
    assert told["modules"]["network"]["hidden_sizes"] == [64, 64]
    unknown = script.TEMPLATES["sac-discrete"]._replace(changes={"memory.batch": 64})
    script.TEMPLATES["unknown"] = unknown
    try:
        with pytest.raises(KeyError, match=r"memory\.batch"):
            script.template_text("unknown")
    finally:
        del script.TEMPLATES["unknown"]
