"""The form of what plugins hand over: shapes and dtypes as their spec promises, told in words where they are not.

Numpy fits many a wrong shape to the right one in silence, and where it cannot, its words name neither the plugin nor
the array. Letters: B sub-environments; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from omnirl.api.data import Obs, Step
from omnirl.api.specs import (
    ArraySpec,
    ContinuousAction,
    DictSpec,
    DiscreteAction,
    EnvSpec,
    MultiDiscreteAction,
    ObservationSpec,
)

_LAYOUTS = ("vector", "image")
Entry = tuple[str, Any, tuple[int, ...], str]
"""What it is called, the value, and the shape and dtype that it should have."""


def array_misfit(entry: Entry, *, exact: bool = False) -> str:
    """What is wrong with an array, empty where nothing is. Unless ``exact`` a list will do, and every dtype that
    becomes the right one without losing more than precision: float64 for float32, but neither float for int64 nor
    int8 for bool."""
    what, value, shape, dtype = entry
    if exact and not isinstance(value, np.ndarray):
        return f"{what} is {type(value).__name__}, not an array"
    if value is None:
        return f"{what} is None, not an array of shape {shape}"
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError):  # rows of different lengths; a tensor that has a gradient
        return f"{what} is a {type(value).__name__}, not an array of shape {shape}"
    if array.shape != shape:
        return f"{what} has shape {array.shape}, not {shape}"
    fits = array.dtype == dtype if exact else np.can_cast(array.dtype, dtype, "same_kind")
    return "" if fits else f"{what} is {array.dtype}, not {dtype}"


def spec_misfits(spec: Any) -> Iterator[str]:
    """What is wrong with what ``get_env_spec`` returned, as "... is not ..."."""
    if not isinstance(spec, EnvSpec):
        yield f"{type(spec).__name__}, not an EnvSpec"
        return
    entries = (
        spec.observation.entries if isinstance(spec.observation, DictSpec) else (("", spec.observation),)
    )
    shapes = [getattr(entry, "shape", None) for _, entry in entries]
    if all(isinstance(shape, tuple) and 0 in shape for shape in shapes):
        yield "an observation of no numbers at all"
    for name, entry in entries:
        yield from _entry_misfits(f"the observation {name!r}" if name else "the observation", entry)
    yield from _action_spec_misfits(spec.action)
    if not isinstance(spec.eval_metrics, tuple) or not all(
        isinstance(name, str) for name in spec.eval_metrics
    ):
        yield f"the eval_metrics {spec.eval_metrics!r}, which are not a tuple of names"


def _entry_misfits(what: str, entry: Any) -> Iterator[str]:
    if not isinstance(entry, ArraySpec):
        yield f"{what} as {type(entry).__name__}, not an ArraySpec or a DictSpec of them"
        return
    if not isinstance(entry.shape, tuple) or not all(_is_size(size, 0) for size in entry.shape):
        yield f"{what} with the shape {entry.shape!r}, which is not a tuple of whole numbers"
    if not isinstance(entry.dtype, str) or not _is_dtype(entry.dtype):
        yield f"{what} with the dtype {entry.dtype!r}, which is not the name of one, such as 'float32'"
    if entry.layout not in _LAYOUTS:
        yield f"{what} with the layout {entry.layout!r}, which is none of {', '.join(_LAYOUTS)}"


def _action_spec_misfits(action: Any) -> Iterator[str]:
    if isinstance(action, DiscreteAction):
        if not _is_size(action.n, 1):
            yield f"an action of n = {action.n!r} choices, which is not a whole number from 1"
    elif isinstance(action, MultiDiscreteAction):
        if not isinstance(action.nvec, tuple) or not all(_is_size(n, 1) for n in action.nvec):
            yield f"an action of nvec = {action.nvec!r}, which is not a tuple of whole numbers from 1"
    elif isinstance(action, ContinuousAction):
        low, high = np.asarray(action.low), np.asarray(action.high)
        if low.ndim != 1 or low.size == 0 or low.shape != high.shape or not (low <= high).all():
            yield f"an action from low = {action.low} to high = {action.high}, which are not bounds of one size"
    else:
        yield f"{action!r} as action, not a DiscreteAction, MultiDiscreteAction or ContinuousAction"


def _is_size(value: Any, least: int) -> bool:
    return isinstance(value, int | np.integer) and bool(value >= least)


def _is_dtype(name: str) -> bool:
    try:
        return np.dtype(name).kind in "biuf"
    except TypeError:
        return False


def observation_misfits(
    what: str, obs: Obs, spec: ObservationSpec, leading: tuple[int, ...], *, exact: bool = False
) -> Iterator[str]:
    """What is wrong with observations that should be ``[*leading, *obs]``, a mapping exactly where the spec is."""
    if not isinstance(spec, DictSpec):
        if isinstance(obs, Mapping):
            yield f"one array of observations was expected, not a mapping of {', '.join(map(str, obs))}"
            return
        entries = [(what, obs, (*leading, *spec.shape), spec.dtype)]
    elif not isinstance(obs, Mapping):
        names = ", ".join(name for name, _ in spec.entries)
        yield f"a mapping of observations was expected ({names}), not {type(obs).__name__}"
        return
    elif set(obs) != {name for name, _ in spec.entries}:
        yield f"{what} has entries named {sorted(obs)}, not {sorted(name for name, _ in spec.entries)}"
        return
    else:
        entries = [
            (f"{what} {name!r}", obs[name], (*leading, *entry.shape), entry.dtype)
            for name, entry in spec.entries
        ]
    yield from filter(None, (array_misfit(entry, exact=exact) for entry in entries))


def action_misfits(action: Any, spec: EnvSpec, num_envs: int) -> Iterator[str]:
    """What is wrong with actions that should be [B, *act]."""
    wanted = (num_envs, *spec.action.shape)
    yield from filter(None, [array_misfit(("the action", action, wanted, spec.action.dtype))])


def step_misfits(step: Any, spec: EnvSpec, num_envs: int) -> Iterator[str]:
    """What is wrong with what an environment's ``step`` returned: rewards and ends may be of any kind of number."""
    if not isinstance(step, Step):
        yield f"step returned {type(step).__name__}, not a Step(obs, reward, terminated, truncated, final_obs)"
        return
    yield from observation_misfits("the observation", step.obs, spec.observation, (num_envs,))
    for name in ("reward", "terminated", "truncated"):
        yield from filter(None, [array_misfit((name, getattr(step, name), (num_envs,), "float32"))])
    if np.any(step.terminated) or np.any(step.truncated):
        yield from observation_misfits("final_obs", step.final_obs, spec.observation, (num_envs,))
