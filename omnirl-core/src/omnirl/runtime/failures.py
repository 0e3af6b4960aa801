"""How the failures of workers are told: as a death to mend, as the user's mistake, or as a bug with its traceback."""

from __future__ import annotations

from omnirl.api.errors import WorkersFailedError
from omnirl.runtime.transport import WorkerDiedError, WorkerRaisedError

Failure = WorkerDiedError | WorkerRaisedError


class LearnerDiedError(Exception):
    """A learner's process is gone; the run goes on from its last checkpoint."""


def start_error(name: str, failure: Failure) -> Exception:
    """The error of a worker that could not be built: the user's mistake as it is, anything else with its traceback."""
    if isinstance(failure, WorkerRaisedError):
        if failure.expected is not None:
            return failure.expected
        return WorkersFailedError(
            [f"{name} could not start: {failure.summary}", *failure.traceback.rstrip().splitlines()]
        )
    return WorkersFailedError(f"{name} could not start: its process died: {failure}")
