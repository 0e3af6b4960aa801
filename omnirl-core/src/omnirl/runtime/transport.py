"""Transports: where workers live and how a call reaches them. The event loop knows nothing else of processes.

``LocalTransport`` runs every worker in this process, each call at once: deterministic, for ``--local`` and tests.
:mod:`omnirl.runtime.ray_transport` runs them as Ray actors.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from omnirl.api.errors import OmniRLError
from omnirl.api.plugin import load_object

LOOPBACK = "127.0.0.1"


class WorkerDiedError(Exception):
    """The worker's process is gone; the text says what the transport knows of the reason."""


class WorkerOutOfMemoryError(WorkerDiedError):
    """The worker was killed because its machine ran out of memory; the text says how much was used."""


class WorkerRaisedError(Exception):
    """A call raised. ``traceback`` is the worker's own; ``expected`` is the OmniRLError among its causes."""

    def __init__(self, summary: str, traceback_text: str, expected: OmniRLError | None = None) -> None:
        super().__init__(summary)
        self.summary = summary
        self.traceback = traceback_text
        self.expected = expected

    def __reduce__(self) -> tuple[type[WorkerRaisedError], tuple[str, str, OmniRLError | None]]:
        return type(self), (self.summary, self.traceback, self.expected)


class Ref(Protocol):
    """A result that may not be there yet. It may be handed to another call instead of its value."""


class Worker(Protocol):
    """A handle on a worker."""

    @property
    def name(self) -> str:
        """For messages, such as ``"sampler 0"``."""


class Transport(Protocol):
    """Where workers live."""

    name: str

    def spawn(self, name: str, factory: str, *args: Any, gpus: int = 0) -> Worker:
        """Make a worker of the class ``"package.module:Class"``. Failures show in its first call."""

    def ready(self, workers: Sequence[Worker]) -> None:
        """Wait until each worker has its process, nothing more. Raises ClusterError where one does not get it."""

    def call(self, worker: Worker, method: str, *args: Any, returns: int = 1) -> tuple[Ref, ...]:
        """Call a method; each of its ``returns`` results has a Ref. Calls to one worker keep their order."""

    def address(self, worker: Worker) -> str:
        """The host at which the other workers reach this worker's machine. Raises WorkerDiedError."""

    def pulse(self, worker: Worker) -> Ref | None:
        """The worker's count of environment steps, answered even while it works; None where nobody could answer."""

    def wait(self, refs: Sequence[Ref], timeout: float) -> list[Ref]:
        """Those of ``refs`` that are ready, after at most ``timeout`` seconds; at least one if any becomes ready."""

    def get(self, ref: Ref) -> Any:
        """The value. Raises WorkerDiedError or WorkerRaisedError."""

    def kill(self, worker: Worker) -> None:
        """End a worker at once."""

    def close(self, *, at_once: bool = False) -> None:
        """End all that this transport started; ``at_once`` without letting workers close what they hold."""


def raised(error: BaseException) -> WorkerRaisedError:
    """The transport's form of an exception that a worker's method raised."""
    text = "".join(traceback.format_exception(error))
    expected = error if isinstance(error, OmniRLError) else None
    return WorkerRaisedError(f"{type(error).__name__}: {error}", text, expected)


@dataclass(eq=False)
class LocalRef:
    """A result that is there already: a value or an error."""

    value: Any = None
    error: WorkerRaisedError | None = None


@dataclass(eq=False)
class LocalWorker:
    """A worker in this process; ``instance`` is made in the first call."""

    name: str
    factory: str
    args: tuple[Any, ...]
    instance: Any = None


class LocalTransport:
    """Every worker in this process; a call has run when it returns."""

    name = "local"

    def __init__(self) -> None:
        self._workers: list[LocalWorker] = []

    def spawn(self, name: str, factory: str, *args: Any, gpus: int = 0) -> LocalWorker:
        """Note what to build."""
        worker = LocalWorker(name, factory, args)
        self._workers.append(worker)
        return worker

    def ready(self, workers: Sequence[Worker]) -> None:
        """This process is up."""

    def call(self, worker: Worker, method: str, *args: Any, returns: int = 1) -> tuple[LocalRef, ...]:
        """Run the method now."""
        assert isinstance(worker, LocalWorker)
        failed = next((a.error for a in args if isinstance(a, LocalRef) and a.error is not None), None)
        if failed is not None:
            return (LocalRef(error=failed),) * returns
        values = [argument.value if isinstance(argument, LocalRef) else argument for argument in args]
        try:
            if worker.instance is None:
                worker.instance = load_object(worker.factory)(*worker.args)
            result = getattr(worker.instance, method)(*values)
        except (Exception, SystemExit) as error:  # an environment that ends its process fails like any other
            return (LocalRef(error=raised(error)),) * returns
        if returns == 1:
            return (LocalRef(result),)
        return tuple(LocalRef(value) for value in result)

    def address(self, worker: Worker) -> str:
        """This machine, from itself."""
        return LOOPBACK

    def pulse(self, worker: Worker) -> None:
        """There is but one thread, and it is busy with the call."""

    def wait(self, refs: Sequence[Ref], timeout: float) -> list[Ref]:
        """All of them: a local call has run when it returns."""
        return list(refs)

    def get(self, ref: Ref) -> Any:
        """The value, or the error."""
        assert isinstance(ref, LocalRef)
        if ref.error is not None:
            raise ref.error
        return ref.value

    def kill(self, worker: Worker) -> None:
        """Close the worker and forget it."""
        assert isinstance(worker, LocalWorker)
        self._workers.remove(worker)
        close_worker(worker.instance)
        worker.instance = None

    def close(self, *, at_once: bool = False) -> None:
        """Close every worker."""
        while self._workers:
            close_worker(self._workers.pop().instance)


def close_worker(instance: Any) -> None:
    """Close a worker that is being ended; what it raises then is of no use to anybody."""
    try:
        if instance is not None:
            instance.close()
    except (Exception, SystemExit):
        pass
