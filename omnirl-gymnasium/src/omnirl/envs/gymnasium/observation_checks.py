"""Whether observations are what their space says, and arrays of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from omnirl.api.environment import EnvFinding


def error(name: str, text: str, remedy: str) -> EnvFinding:
    """Something that training would fail on, or learn wrongly from."""
    return EnvFinding(name, "error", text, remedy)


def warning(name: str, text: str, remedy: str) -> EnvFinding:
    """Something that works less well, or not with everybody."""
    return EnvFinding(name, "warning", text, remedy)


class ObservationChecks:
    """Looks at one observation after the other. Each array is kept, to see whether the next step changes it."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        self._space = space
        self._kept: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []

    def look(self, observation: Any, where: str) -> Iterator[EnvFinding]:
        """What is wrong with the observation of ``where``, such as ``step 7``."""
        if any(array.tobytes() != copy.tobytes() for array, copy in self._kept):
            text = f"{where} changed the observation that was returned before: it is one array, used again and again"
            remedy = "return a copy; OmniRL makes one itself, replay buffers and wrappers of others do not"
            yield warning("reused", text, remedy)
        arrays = [array for array in _leaves(observation) if isinstance(array, np.ndarray)]
        self._kept = [(array, array.copy()) for array in arrays]
        yield from _differences(observation, self._space, "the observation", where)


def _differences(value: Any, space: spaces.Space[Any], what: str, where: str) -> Iterator[EnvFinding]:
    if isinstance(space, spaces.Dict):
        if not isinstance(value, Mapping) or set(value) != set(space.spaces):
            has = f"the entries {', '.join(map(str, value))}" if isinstance(value, Mapping) else _kind(value)
            text = f"{where}: {what} has {has}, its space {', '.join(map(str, space.spaces))}"
            yield error("entries", text, "return a dict with exactly the entries of the space")
            return
        for name, inner in space.spaces.items():
            yield from _differences(value[name], inner, f"{what}[{name!r}]", where)
    elif isinstance(space, spaces.Tuple):
        if not isinstance(value, tuple | list) or len(value) != len(space.spaces):
            text = f"{where}: {what} is {_kind(value)}, its space has {len(space.spaces)} entries"
            yield error("entries", text, "return a tuple with an entry for each of the space")
            return
        for index, inner in enumerate(space.spaces):
            yield from _differences(value[index], inner, f"{what}[{index}]", where)
    elif isinstance(space, spaces.Box):
        yield from _box_differences(value, space, f"{where}: {what}")
    elif not space.contains(value):
        text = f"{where}: {what} is {_short(value)}, outside its space {_short(space)}"
        yield error("outside", text, "widen the space, or mend what is returned")


def _box_differences(value: Any, space: spaces.Box, what: str) -> Iterator[EnvFinding]:
    array = np.asarray(value)
    if not isinstance(value, np.ndarray | np.generic):
        yield warning(
            "dtype", f"{what} is {_kind(value)}, not an array", f"return np.asarray(..., {_np(space)})"
        )
    elif array.dtype != space.dtype:
        text = f"{what} is {array.dtype}, its space says {space.dtype}"
        remedy = f"return observation.astype({_np(space)}), or declare the space with dtype={_np(array)}"
        harmless = np.can_cast(array.dtype, space.dtype, "same_kind")
        yield warning("dtype", text, remedy) if harmless else error("dtype", text, remedy)
    if array.shape != space.shape:
        text = f"{what} has the shape {list(array.shape)}, its space says {list(space.shape)}"
        yield error("shape", text, "return that shape, or declare the space with the other one")
        return
    if array.dtype.kind not in "fiub":
        yield error("dtype", f"{what} holds {array.dtype}, not numbers", f"return an array of {space.dtype}")
        return
    if not np.isfinite(array).all():
        bad = float(array[~np.isfinite(array)].flat[0])
        remedy = "find the division or the logarithm that gives it; a rollout that holds one is refused"
        yield error("finite", f"{what} holds {bad}", remedy)
        return
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    # A float32 bound may lie a little inside the same bound in float64.
    slack = np.where(np.isfinite(low) & np.isfinite(high), 1e-6 * np.maximum(np.abs(low), np.abs(high)), 0.0)
    outside = (array < low - slack) | (array > high + slack)
    if outside.any():
        at = tuple(int(index) for index in np.argwhere(outside)[0])
        index = f"[{', '.join(map(str, at))}]" if at else ""
        text = f"{what}{index} is {array[at]:g}, outside [{space.low[at]:g}, {space.high[at]:g}]"
        yield error(
            "outside", text, "widen the space's bounds, or clip: what scales by the bounds is wrong so"
        )


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _np(thing: Any) -> str:
    return f"np.{np.dtype(thing.dtype).name}"


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
