"""Tables: the keys of a configuration model, and columns that fit the terminal."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import pytest
from pydantic import Field

from omnirl.api.config import Config, IntTuple
from omnirl.api.schedule import Constant, Linear, Schedule
from omnirl.cli.listing import aligned
from omnirl.cli.parameters import item_models, parameter_rows, yaml_text


class Colour(Enum):
    red = "red"


class Inner(Config):
    rate: Schedule = Field(default=Constant(value=3e-4), description="a rate")
    ramp: Schedule = Field(default=Linear(kind="linear", start=1.0, end=0.0), description="a ramp")


class Outer(Config):
    sizes: IntTuple = Field(default=(64, 64), description="sizes")
    flag: bool = Field(default=False, description="a flag")
    limit: float | None = Field(default=None, description="a limit")
    name: str = Field(description="a name")
    made: dict[str, int] = Field(default_factory=lambda: {"a": 1}, description="made on demand")
    inner: Inner = Field(default=Inner(), description="a section")
    maybe: Inner | None = Field(default=None, description="a section that may be left out")


class Noise(Config):
    kind: str = "ou"
    std: Schedule = Constant(value=0.1)
    theta: float | None = None


def test_keys_defaults_and_descriptions_of_a_model():
    rows = [(row["key"], row["default"], row["description"]) for row in parameter_rows(Outer, "modules.")]
    assert rows == [
        ("modules.sizes", "[64, 64]", "sizes"),
        ("modules.flag", "false", "a flag"),
        ("modules.limit", "unset", "a limit"),
        ("modules.name", "required", "a name"),
        ("modules.made", "{a: 1}", "made on demand"),
        ("modules.inner.rate", "0.0003", "a rate"),
        ("modules.inner.ramp", "{kind: linear, start: 1.0, end: 0.0, after: 0.0, until: 1.0}", "a ramp"),
        ("modules.maybe.rate", "0.0003", "a rate"),
        ("modules.maybe.ramp", "{kind: linear, start: 1.0, end: 0.0, after: 0.0, until: 1.0}", "a ramp"),
    ]


class Listing(Config):
    items: tuple[Annotated[Inner | Noise, Field(description="an item")], ...] = ()
    more: list[Noise] = Field(default_factory=list)
    sizes: IntTuple = (1,)
    section: Inner = Inner()


def test_the_models_that_the_items_of_a_list_may_have():
    found = {name: item_models(field) for name, field in Listing.model_fields.items()}
    assert found == {"items": [Inner, Noise], "more": [Noise], "sizes": [], "section": []}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1e-05, "1e-05"),
        (Colour.red, "red"),
        ({"a": [1, None]}, "{a: [1, null]}"),
        (Noise(), "{kind: ou, std: 0.1}"),
    ],
)
def test_a_value_in_one_line_of_yaml(value, text):
    assert yaml_text(value) == text


TABLE = [["key", "text"], ["a", "one two three four five six seven eight nine ten"]]


def test_in_a_terminal_the_last_column_wraps_under_itself(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert aligned(TABLE) == [
        "key  text",
        "a    one two three four five six seven",
        "     eight nine ten",
    ]


def test_without_a_terminal_a_row_is_one_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: False)
    assert aligned(TABLE) == ["key  text", "a    one two three four five six seven eight nine ten"]
