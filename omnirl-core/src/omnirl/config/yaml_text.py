"""YAML as people expect it: the 1.2 core rules, with positions, and nothing that runs or explodes.

``1e-3`` is a float, ``no`` and ``12:30`` are strings, ``0o17`` is octal and ``017`` is seventeen. A
duplicate key, an anchor, an alias, a tag beyond the plain types and a second document are mistakes. Only
PyYAML's parser is used, none of its constructors, so no tag can ever run anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import yaml

Path = tuple[str | int, ...]
"""Where a value is: keys, and the numbers of list items."""
Position = tuple[int, int]
"""Line and column, from 1."""

MAX_DEPTH = 40
MAX_NODES = 20_000
MAX_DIGITS = 300
_TAG = "tag:yaml.org,2002:"
_RULES: tuple[tuple[str, re.Pattern[str], list[str]], ...] = (
    ("null", re.compile(r"(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("int", re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$"), list("-+0123456789")),
    (
        "float",
        re.compile(
            r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        list("-+.0123456789"),
    ),
)


class YamlMistake(Exception):
    """Mistakes in a text: ``(line, column, what)`` each; line 0 where there is no position."""

    def __init__(self, *mistakes: tuple[int, int, str]) -> None:
        super().__init__("; ".join(what for _, _, what in mistakes))
        self.mistakes = mistakes


class _Loader(yaml.SafeLoader):
    """PyYAML's parser with the 1.2 core rules, limited in depth and size."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML declares it

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
            _fail(event.start_mark, f"anchors and aliases ({sign}{event.anchor}) are refused: write it out")
        self.depth += 1
        self.nodes += 1
        if self.depth > MAX_DEPTH:
            _fail(event.start_mark, f"nested more than {MAX_DEPTH} levels deep")
        if self.nodes > MAX_NODES:
            _fail(event.start_mark, f"more than {MAX_NODES} values: this is no configuration")
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Dumper(yaml.SafeDumper):
    """Writes what _Loader reads back equal; also quotes what YAML 1.1 readers would misread (no, 12:30)."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML declares it
        first: list(rules) for first, rules in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        return True


for _name, _pattern, _first in reversed(_RULES):
    for _character in _first:
        # In front of what is there: of our rules int before float, and in the dumper ours before YAML 1.1's,
        # so that 1e-05 is written plain, for it reads back as a float.
        for _reader in (_Loader, _Dumper):
            _reader.yaml_implicit_resolvers.setdefault(_character, []).insert(0, (_TAG + _name, _pattern))
_Dumper.add_representer(
    float, lambda dumper, value: dumper.represent_scalar(_TAG + "float", _float_text(value))
)
_Dumper.add_representer(
    # Line separators other than \n survive only between double quotes.
    str,
    lambda dumper, value: dumper.represent_scalar(
        _TAG + "str", value, style=None if value.replace("\n", "").isprintable() else '"'
    ),
)
for _class in (list, tuple):
    _Dumper.add_representer(
        # Short lists of plain values stand on one line, as people write them.
        _class,
        lambda dumper, value: dumper.represent_sequence(
            _TAG + "seq",
            list(value),
            flow_style=not any(isinstance(item, dict | list | tuple) for item in value),
        ),
    )


def parse(text: str) -> tuple[Any, dict[Path, Position]]:
    """Return the data of a text with one document, and the position of every key and list item.

    An empty text gives None. Raises YamlMistake with every duplicate key, or with the first other mistake.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except yaml.YAMLError as error:
        raise _translated(error, text) from None
    positions: dict[Path, Position] = {}
    mistakes: list[tuple[int, int, str]] = []
    data = None if node is None else _build(node, (), positions, mistakes)
    if mistakes:
        raise YamlMistake(*sorted(mistakes))
    return data, positions


