"""The YAML rules: what a scalar means, what is refused and where; what is written reads back equal."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnirl.api.errors import ConfigError, NotFoundError
from omnirl.config import files


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1e5", 100000.0),
        ("3e4", 30000.0),
        ("+1.5E+2", 150.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("12", 12),
        ("-7", -7),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("no", "no"),
        ("off", "off"),
        ("yes", "yes"),
        ("y", "y"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("2026-01-31", "2026-01-31"),
        ("nan", "nan"),
        ("0b11", "0b11"),
        ("-0x1F", "-0x1F"),
        ("e5", "e5"),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("[1, no, 1e-3]", [1, "no", 0.001]),
        ("{a: 1}", {"a": 1}),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: Any) -> None:
    read = files.load_text(f"key: {text}\n", "t.yaml").data["key"]
    assert read == value
    assert type(read) is type(value)


def test_nan_is_read_as_nan() -> None:
    assert math.isnan(files.load_text("key: .nan", "t.yaml").data["key"])


def test_keys_are_text_and_have_positions() -> None:
    tree = files.load_text("no: 1\nsection:\n  1: [a,\n      b]\n", "t.yaml")
    assert tree.data == {"no": 1, "section": {"1": ["a", "b"]}}
    assert {path: str(origin) for path, origin in tree.origins.items()} == {
        (): "t.yaml",
        ("no",): "t.yaml:1:1",
        ("section",): "t.yaml:2:1",
        ("section", "1"): "t.yaml:3:3",
        ("section", "1", 0): "t.yaml:3:7",
        ("section", "1", 1): "t.yaml:4:7",
    }


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "a: 1\nb:\n  c: 1\n  lr: 1\n  d: 2\n  e: 3\n  lr: 2\na: 2\n",
            [
                "t.yaml:7:3 duplicate key 'lr' (first at line 4)",
                "t.yaml:8:1 duplicate key 'a' (first at line 1)",
            ],
        ),
        ("a: 1\n'a': 2\n", ["t.yaml:2:1 duplicate key 'a' (first at line 1)"]),
        ("a:\n\tb: 1\n", ["t.yaml:2:1 a tab: YAML is indented with spaces"]),
        ("a: 1\n---\nb: 2\n", ["t.yaml:2:1 a second document begins here; a configuration is one document"]),
        ("a: &x 1\n", ["t.yaml:1:4 anchors and aliases (&x) are refused: write it out"]),
        ("a: *x\n", ["t.yaml:1:4 anchors and aliases (*x) are refused: write it out"]),
        (
            "a: !!python/object/apply:os.system ['touch /tmp/x']\n",
            [
                "t.yaml:1:4 the tag !!python/object/apply:os.system is refused: a configuration "
                "holds plain "
                "values only"
            ],
        ),
        ("a: !mine 3\n", ["t.yaml:1:4 the tag !mine is refused: a configuration holds plain values only"]),
        ("a: !!set {b}\n", ["t.yaml:1:4 the tag !!set is refused: a configuration holds plain values only"]),
        ("a: !!int x\n", ["t.yaml:1:4 'x' is no int"]),
        ("a: !!bool no\n", ["t.yaml:1:4 'no' is no bool"]),
        ("- a\n", ["t.yaml:1:1 a configuration is a mapping of sections, not a list"]),
        ("text\n", ["t.yaml:1:1 a configuration is a mapping of sections, not the single value 'text'"]),
        ("? [a]\n: 1\n", ["t.yaml:1:3 a key must be text"]),
        ("{: 1}\n", ["t.yaml:1:2 a key or a value is missing here"]),
        ("'': 1\n", ["t.yaml:1:1 an empty key"]),
        (": 1\n", ["t.yaml:1:1 does not fit the lines above (check the indentation)"]),
        ("a:\n  b: \x01\n", ["t.yaml:2:6 the character U+0001 is not allowed"]),
        ("a: b: c\n", ["t.yaml:1:5 a ':' where no key can be (check the indentation, or quote the text)"]),
        ("a: 'b\n", ["t.yaml:2:1 a quote or bracket is never closed"]),
        ("a: @b\n", ["t.yaml:1:4 '@' cannot begin a value: quote it"]),
        (
            "a: 1\n  b: 2\n",
            ["t.yaml:2:4 a ':' where no key can be (check the indentation, or quote the text)"],
        ),
        ("a: " + "[" * 60, ["t.yaml:1:43 nested more than 40 levels deep"]),
    ],
)
def test_mistakes_have_positions(text: str, lines: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        files.load_text(text, "t.yaml")
    assert list(caught.value.lines) == lines


def test_an_alias_bomb_is_refused_at_its_first_anchor() -> None:
    levels = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    with pytest.raises(ConfigError, match=r"t.yaml:1:5 anchors and aliases \(&a0\) are refused"):
        files.load_text("\n".join(levels), "t.yaml")


def test_a_file_with_too_many_values_is_refused() -> None:
    with pytest.raises(ConfigError, match="more than 20000 values: this is no configuration"):
        files.load_text("a: [" + "1, " * 30_000 + "1]", "t.yaml")


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~\n"])
def test_an_empty_file_is_an_empty_tree(text: str) -> None:
    assert files.load_text(text, "t.yaml").data == {}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a: 1\nb: \xe9\n", "{path}:2:4 the byte 0xe9 is not UTF-8 text"),
        ("a: 1\n".encode("utf-16"), "{path}:1:1 the byte 0xff is not UTF-8 text"),
        (b"#" * 1_000_001, "{path}: larger than 1 MB, so this is no configuration"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, content: bytes, line: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        files.load_file(path)
    assert caught.value.lines == (line.format(path=path),)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert files.load_file(path).data == {"a": 1}


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"nothing\.yaml: no such file"):
        files.load_file(tmp_path / "nothing.yaml")
    with pytest.raises(NotFoundError, match="is a folder, not a YAML file"):
        files.load_file(tmp_path)


AWKWARD = [
    "no",
    "1e-3",
    "12:30",
    "0o7",
    "~",
    "- a",
    ": b",
    "# x",
    "a #b",
    " a",
    "a\n",
    "\r\n",
    "\u2028",
    "\ufeff",
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(AWKWARD)
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1), inner, max_size=3),
)


@given(st.dictionaries(st.text(min_size=1), TREES, max_size=4))
def test_what_is_written_reads_back_equal(data: dict[str, Any]) -> None:
    assert files.load_text(files.dump(data), "t.yaml").data == data


def test_writing_is_readable_and_safe_for_older_readers() -> None:
    data = {"id": "no", "lr": 1e-5, "steps": 100, "sizes": (64, 64), "time": "12:30", "limit": math.inf}
    assert files.dump(data) == (
        "id: 'no'\nlr: 1e-05\nsteps: 100\nsizes: [64, 64]\ntime: '12:30'\nlimit: .inf\n"
    )


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    text = f"a: !!python/object/apply:os.mkdir ['{marker}']\n"
    with pytest.raises(ConfigError):
        files.load_text(text, "t.yaml")
    assert not marker.exists()
