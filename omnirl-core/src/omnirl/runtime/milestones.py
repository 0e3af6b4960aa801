"""Which versions have a row in the log, whatever the clock says, and which of them are evaluated."""

from __future__ import annotations

from omnirl.runtime.pacing import Pacing


class Milestones:
    """``eval_interval``: updates, 0: the last one only; log_interval: seconds, 0: a row for every update; evaluators:
    how many there are."""

    def __init__(self, pacing: Pacing, eval_interval: int, log_interval: float, evaluators: int) -> None:
        self._pacing = pacing
        self._eval_interval, self._log_interval = eval_interval, log_interval
        self._evaluators = evaluators

    def next_row(self) -> int:
        """The next version that must have a row: an evaluation, the stop, or every update."""
        updates, target = self._pacing.updates, self._pacing.target.updates
        if self._log_interval == 0:
            return updates + 1
        interval = self._eval_interval
        return min(target, (updates // interval + 1) * interval) if interval else target

    def evaluates(self, version: int) -> bool:
        """Whether a version is evaluated: each interval's, and the run's last one, which may come before its target."""
        if not self._evaluators:
            return False
        pacing, interval = self._pacing, self._eval_interval
        last = version == pacing.target.updates or (version == pacing.updates and pacing.finished())
        return last or bool(interval and version % interval == 0)
