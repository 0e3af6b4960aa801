"""Lets mkdocstrings show the source's docstrings, which are plain text, as Markdown (an extension of griffe).

======================================  ========================================
in a docstring                          on the page
======================================  ========================================
``::`` before an indented block         a block of code
a table between ``====`` lines          a table
two or more lines of ``name    text``   a table
:class:`Policy`, :mod:`omnirl.api`      a link where the API pages show it
======================================  ========================================
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|mod|meth|data|exc):`~?([\w.]+)`")
_RULE = re.compile(r"=+(?:  +=+)+")
_ROW = re.compile(r"(\S+(?: ?[,/|] ?\S+)*) {2,}(\S.*)")
_PAGES = sorted((Path(__file__).parent / "api").glob("*.md"))
_SHOWN = [
    name for page in _PAGES for name in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.MULTILINE)
]
_SOURCES = sorted(Path(__file__).parents[1].glob("omnirl-*/src"))
Inline = Callable[[str], str]


class PlainText(griffe.Extension):
    """Rewrites every docstring once its object is known."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called by griffe for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value, lambda line: _linked(line, obj))


def _linked(line: str, scope: griffe.Object) -> str:
    """Roles become links or, where nothing is shown that they could lead to, code; the rest is Markdown already."""

    def link(role: re.Match[str]) -> str:
        name = role[1]
        path = name if "." in name else _path_of(name, scope)
        shown = path in _SHOWN or (
            not _is_module(path) and path.startswith(tuple(f"{name}." for name in _SHOWN))
        )
        short = name if path.islower() else name.rpartition(".")[2]
        return f"[`{short}`][{path}]" if shown else f"`{name}`"

    return _ROLE.sub(link, line)


def _is_module(path: str) -> bool:
    places = [source / path.replace(".", "/") for source in _SOURCES]
    return any(place.is_dir() or place.with_suffix(".py").is_file() for place in places)


def _path_of(name: str, scope: griffe.Object) -> str:
    try:
        path: str = scope.resolve(name)
    except griffe.NameResolutionError:
        return f"{scope.path}.{name}"
    return path


def to_markdown(text: str, inline: Inline) -> str:
    """The docstring as Markdown; ``inline`` translates what stands within a line."""
    lines = text.splitlines()
    result: list[str] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        if _RULE.fullmatch(line):
            position = _ruled_table(lines, position, result, inline)
        elif _ROW.fullmatch(line) and position + 1 < len(lines) and lines[position + 1].strip():
            position = _plain_table(lines, position, result, inline)
        elif line.rstrip().endswith("::"):
            position = _code(lines, position, result, inline)
        else:
            result.append(inline(line))
            position += 1
    return "\n".join(result)


def _ruled_table(lines: list[str], start: int, result: list[str], inline: Inline) -> int:
    """A table whose columns begin where the ``=`` of its rules do; a second rule closes its head."""
    columns = [match.start() for match in re.finditer(r"=+", lines[start])]
    rules = [start]
    position = start + 1
    while position < len(lines) and lines[position].strip():
        if _RULE.fullmatch(lines[position]):
            rules.append(position)
        position += 1
    rows: list[list[str]] = []
    for number in range(start + 1, position):
        if number in rules:
            continue
        cells = [lines[number][a:b].strip() for a, b in zip(columns, [*columns[1:], None])]
        if cells[0] or not rows:
            rows.append(cells)
        else:  # a cell that goes on in the next line
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells)]
    head = rows.pop(0) if len(rules) > 2 else [""] * len(columns)
    result.extend(["", *_table(head, rows, inline), ""])
    return position


def _plain_table(lines: list[str], start: int, result: list[str], inline: Inline) -> int:
    """Lines of a name, at least two spaces and a text, which an indented line continues."""
    rows: list[list[str]] = []
    position = start
    while position < len(lines) and lines[position].strip():
        row = _ROW.fullmatch(lines[position])
        if row:
            rows.append([f"`{row[1]}`", row[2]])
        elif lines[position].startswith(" "):
            rows[-1][1] += " " + lines[position].strip()
        else:
            break
        position += 1
    result.extend(["", *_table(["", ""], rows, inline), ""])
    return position


def _table(head: list[str], rows: list[list[str]], inline: Inline) -> list[str]:
    texts = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(inline(cell.replace("|", "\\|")) for cell in row) + " |" for row in texts]


def _code(lines: list[str], start: int, result: list[str], inline: Inline) -> int:
    """``text::`` and the indented lines below it."""
    lead = lines[start].rstrip()
    result.append("" if lead == "::" else inline(lead[:-1]))
    position = start + 1
    while position < len(lines) and (not lines[position].strip() or lines[position].startswith(" ")):
        position += 1
    code = textwrap.dedent("\n".join(lines[start + 1 : position])).strip("\n")
    language = "toml" if code.startswith("[") else "yaml" if re.match(r"\w+: ", code) else "python"
    result.extend(["", f"```{language}", code, "```", ""])
    return position
