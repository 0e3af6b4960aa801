"""Merging with origins, overrides, presets, the two-file form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnirl.api.errors import ConfigError, NotFoundError
from omnirl.api.plugin import PresetSpec
from omnirl.config import files, overrides
from omnirl.config.files import Tree, load_text, merge


def origins(tree: Tree) -> dict[str, str]:
    return {".".join(map(str, path)): str(origin) for path, origin in tree.origins.items() if path}


def test_the_later_wins_and_every_value_knows_where_it_came_from() -> None:
    preset = load_text("runner:\n  max_updates: 10\n  keep_last: 3\nsizes: [1, 2, 3]\n", "preset walk")
    file = load_text("runner: {max_updates: 20}\nsizes: [4]\n", "train.yaml")
    merged = merge(preset, file, overrides.parse(["runner.log_name=x"]))
    assert merged.data == {"runner": {"max_updates": 20, "keep_last": 3, "log_name": "x"}, "sizes": [4]}
    assert origins(merged) == {
        "runner": "preset walk:1:1",
        "runner.max_updates": "train.yaml:1:10",
        "runner.keep_last": "preset walk:3:3",
        "sizes": "train.yaml:2:1",
        "sizes.0": "train.yaml:2:9",
        "runner.log_name": "override",
    }


def test_the_mark_that_editors_put_first_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_bytes(b"\xef\xbb\xbfrunner: {max_updates: 3}\n")
    assert files.load_file(path).data == {"runner": {"max_updates": 3}}


def test_merging_leaves_its_sources_alone() -> None:
    first, second = load_text("a: {b: 1}\n", "1"), load_text("a: {c: 2}\n", "2")
    merge(first, second)
    assert (first.data, second.data) == ({"a": {"b": 1}}, {"a": {"c": 2}})


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        (
            "{kind: linear, start: 1, end: 0, steps: 5}",
            "{kind: linear, end: 2}",
            {"kind": "linear", "start": 1, "end": 2, "steps": 5},
        ),
        (
            "{kind: linear, start: 1, end: 0, steps: 5}",
            "{kind: piecewise, points: []}",
            {"kind": "piecewise", "points": []},
        ),
        ("{kind: linear, start: 1, end: 0}", "3", 3),
        ("3", "{kind: linear, start: 1}", {"kind": "linear", "start": 1}),
        ("{a: 1}", "~", None),
    ],
)
def test_kinds_replace_each_other(old: str, new: str, merged: Any) -> None:
    tree = merge(load_text(f"lr: {old}", "1"), load_text(f"lr: {new}", "2"))
    assert tree.data["lr"] == merged
    assert all(origin.source == "2" for path, origin in tree.origins.items() if path[1:] == ("points",))


def test_overrides_read_values_by_the_yaml_rules() -> None:
    tree = overrides.parse(
        [
            "a.lr=1e-3",
            "a.id=no",
            "a.sizes=[64, 64]",
            "a.eps={kind: linear, start: 1}",
            "a.eps.end=0",
            "a.none=",
            "b='1'",
        ]
    )
    assert tree.data == {
        "a": {
            "lr": 0.001,
            "id": "no",
            "sizes": [64, 64],
            "eps": {"kind": "linear", "start": 1, "end": 0},
            "none": None,
        },
        "b": "1",
    }
    assert set(origins(tree).values()) == {"override"}


def test_mistyped_overrides_are_reported_together() -> None:
    with pytest.raises(ConfigError) as caught:
        overrides.parse(
            ["lr", "a.=1", "=1", "x=1", "x=2", "a.b=1", "a.b.c=2", "c.d=1", "c=2", "e=*f", "g=[1"]
        )
    assert list(caught.value.lines) == [
        "override 'lr': expected KEY=VALUE, such as runner.max_updates=100",
        "override 'a.=1': expected KEY=VALUE, such as runner.max_updates=100",
        "override '=1': expected KEY=VALUE, such as runner.max_updates=100",
        "override x: given twice ('x=1' and 'x=2')",
        "override a.b.c: in conflict with 'a.b=1'",
        "override c: in conflict with 'c.d=1'",
        "override e: anchors and aliases (*f) are refused: write it out (quote the value: e='\"...\"')",
        "override g: expected ',' or ']', but got '<stream end>' (quote the value: g='\"...\"')",
    ]


def test_the_two_file_form(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text("runner: {max_updates: 3}\nagent: {module: ppo}\n")
    (tmp_path / "ppo.yaml").write_text("modules: {learner: {lr: 1e-3}}\n")
    tree = files.load_pair(tmp_path / "train.yaml", tmp_path / "ppo.yaml")
    assert tree.data == {
        "runner": {"max_updates": 3},
        "agent": {"module": "ppo"},
        "modules": {"learner": {"lr": 0.001}},
    }
    with pytest.raises(ConfigError) as caught:
        files.load_pair(tmp_path / "ppo.yaml", tmp_path / "train.yaml")
    assert caught.value.lines == (
        f"the runner file and the agent file are swapped: {tmp_path}/ppo.yaml (runner) holds modules; "
        f"{tmp_path}/train.yaml (agent) holds runner, agent",
    )


def test_a_preset_is_read_out_of_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "acme_presets"
    package.mkdir()
    (package / "walk.yaml").write_text("runner: {max_updates: 7}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    tree = files.load_preset(PresetSpec("walk", "", "acme_presets:walk.yaml"))
    assert tree.data == {"runner": {"max_updates": 7}}
    assert origins(tree)["runner.max_updates"] == "preset walk:1:10"
    for resource in ("acme_presets:run.yaml", "not_installed_anywhere:walk.yaml"):
        with pytest.raises(NotFoundError, match=f"preset 'walk': its file {resource} is missing"):
            files.load_preset(PresetSpec("walk", "", resource))


def test_settings_from_python(tmp_path: Path) -> None:
    tree = files.from_mapping({"runner": {"ckpt_dir": tmp_path}, "sizes": (1, 2)}, "settings")
    assert tree.data == {"runner": {"ckpt_dir": str(tmp_path)}, "sizes": [1, 2]}
    assert set(origins(tree).values()) == {"settings"}
