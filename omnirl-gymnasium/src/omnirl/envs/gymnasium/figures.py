"""Figures of an episode that an environment tells in ``info``, gathered step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from omnirl.api.errors import ConfigError
from omnirl.envs.gymnasium.metric_config import Metric, parse

_ABSENT = object()


class EpisodeFigures(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The outermost wrapper of an evaluator's environment, where ``env.metrics`` asks for something.

    name: of the environment, for messages. Raises ConfigError where ``info`` holds no number.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], metrics: tuple[str, ...], name: str) -> None:
        super().__init__(env)
        self._ends: tuple[Any, Any] = (False, False)
        self._metrics = [parse(text) for text in metrics]
        self._name = name
        self._begin()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._begin()
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step; what it tells is noted."""
        step = self.env.step(action)
        self._ends = step[2], step[3]
        info = step[4]
        self._seen.update(dict.fromkeys(info))
        for metric in self._metrics:
            value = _value(info, metric)
            if value is not _ABSENT:
                self._last[metric.text] = number = self._number(metric, value)
                self._sum[metric.text] = self._sum.get(metric.text, 0.0) + number
                self._count[metric.text] = self._count.get(metric.text, 0) + 1
        return step

    @property
    def ended(self) -> bool:
        """Whether the last step ended an episode."""
        return any(map(bool, self._ends))

    def figures(self) -> dict[str, float]:
        """By their columns. Raises ConfigError, with a line for each that no step of the episode told."""
        missing = [metric for metric in self._metrics if metric.text not in self._last]
        if missing:
            told = ", ".join(map(str, self._seen)) or "nothing"
            raise ConfigError(
                [
                    f"env.metrics: {metric.text!r}: info of {self._name!r} has no {' or '.join(metric.keys)} in a "
                    f"whole episode (it has: {told})"
                    for metric in missing
                ]
            )
        return {metric.column: self._figure(metric) for metric in self._metrics}

    def _begin(self) -> None:
        self._last: dict[str, float] = {}
        self._sum: dict[str, float] = {}
        self._count: dict[str, int] = {}
        self._seen: dict[Any, None] = {}

    def _figure(self, metric: Metric) -> float:
        if metric.way == "last":
            return self._last[metric.text]
        total = self._sum[metric.text]
        return total if metric.way == "sum" else total / self._count[metric.text]

    def _number(self, metric: Metric, value: Any) -> float:
        try:
            array = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            array = np.zeros(0)
        if array.size != 1:
            text = " ".join(repr(value).split())
            shown = text if len(text) <= 40 else f"{text[:37]}..."
            raise ConfigError(
                f"env.metrics: {metric.text!r}: info of {self._name!r} says {shown}, not one number"
            )
        return float(array.reshape(-1)[0])


class FirstEpisode(EpisodeFigures):
    """Around a sampler's environment until its first episode has ended: what ``info`` lacks is told then, long before
    the first evaluation comes to it. What one life tells counts for the game."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, or go on."""
        return self.env.reset(seed=seed, options=options)


def _value(info: Mapping[str, Any], metric: Metric) -> Any:
    """What ``info`` says, by the whole key or by its parts between the dots."""
    for key in metric.keys:
        if key in info:
            return info[key]
        found: Any = info
        for part in key.split("."):
            found = found.get(part, _ABSENT) if isinstance(found, Mapping) else _ABSENT
        if found is not _ABSENT:
            return found
    return _ABSENT
