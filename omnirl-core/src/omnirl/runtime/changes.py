"""What a run that goes on is told otherwise than when its checkpoint was written, in ``modules``, ``env``
and ``seed``.

It is named in a line at the start, and again where the checkpoint does not fit, or where an environment does not come
to the state that was saved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from omnirl.api.errors import CheckpointError

MISFIT = "the checkpoint does not fit this configuration"
_LONGEST = 60


@dataclass(frozen=True)
class Changes:
    """Keys of each section with their values then and now, one each: ``env.frame_stack was 1, is 4``."""

    modules: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    seed: tuple[str, ...] = ()

    @classmethod
    def between(cls, earlier: Mapping[str, Any], now: Mapping[str, Any]) -> Changes:
        """Of two contents of run_config.yaml. A key of ``modules`` that the earlier one lacks is of a newer version."""
        modules = _differences(earlier.get("modules"), now.get("modules"), "modules", added=False)
        env, seed = (
            _differences(earlier.get(name), now.get(name), name, added=True) for name in ("env", "seed")
        )
        return cls(tuple(modules), tuple(env), tuple(seed))


@contextmanager
def explained(changes: Changes) -> Iterator[None]:
    """A MISFIT of the block is told with what was changed since the checkpoint was written."""
    try:
        yield
    except CheckpointError as error:
        if not changes.modules or not all(line.startswith(MISFIT) for line in error.lines):
            raise
        reason = error.lines[0].removeprefix(f"{MISFIT}: ")
        raise CheckpointError(
            f"{MISFIT}, which was changed since it was written: {'; '.join(changes.modules)}: resume with the values "
            f"that it was written with, or train anew in another --run-dir ({reason})"
        ) from error


def _differences(before: Any, now: Any, path: str, *, added: bool) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys([*before, *now]):
            if key in before or added:
                yield from _differences(before.get(key), now.get(key), f"{path}.{key}", added=added)
    elif _shown(before) != _shown(now):
        yield f"{path} was {_cut(_shown(before))}, is {_cut(_shown(now))}"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
