"""The log's rows: counters, rates and figures of one version each, in rising order, complete before they are sent.

An evaluation's figures stand in the row of the version that was evaluated; that row, and those behind it, wait for
them. What has been seen since the last row is part of a checkpoint, so a resumed run writes the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from omnirl.api.errors import PluginError
from omnirl.api.observer import Value
from omnirl.runtime.pacing import Pacing

COUNTER_COLUMNS = (
    "wall_time",
    "updates",
    "env_steps",
    "stored_steps",
    "trained_steps",
    "steps_per_s",
    "updates_per_s",
    "weight_version",
    "lag_p50",
    "lag_max",
    "update_ratio",
    "dropped",
    "episodes",
    "train_return",
    "train_length",
)


def columns(eval_metrics: Sequence[str], metric_names: Sequence[str]) -> tuple[str, ...]:
    """The columns of log.csv, in order."""
    return (*COUNTER_COLUMNS, *(f"eval_{name}" for name in eval_metrics), *metric_names)


def _number(name: str, value: object) -> float:
    """A plugin's figure. Raises PluginError where it is none."""
    try:
        return float(value)  # type: ignore[arg-type]  # whatever can be one, such as a numpy scalar
    except (TypeError, ValueError) as error:
        raise PluginError(f"the figure {name!r} for log.csv is {value!r}, not a number") from error


class LogBook:
    """Gathers what happens between rows and sends each row when it is complete."""

    def __init__(self, names: Sequence[str], send: Callable[[Mapping[str, Value]], None]) -> None:
        self._names = tuple(names)
        self._send = send
        self._waiting: list[dict[str, Value]] = []
        self._pending: set[int] = set()
        self._lags: list[int] = []
        self._returns: list[float] = []
        self._lengths: list[int] = []
        self.episodes = 0
        self.last_row = -1
        self._sent = -1
        self._last_steps = 0
        self._last_updates = 0
        self._last_wall = 0.0

    def rollout(self, lag: int | None, episodes: Sequence[tuple[float, int]]) -> None:
        """A rollout arrived, in which ``episodes`` (return, length) ended; ``lag`` is None where it was dropped."""
        if lag is not None:
            self._lags.append(lag)
        self._returns.extend(total for total, _ in episodes)
        self._lengths.extend(length for _, length in episodes)
        self.episodes += len(episodes)

    def begin(self, pacing: Pacing, wall: float) -> None:
        """Rates are counted from here."""
        self._last_steps, self._last_updates, self._last_wall = pacing.collected, pacing.updates, wall

    def row(self, pacing: Pacing, wall: float, metrics: Mapping[str, float], *, evaluated: bool) -> None:
        """Write the row of the newest version; with ``evaluated`` it waits for that evaluation's figures."""
        seconds = max(wall - self._last_wall, 1e-9)
        row: dict[str, Value] = dict.fromkeys(self._names)
        row.update(
            wall_time=round(wall, 3),
            updates=pacing.updates,
            env_steps=pacing.collected,
            stored_steps=pacing.stored,
            trained_steps=pacing.updates * pacing.flow.steps_per_update,
            steps_per_s=round((pacing.collected - self._last_steps) / seconds, 1),
            updates_per_s=round((pacing.updates - self._last_updates) / seconds, 2),
            weight_version=pacing.updates,
            lag_p50=float(np.median(self._lags)) if self._lags else None,
            lag_max=max(self._lags) if self._lags else None,
            update_ratio=round(pacing.ratio(), 6),
            dropped=pacing.dropped,
            episodes=self.episodes,
            train_return=float(np.mean(self._returns)) if self._returns else None,
            train_length=float(np.mean(self._lengths)) if self._lengths else None,
        )
        row.update({name: _number(name, value) for name, value in metrics.items() if name in row})
        self._lags, self._returns, self._lengths = [], [], []
        self.begin(pacing, wall)
        self.last_row = pacing.updates
        if evaluated:
            self._pending.add(pacing.updates)
        self._waiting.append(row)
        self._release()

    def evaluation(self, version: int, figures: Mapping[str, float]) -> None:
        """The figures of the evaluation of ``version``. Raises PluginError where one has no column."""
        unknown = [name for name in figures if f"eval_{name}" not in self._names]
        if unknown:
            text = (
                f"evaluations give the figures {', '.join(unknown)}, which EnvSpec.eval_metrics does not name"
            )
            raise PluginError(f"{text}: log.csv has no column for them")
        for row in self._waiting:
            if row["updates"] == version:
                row.update({f"eval_{name}": _number(name, value) for name, value in figures.items()})
        self._pending.discard(version)
        self._release()

    def _release(self) -> None:
        while self._waiting and self._waiting[0]["updates"] not in self._pending:
            row = self._waiting.pop(0)
            self._sent = cast(int, row["updates"])
            self._send(row)

    def go_on(self, version: int) -> bool:
        """Send what waits for evaluations that nobody plays any more; returns whether one of ``version``, whose weights
        are there, is to be played again."""
        self._pending &= {version}
        self._release()
        return bool(self._pending)

    def state_dict(self) -> dict[str, Any]:
        """What has been seen since the last row, and the rows that wait for an evaluation."""
        return {
            "waiting": [dict(row) for row in self._waiting],
            "pending": sorted(self._pending),
            "lags": list(self._lags),
            "returns": list(self._returns),
            "lengths": list(self._lengths),
            "episodes": self.episodes,
            "last_row": self.last_row,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore. Rows that were waiting then and have been sent since are not sent again."""
        self._waiting = [
            {name: row.get(name) for name in self._names}
            for row in state.get("waiting", ())
            if row["updates"] > self._sent
        ]
        self._pending = {int(version) for version in state.get("pending", ())}
        self._lags, self._returns = [int(x) for x in state["lags"]], [float(x) for x in state["returns"]]
        self._lengths = [int(x) for x in state.get("lengths", ())]
        self.episodes, self.last_row = int(state["episodes"]), int(state["last_row"])
        self._sent = min(self._sent, self.last_row)