def write(data: Any) -> str:
    """Return the text that :func:`parse` reads back as ``data`` (tuples as lists)."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def scalar(text: str) -> Any:
    """What a plain (unquoted) scalar means."""
    for name, pattern, _ in _RULES:
        if pattern.match(text):
            with suppress(OverflowError):
                return _value(name, text)
    return text


def _build(node: yaml.Node, path: Path, positions: dict[Path, Position], mistakes: list[Any]) -> Any:
    kind = node.tag.removeprefix(_TAG)
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    if isinstance(node, yaml.MappingNode) and kind == "map":
        mapping: dict[str, Any] = {}
        for key, key_mark, value in _entries(node, mistakes):
            here, position = (*path, key), (key_mark.line + 1, key_mark.column + 1)
            if key in mapping:
                first, _ = positions[here]
                mistakes.append((*position, f"duplicate key {key!r} (first at line {first})"))
                continue
            positions[here] = position
            mapping[key] = _build(value, here, positions, mistakes)
        return mapping
    if isinstance(node, yaml.SequenceNode) and kind == "seq":
        items = []
        for number, item in enumerate(node.value):
            here = (*path, number)
            positions[here] = item.start_mark.line + 1, item.start_mark.column + 1
            items.append(_build(item, here, positions, mistakes))
        return items
    if isinstance(node, yaml.ScalarNode) and kind in ("str", "null", "bool", "int", "float"):
        try:
            return node.value if kind == "str" else _value(kind, node.value)
        except OverflowError:
            mistakes.append((line, column, f"{node.value[:20]}... is too large a number"))
            return None
        except ValueError:
            mistakes.append((line, column, f"{node.value[:40]!r} is no {kind}"))
            return None
    shown = "!!" + kind if node.tag.startswith(_TAG) else node.tag
    mistakes.append((line, column, f"the tag {shown} is refused: a configuration holds plain values only"))
    return None


def _entries(node: yaml.MappingNode, mistakes: list[Any]) -> Iterator[tuple[str, yaml.Mark, yaml.Node]]:
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value and key.tag.startswith(_TAG):
            yield key.value, key.start_mark, value
        else:
            mark = key.start_mark
            what = (
                "an empty key" if isinstance(key, yaml.ScalarNode) and not key.value else "a key must be text"
            )
            mistakes.append((mark.line + 1, mark.column + 1, what))


def _value(kind: str, text: str) -> Any:
    if kind == "null":
        return None
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if kind == "int":
        if len(text) > MAX_DIGITS:  # beyond any use, and beyond what Python reads or writes
            raise OverflowError
        bases = {"0o": 8, "0x": 16}
        return int(text[2:], bases[text[:2]]) if text[:2] in bases else int(text)
    lowered = text.lower()
    if lowered.endswith((".inf", ".nan")):
        return float(lowered.replace(".", "", 1))
    return float(text)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    return repr(value)


def _fail(mark: yaml.Mark, what: str) -> None:
    raise YamlMistake((mark.line + 1, mark.column + 1, what))


def _translated(error: yaml.YAMLError, text: str) -> YamlMistake:
    """PyYAML's errors in a user's words."""
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position]
        column = error.position - (before.rfind("\n") + 1) + 1
        return YamlMistake(
            (
                before.count("\n") + 1,
                column,
                f"the character U+{ord(text[error.position]):04X} is not allowed",
            )
        )
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return YamlMistake((0, 0, " ".join(str(error).split())))
    mark, problem = error.problem_mark, error.problem or "not valid YAML"
    if problem == "found unexpected end of stream":
        problem = "a quote or bracket is never closed"
    elif "'\\t'" in problem:
        problem = "a tab: YAML is indented with spaces"
    elif "but found another document" in problem:
        problem = "a second document begins here; a configuration is one document"
    elif problem.startswith("expected the node content"):
        problem = "a key or a value is missing here"
    elif problem == "mapping values are not allowed here":
        problem = "a ':' where no key can be (check the indentation, or quote the text)"
    elif problem == "could not find expected ':'":
        problem = "a ':' is missing after a key"
    elif problem.startswith("expected <block end>"):
        problem = "does not fit the lines above (check the indentation)"
    elif problem.startswith("found character "):
        problem = f"{problem.split()[2]} cannot begin a value: quote it"
    return YamlMistake((mark.line + 1, mark.column + 1, problem))
