"""The keys under ``env``: what is read, and what is refused before Gymnasium is imported."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from omnirl.envs.gymnasium.config import GymnasiumConfig


def test_only_the_id_is_needed() -> None:
    config = GymnasiumConfig.model_validate({"id": "CartPole-v1"})
    assert config.model_dump(exclude_defaults=True) == {"id": "CartPole-v1"}
    assert (config.kwargs, config.imports, config.render_mode) == ({}, (), None)


def test_what_is_written_out_as_json_reads_back_equal() -> None:
    config = GymnasiumConfig(
        id="acme/Reach-v0", kwargs={"goal": [0.5, 1], "noise": {"std": 0.1}}, imports=("acme_envs.register",)
    )
    assert GymnasiumConfig.model_validate(json.loads(config.model_dump_json())) == config


@pytest.mark.parametrize(
    ("keys", "place", "text"),
    [
        ({}, ("id",), "Field required"),
        ({"id": ""}, ("id",), "at least 1 character"),
        ({"id": 1}, ("id",), "valid string"),
        ({"id": "A", "idd": "B"}, ("idd",), "Extra inputs are not permitted"),
        ({"id": "A", "kwargs": ["x"]}, ("kwargs",), "valid dictionary"),
        ({"id": "A", "kwargs": {"render_mode": "human"}}, ("kwargs",), "render_mode belongs beside kwargs"),
        ({"id": "A", "kwargs": {"id": "B"}}, ("kwargs",), "id belongs beside kwargs, as env.id"),
        (
            {"id": "A", "imports": "acme_envs"},
            ("imports",),
            "must be a list of module names, such as [acme_envs]",
        ),
        ({"id": "A", "imports": ["acme-envs"]}, ("imports",), "'acme-envs' is not the name of a module"),
        ({"id": "A", "imports": [1]}, ("imports", 0), "valid string"),
        (
            {"id": "A", "frame_stack": 1001},
            ("frame_stack",),
            "must be at most 1000, not 1001: every number of every frame is an input of the network at each step",
        ),
        ({"id": "A", "render_mode": "window"}, ("render_mode",), "'human' or 'rgb_array'"),
    ],
)
def test_a_mistake_names_its_key(keys: dict[str, Any], place: tuple[Any, ...], text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        GymnasiumConfig.model_validate(keys)
    (error,) = caught.value.errors()
    assert error["loc"] == place
    assert text in error["msg"]


def test_a_thousand_frames_may_be_stacked() -> None:
    assert GymnasiumConfig(id="A", frame_stack=1000).frame_stack == 1000


def test_every_key_is_described_in_one_line() -> None:
    for name, field in GymnasiumConfig.model_fields.items():
        assert field.description, name
        assert "\n" not in field.description, name


def test_the_schema_for_editors_has_a_list_for_imports() -> None:
    imports = GymnasiumConfig.model_json_schema()["properties"]["imports"]
    assert (imports["type"], imports["items"]) == ("array", {"type": "string"})
