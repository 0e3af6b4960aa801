"""How the failures of workers are told: as a death to mend, as the user's mistake, or as a bug with its traceback."""

from __future__ import annotations

from omnirl.api.errors import OmniRLError, OutOfMemoryError, WorkersFailedError
from omnirl.runtime.transport import WorkerDiedError, WorkerOutOfMemoryError, WorkerRaisedError

Failure = WorkerDiedError | WorkerRaisedError


class LearnerDiedError(Exception):
    """A learner's process is gone; the run goes on from its last checkpoint. memory: it was killed for it."""

    def __init__(self, text: str, memory: bool = False) -> None:
        super().__init__(text)
        self.memory = memory


def memory_error(name: str, death: Exception) -> OutOfMemoryError:
    """A worker was killed for memory, and another one in its place would be."""
    return OutOfMemoryError(
        f"{name}: {death}; lower modules.memory.capacity, runner.num_samplers or runner.num_envs_per_sampler, or use a "
        "machine with more memory"
    )


def start_error(name: str, failure: Failure) -> Exception:
    """The error of a worker that could not be built: the user's mistake as it is, anything else with its traceback."""
    if isinstance(failure, WorkerRaisedError):
        return failure.expected or raised_error(f"{name} could not start", failure)
    return death_at_start(name, failure, memory=isinstance(failure, WorkerOutOfMemoryError))


def death_at_start(name: str, death: Exception, *, memory: bool) -> OmniRLError:
    """A worker's process died before training began."""
    if memory:
        return memory_error(f"{name} could not start", death)
    return WorkersFailedError(f"{name} could not start: its process died: {death}")


def raised_error(what: str, failure: WorkerRaisedError) -> WorkersFailedError:
    """``what`` happened, why, and the worker's own traceback: what raised may be anybody's code, a plugin's too."""
    return WorkersFailedError([f"{what}: {failure.summary}", *failure.traceback.rstrip().splitlines()])
