"""A transport whose learners are threads, each with its queue of calls as on a cluster, so that they can wait for one
another. The other workers run where they are called."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Sequence
from typing import Any

from omnirl.runtime.transport import LocalRef, LocalTransport, LocalWorker, Ref, Worker, WorkerDiedError


class PendingRef(LocalRef):
    """The result of a thread's call."""

    def __init__(self) -> None:
        super().__init__()
        self.done = threading.Event()
        self.dead = ""

    def fill(self, result: LocalRef) -> None:
        self.value, self.error = result.value, result.error
        self.done.set()


class ThreadTransport(LocalTransport):
    """What is ready is told in a random order.

    dying: the learner of this name dies in its n-th call of ``advance``; when those that wait for it notice:
    ``"at once"`` (their connection breaks) or ``"never"``.
    """

    def __init__(self, seed: int = 0, dying: dict[str, int] | None = None, notice: str = "at once") -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.dying = dict(dying or {})
        self.notice = notice
        self.queues: dict[Worker, queue.Queue[Any]] = {}
        self.dead: set[Worker] = set()
        self.killed: list[str] = []

    def call(self, worker: Worker, method: str, *args: Any, returns: int = 1) -> tuple[LocalRef, ...]:
        if not worker.name.startswith("learner"):
            return self._run(worker, method, args, returns)
        refs = tuple(PendingRef() for _ in range(returns))
        if worker in self.dead:
            self._say_dead(refs)
            return refs
        if worker not in self.queues:
            self.queues[worker] = queue.Queue()
            threading.Thread(target=self._work, args=(worker, self.queues[worker]), daemon=True).start()
        self.queues[worker].put((method, args, refs))
        return refs

    def _run(self, worker: Worker, method: str, args: Sequence[Any], returns: int) -> tuple[LocalRef, ...]:
        for argument in args:
            if isinstance(argument, PendingRef):
                assert argument.done.wait(30), "a value that never came"
        return super().call(worker, method, *args, returns=returns)

    def _work(self, worker: LocalWorker, calls: queue.Queue[Any]) -> None:
        while (item := calls.get()) is not None:
            method, args, refs = item
            if method == "advance" and worker.name in self.dying:
                self.dying[worker.name] -= 1
                if self.dying[worker.name] == 0:
                    del self.dying[worker.name]
                    self.dead.add(worker)
                    self._say_dead(refs)
                    if self.notice == "at once":
                        self._leave(worker)
                    return
            for ref, result in zip(refs, self._run(worker, method, args, len(refs)), strict=True):
                ref.fill(result)

    def _say_dead(self, refs: Sequence[PendingRef]) -> None:
        for ref in refs:
            ref.dead = "killed by the test"
            ref.done.set()

    def _leave(self, worker: LocalWorker) -> None:
        """Break the connections."""
        table = getattr(getattr(worker.instance, "learner", None), "table", None)
        if table is not None:
            table.barrier.abort()

    def pulse(self, worker: Worker) -> LocalRef:  # type: ignore[override]
        ref = PendingRef()
        if worker in self.dead:
            self._say_dead([ref])
        ref.done.set()
        return ref

    def wait(self, refs: Sequence[Ref], timeout: float) -> list[Ref]:
        end = time.monotonic() + timeout
        while True:
            ready = [ref for ref in refs if not isinstance(ref, PendingRef) or ref.done.is_set()]
            if ready or time.monotonic() > end:
                break
            time.sleep(0.001)
        return self.random.sample(ready, self.random.randint(1, len(ready))) if ready else []

    def get(self, ref: Ref) -> Any:
        if isinstance(ref, PendingRef):
            assert ref.done.wait(30), "a value that never came"
            if ref.dead:
                raise WorkerDiedError(ref.dead)
        return super().get(ref)

    def kill(self, worker: Worker) -> None:
        assert isinstance(worker, LocalWorker)
        self.killed.append(worker.name)
        if worker in self.queues:
            self.queues[worker].put(None)
        self._leave(worker)
        super().kill(worker)

    def close(self, *, at_once: bool = False) -> None:
        for worker in list(self._workers):
            self.kill(worker)
