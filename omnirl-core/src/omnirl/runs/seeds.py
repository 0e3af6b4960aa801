"""Runs of one configuration and several seeds: which belong together, what they are called, mean and band.

Runs belong together when their configurations agree in everything but the seeds and the folder. Their curves are
compared where all of them have points: at every x of any of them within the range that they share, each run is
interpolated linearly. The line is the mean over the runs. The band is the range from the lowest to the highest run,
and from five runs on the 95 % percentile bootstrap interval of the mean (2,000 resamples of the runs, drawn with a
fixed seed, so that the same runs always give the same picture).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omnirl.runs.folder import Run
from omnirl.runs.statistics import RESAMPLES
from omnirl.runtime.run_dir import NOT_COMPARED, same_configuration

FEWEST_FOR_INTERVAL = 5
_MOST_POINTS = 500
_MOST_NAMED = 3
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seeds. label: what tells them from the other groups."""

    runs: tuple[Run, ...]
    label: str

    @property
    def label_with_count(self) -> str:
        """``ppo, lr 0.001 (3 seeds)``."""
        count = len(self.runs)
        if count == 1:
            return self.label
        seeds = {run.seed for run in self.runs}
        return f"{self.label} ({count} {'seeds' if len(seeds) == count else 'runs'})"


@dataclass(frozen=True)
class Curve:
    """The mean over runs at x [N], and its band; low and high are empty for one run."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats


def grouped(runs: Sequence[Run]) -> list[Group]:
    """The runs by configuration, in the order in which the configurations first come."""
    members: list[tuple[Mapping[str, Any], list[Run]]] = []
    for run in runs:
        config = {key: value for key, value in run.config.items() if key != "seed"}
        found = next((group for known, group in members if same_configuration(config, known)), None)
        if found is None:
            members.append((config, [run]))
        else:
            found.append(run)
    labels = _labels([(config, group[0]) for config, group in members])
    return [Group(tuple(group), label) for (_, group), label in zip(members, labels, strict=True)]


def curve(series: Sequence[Sequence[tuple[float, float]]]) -> Curve | None:
    """The curve of runs whose points are given, x rising; None where their ranges have nothing in common."""
    arrays = [np.array(points, np.float64).reshape(-1, 2) for points in series]
    if not arrays or any(len(array) == 0 for array in arrays):
        return None
    first, last = max(array[0, 0] for array in arrays), min(array[-1, 0] for array in arrays)
    everywhere = np.unique(np.concatenate([array[:, 0] for array in arrays]))
    x = everywhere[(everywhere >= first) & (everywhere <= last)]
    if len(x) == 0:
        return None
    if len(arrays) > 1 and len(x) > _MOST_POINTS:
        x = np.linspace(x[0], x[-1], _MOST_POINTS)
    values = np.stack([np.interp(x, array[:, 0], array[:, 1]) for array in arrays])
    low, high = band(values)
    return Curve(x, values.mean(axis=0), low, high)


def band(values: Floats) -> tuple[Floats, Floats]:
    """``(low, high)`` [N] of runs' values [R,N]: see this module; empty for one run."""
    runs = len(values)
    if runs == 1:
        return np.empty(0), np.empty(0)
    if runs < FEWEST_FOR_INTERVAL:
        return values.min(axis=0), values.max(axis=0)
    draws = np.random.default_rng(0).multinomial(runs, np.full(runs, 1.0 / runs), size=RESAMPLES)
    means = draws @ values / runs
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    return low, high


def band_note(groups: Sequence[Group]) -> str:
    """What lines and bands of a picture of these groups mean; empty where each is one run."""
    counts = [len(group.runs) for group in groups if len(group.runs) > 1]
    kinds = []
    if any(count < FEWEST_FOR_INTERVAL for count in counts):
        kinds.append("lowest to highest run")
    if any(count >= FEWEST_FOR_INTERVAL for count in counts):
        kinds.append("95 % bootstrap interval of the mean")
    if len(kinds) == 2:
        kinds = [f"{kinds[0]} (fewer than {FEWEST_FOR_INTERVAL} runs)", kinds[1]]
    return f"line: mean over runs; band: {' or '.join(kinds)}" if kinds else ""


def _labels(groups: Sequence[tuple[Mapping[str, Any], Run]]) -> list[str]:
    """A name for each configuration: algorithm and environment where those differ, and the keys that do."""
    several_envs = len({run.env_id for _, run in groups}) > 1
    labels = []
    for config, run in groups:
        name = run.algorithm.upper() + (f" {run.env_id}" if several_envs else "")
        alike = [
            other for other, their in groups if (their.algorithm, their.env_id) == (run.algorithm, run.env_id)
        ]
        differing = [
            (path, value)
            for path, value in _leaves(config, ())
            if any(_at(other, path) != value for other in alike)
        ]
        if len(differing) > _MOST_NAMED or (len(alike) > 1 and not differing):
            name += f" {run.path.name}"
        elif differing:
            name += ", " + ", ".join(f"{path[-1]} {_text(value)}" for path, value in differing)
        labels.append(name)
    return labels


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if path in NOT_COMPARED:
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    else:
        yield path, value


def _at(config: Any, path: Sequence[str]) -> Any:
    for key in path:
        config = config.get(key) if isinstance(config, Mapping) else None
    return config


def _text(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value).lower() if isinstance(value, bool) else str(value)
