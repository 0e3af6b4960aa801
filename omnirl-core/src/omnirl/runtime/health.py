"""What a NaN does to a run: refused rollouts are counted, and too many of them, or of lost updates, end it."""

from __future__ import annotations

from collections.abc import Callable

from omnirl.api.errors import NumericsError
from omnirl.runtime.learner import AdvanceReport
from omnirl.runtime.pacing import Pacing
from omnirl.runtime.sampler import CollectReport

MOST_NONFINITE_UPDATES = 10
_FEWEST_REFUSED, _LARGEST_SHARE = 10, 0.01


class Health:
    """``on_nan`` says what a NaN or an infinity from an environment does: ``"drop"`` refuses the rollout, and ends
    the run once more than one in a hundred was refused (and at least ten were); ``"error"`` ends it at once."""

    def __init__(self, pacing: Pacing, on_nan: str, tell: Callable[[str], None]) -> None:
        self._pacing, self._on_nan, self._tell = pacing, on_nan, tell
        self._refused = 0

    def sick(self, report: CollectReport) -> None:
        """A rollout was refused. Raises NumericsError where that ends the run."""
        where = f"sampler {report.sampler}, {report.nonfinite}"
        if self._on_nan == "error":
            raise NumericsError(f"{where} (runner.on_nan: error)")
        self._refused += 1
        rollouts = self._pacing.collected // self._pacing.rollout_steps
        if self._refused >= _FEWEST_REFUSED and self._refused > _LARGEST_SHARE * rollouts:
            raise NumericsError(
                f"{self._refused} of {rollouts} rollouts held a NaN or an infinity, the limit is 1 %; the last: {where}"
            )
        self._tell(f"a rollout was refused: {where}")

    def finished(self) -> None:
        """The run's last step was made. Raises NumericsError where every rollout was refused, so nothing learned."""
        rollouts = self._pacing.collected // self._pacing.rollout_steps
        if self._refused and self._refused >= rollouts:
            raise NumericsError(
                f"each of the {rollouts} rollouts held a NaN or an infinity; nothing was learned"
            )

    def learned(self, report: AdvanceReport) -> None:
        """Updates were made. Raises NumericsError where too many in a row had no finite loss and gradient."""
        if report.nonfinite_in_row >= MOST_NONFINITE_UPDATES:
            raise NumericsError(
                f"update {report.updates}: the loss or gradient was not finite {report.nonfinite_in_row} times in a "
                "row; the weights are those before: lower modules.learner.lr, or clip the gradient"
            )
