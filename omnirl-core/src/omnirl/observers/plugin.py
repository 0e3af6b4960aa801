"""OmniRL's own plugin: the observers that watch every run. Imports nothing but descriptors."""

from __future__ import annotations

from collections.abc import Iterable

from omnirl.api import ObserverSpec, hookimpl

OMNIRL_API = 1


@hookimpl
def omnirl_observers() -> Iterable[ObserverSpec]:
    """The log first: the curve is drawn from it, and the console shows where the curve is."""
    return [
        ObserverSpec(
            "csv", "omnirl.observers.csv_log:CsvLog", "log.csv, a row per log interval", default=True
        ),
        ObserverSpec("curve", "omnirl.observers.curve:Curve", "curve.png, the learning curve", default=True),
        ObserverSpec(
            "console", "omnirl.observers.console:ConsoleObserver", "progress and result", default=True
        ),
    ]
