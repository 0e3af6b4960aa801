"""The commands in README.md and docs/ are run: each block of commands says whether, in a comment that no reader sees.

The convention is described in docs/development.md. The blocks of a page run one after the other in one folder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LANGUAGES = ("bash", "console", "python")
INCLUDED = "--8<--"  # the code of a file, which has tests of its own
FENCE = re.compile(
    r"(?:<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<language>\w+)[^\n`]*\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
TRANSLATION = ROOT / "docs" / "README.zh-CN.md"  # has the same commands as README.md, which a test below says
TIMEOUT = 240


@dataclass(frozen=True)
class Block:
    """A block of commands. mark: what the comment before it says, None without one."""

    language: str
    code: str
    mark: str | None
    line: int

    @property
    def runs(self) -> bool:
        return self.mark is not None and self.mark.partition(":")[0] == "run"

    @property
    def replacements(self) -> list[tuple[str, str]]:
        """``TEXT => TEXT; TEXT => TEXT`` behind ``run:``."""
        _, _, text = (self.mark or "").partition(": ")
        pairs = [part.split(" => ") for part in text.split("; ") if part]
        return [(old, new) for old, new in pairs]

    def script(self) -> str:
        """The commands as they are run: without prompts and output, and replaced as the mark says."""
        lines = self.code.splitlines()
        if self.language == "console":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        code = "\n".join(lines)
        for old, new in self.replacements:
            assert old in code, f"line {self.line}: {old!r} is not in the block"
            code = code.replace(old, new)
        return code + "\n"


def blocks(text: str) -> list[Block]:
    """The blocks of commands of a page."""
    return [
        Block(found["language"], found["code"], found["mark"], text.count("\n", 0, found.start()) + 1)
        for found in FENCE.finditer(text)
        if found["language"] in LANGUAGES and not found["code"].startswith(INCLUDED)
    ]


def page_blocks(path: Path) -> list[Block]:
    return blocks(path.read_text(encoding="utf-8"))


def test_a_mark_says_what_is_run_in_the_place_of_what() -> None:
    text = "<!-- run: 500 => 5; b => c -->\n```console\n$ a 500\nout\n$ b\n```\n\n```bash\nd\n```\n```yaml\ne: 1\n```\n"
    first, second = blocks(text)
    assert (first.runs, first.script()) == (True, "a 5\nc\n")
    assert (second.mark, second.runs, second.line) == (None, False, 8)
    with pytest.raises(AssertionError, match="line 1: 'z' is not in the block"):
        blocks("<!-- run: z => y -->\n```bash\na\n```\n")[0].script()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_block_is_marked(page: Path) -> None:
    for block in page_blocks(page):
        known = block.mark is not None and re.fullmatch(r"run(: .+ => .*)?|not run: .{10,}", block.mark)
        assert known, f"{page.name}:{block.line}: neither <!-- run --> nor <!-- not run: reason --> before it"


def test_something_is_run() -> None:
    assert sum(block.runs for page in PAGES for block in page_blocks(page)) >= 10


def test_the_translation_has_the_same_commands() -> None:
    original, translated = (page_blocks(page) for page in (ROOT / "README.md", TRANSLATION))

    def commands(of: list[Block]) -> list[str]:
        return [re.sub(r" +#.*", "", block.code) for block in of]

    assert commands(original) == commands(translated)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page != TRANSLATION and any(block.runs for block in page_blocks(page))],
    ids=lambda path: path.name,
)
def test_the_commands_of_a_page_work(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
    for block in page_blocks(page):
        if not block.runs:
            continue
        shell = [sys.executable, "-c"] if block.language == "python" else ["bash", "-euo", "pipefail", "-c"]
        done = subprocess.run(
            [*shell, block.script()],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, f"{page.name}:{block.line}\n{block.script()}\n{done.stdout}"
