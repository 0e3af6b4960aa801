"""Mistakes inside the items of a list are placed and explained as those of a mapping are."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationError

from omnirl.api.config import Config, PositiveInt
from omnirl.config import models
from omnirl.config.messages import explain


class Small(Config):
    """One kind of item."""

    size: PositiveInt = Field(description="a size")


class Large(Config):
    """Another."""

    height: PositiveInt = Field(description="a height")


class Outer(Config):
    """A list of two kinds."""

    items: Annotated[tuple[Small | Large, ...], BeforeValidator(tuple)] = Field(
        default=(), description="a list"
    )


def test_the_models_of_an_item_are_those_of_its_list() -> None:
    data = {"items": [{"size": 1}, {"height": 2}]}
    assert models.models_at(Outer, ("items", 1), data) == [Small, Large]
    assert models.annotation_at(Outer, ("items", 1, "height"), data) is not None
    assert models.annotation_at(Outer, ("items", 1, "depth"), data) is None


def test_a_mistake_in_an_item_has_the_items_number() -> None:
    data = {"items": [{"size": 1}, {"size": 0}]}
    try:
        Outer.model_validate(data)
    except ValidationError as error:
        mistakes = explain(error, Outer, data, ("env",))
    placed = {mistake.path: mistake.text for mistake in mistakes}
    assert placed[("env", "items", 1, "size")].startswith("must be at least 1")
