"""Where in its file a setting stands, for the lines of errors."""

from __future__ import annotations

from omnirl.config.files import Origin, Tree
from omnirl.config.yaml_text import Path


class Positions:
    """The origins of a tree, asked by path; a path is a tuple or dotted text."""

    def __init__(self, tree: Tree) -> None:
        self._origins = tree.origins
        sources = dict.fromkeys(origin.source for path, origin in tree.origins.items() if path)
        self._sources = {source: number for number, source in enumerate(sources)}
        self._newest: dict[Path, Origin] = {}
        for path, origin in tree.origins.items():
            for length in range(1, len(path) + 1):
                known = self._newest.setdefault(path[:length], origin)
                if self._is_later(origin, known):
                    self._newest[path[:length]] = origin

    def exact(self, path: str | Path) -> Origin | None:
        """The origin of the value at ``path`` itself, or None for a default."""
        return self._origins.get(_parts(path))

    def shown(self, path: str | Path) -> Origin | None:
        """The origin to show for ``path``: its own, or for what is missing that of its section.

        Of a mapping that a later source changed in part (a schedule's end), it is the place of the change.
        """
        parts = _parts(path)
        if parts in self._origins:
            own, newest = self._origins[parts], self._newest.get(parts)
            return newest if newest is not None and self._is_later(newest, own) else own
        for length in range(len(parts) - 1, -1, -1):
            origin = self._origins.get(parts[:length])
            # An override that set a section's one key does not owe the others; one that set a schedule does.
            if origin is not None and (origin.line or length > 2 or not length):
                return origin if origin.line or length or origin.source != "override" else None
        return None

    def _is_later(self, origin: Origin, than: Origin) -> bool:
        return self._sources.get(origin.source, -1) > self._sources.get(than.source, -1)

    def order(self, path: str | Path) -> tuple[int, int, int]:
        """Sorts mistakes in file order: by source, line and column; what has no place comes last."""
        origin = self.shown(path)
        if origin is None:
            return (len(self._sources) + 1, 0, 0)
        return self._sources.get(origin.source, len(self._sources)), origin.line, origin.column

    def line(self, path: str | Path, text: str, at: Path | None = None) -> str:
        """``file:line:col path: text``, with the position of ``at`` where it differs from the path's."""
        origin = self.shown(at if at is not None else path)
        place = f"{origin} " if origin is not None and origin.source else ""
        return f"{place}{'.'.join(map(str, _parts(path)))}: {text}"


def _parts(path: str | Path) -> Path:
    return tuple(path.split(".")) if isinstance(path, str) else path
