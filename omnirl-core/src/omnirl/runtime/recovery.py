"""After the learner's death: from which moment the run goes on, and for how long that is worth trying."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omnirl.api.errors import WorkersFailedError
from omnirl.runtime import checkpoint
from omnirl.runtime.checkpoint import Loaded
from omnirl.runtime.failures import LearnerDiedError, memory_error
from omnirl.runtime.run_state import RunState

MOST_DEATHS = 3


class Recovery:
    """Counts deaths in a row: those without an update beyond the furthest so far between them."""

    def __init__(self, run_dir: str, state: RunState) -> None:
        self._folder = Path(run_dir)
        self._state = state
        self._fresh: dict[str, Any] = state.state_dict()
        self._deaths = 0
        self._short_of_memory = 0
        self._furthest = -1

    def count(self, death: LearnerDiedError) -> None:
        """One more death. Raises WorkersFailedError where there were too many in a row, OutOfMemoryError at the second
        for memory: the next one would come too."""
        self._short_of_memory += death.memory
        if self._short_of_memory > 1:
            raise memory_error("the learner's process died twice", death) from death
        updates = self._state.pacing.updates
        self._deaths = self._deaths + 1 if updates <= self._furthest else 1
        self._furthest = max(self._furthest, updates)
        if self._deaths > MOST_DEATHS:
            raise WorkersFailedError(
                f"the learner's process died {self._deaths} times in a row, the limit is {MOST_DEATHS}: {death}"
            ) from death

    def checkpoint(self) -> Loaded | None:
        """The checkpoint to go on from; None where there is none yet. To be asked when the learners that died are
        gone: one that is only cut off may be writing a newer one."""
        if not checkpoint.has_checkpoint(self._folder):
            return None
        return checkpoint.load_latest(self._folder).of_driver()

    def start_anew(self) -> None:
        """Bring the driver back to the run's first moment."""
        self._state.load_state_dict(self._fresh, memory_restored=True)
