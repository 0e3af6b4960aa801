"""The generated page of the configuration has every key, those of ``env.wrappers`` too, as the models have them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import omnirl.plugins
from omnirl.api import load_object
from omnirl.cli.parameters import parameter_rows, section_model
from omnirl.envs.gymnasium import wrapper_config

DOCS = Path(__file__).parents[2] / "docs"
ITEMS = "### Items of `env.wrappers` of gymnasium"


@pytest.fixture(scope="module")
def page(module_at: Callable[[Path], ModuleType]) -> str:
    return "\n".join(module_at(DOCS / "generate.py").configuration())


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    lines = page.split(heading + "\n", 1)[1].splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("| ---"))
    table = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line[1:-1].split(" | ")])
    return table


def test_each_wrapper_is_there_with_what_it_is_for(page: str) -> None:
    named = [row for row in rows(page, ITEMS) if row[0]]
    assert [row[0] for row in named] == [f"`{name}`" for name in (*wrapper_config.NAMES, "class")]
    assert named[0][-1] == "no-op start, frame skip, lives, FIRE, a small grey picture, signs as rewards"
    assert named[-1][-1] == "any wrapper, by its dotted path"


def test_each_parameter_of_a_wrapper_is_there(page: str) -> None:
    shown = [tuple(row) for row in rows(page, ITEMS) if not row[0]]
    for row in (
        ("", "`noop_max`", "`30`", "integer >= 0", "most no-op actions that begin a game"),
        ("", "`width`", "`required`", "integer >= 1", "columns, in pixels"),
        ("", "`factor`", "`required`", "number", "every training reward is multiplied by it"),
        ("", "`low`", "`-1.0`", "number", "least training reward"),
        ("", "`training_only`", "`false`", "`true`, `false`", "leave it out in evaluation"),
    ):
        assert row in shown
    count = 0
    for name in wrapper_config.NAMES:
        entry = getattr(wrapper_config, "".join(part.title() for part in name.split("_")))
        for key in parameter_rows(entry):
            assert any(row[1] == f"`{key['key']}`" and row[4] == key["description"] for row in shown)
            count += 1
    assert len(shown) == count + len(wrapper_config.ClassEntry.model_fields)


def test_each_key_of_an_algorithm_is_there(page: str) -> None:
    for provided in omnirl.plugins.load().algorithms():
        model = load_object(provided.spec.config)
        shown = [row[0] for row in rows(page, f"## `modules` of {provided.spec.name}")]
        assert shown == [f"`{row['key']}`" for row in parameter_rows(model)]
        assert all(section_model(field) for field in model.model_fields.values())
