"""Fails where a built page has a dead link or markup that nobody translated: ``python docs/check_site.py site``.

A link is dead when the page, the file or the anchor that it leads to is not there. Links to other servers are not
followed: building the documentation needs no network.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

INCLUDES = ("--8<", "8 < --")
DOCSTRING_MARKUP = (":class:`", ":func:`", ":mod:`", "=====")  # which may well stand in code that is shown


class Page(HTMLParser):
    """The links, the anchors and the text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.prose = self.code = ""
        self.in_code = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser for every element."""
        self.in_code |= tag == "pre"
        values = {name: value for name, value in attrs if value is not None}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        self.links.extend(values[name] for name in ("href", "src") if name in values and tag != "base")

    def handle_data(self, data: str) -> None:
        """Called by the parser for all text."""
        if self.in_code:
            self.code += data
        else:
            self.prose += data

    def handle_endtag(self, tag: str) -> None:
        """Called by the parser where an element ends."""
        self.in_code &= tag != "pre"

    def left_over(self) -> list[str]:
        """Markup that is shown as it is."""
        includes = [markup for markup in INCLUDES if markup in self.code or markup in self.prose]
        return includes + [markup for markup in DOCSTRING_MARKUP if markup in self.prose]


def problems(site: Path) -> list[str]:
    """``page: link`` for each that leads nowhere, ``page: markup`` for each that is shown as it is."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    found: list[str] = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        found.extend(f"{name}: {markup} on the page" for markup in page.left_over())
        if path.name == "404.html":  # its links are meant from the server's root
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target = target / "index.html"
            anchor = unquote(parts.fragment)
            missing = anchor and target in pages and anchor not in pages[target].anchors
            if not target.is_file() or missing:
                found.append(f"{name}: dead link {link}")
    return found


if __name__ == "__main__":
    told = problems(Path(sys.argv[1]))
    print("\n".join(told) if told else "no dead link, no markup left over")
    sys.exit(bool(told))
