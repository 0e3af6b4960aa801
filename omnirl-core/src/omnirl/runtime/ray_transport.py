"""Workers as Ray actors. With :mod:`omnirl.runtime.cluster` the only module that knows Ray.

One small actor class serves every worker: it makes the worker in its own process from an import string, so nothing
but strings, plain data and numpy buffers is ever pickled. Rollouts cross as one packed buffer, by reference: the
driver hands the future of a rollout to the learner and never holds its value.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from omnirl.api.data import Rollout
from omnirl.api.errors import ClusterError
from omnirl.api.plugin import load_object
from omnirl.runtime.cluster import Cluster
from omnirl.runtime.transport import (
    LOOPBACK,
    Ref,
    Worker,
    WorkerDiedError,
    WorkerOutOfMemoryError,
    WorkerRaisedError,
    close_worker,
    raised,
)
from omnirl.runtime.weights import PackedRollout, pack_rollout, unpack_rollout

_CHECK_SECONDS = 1.0
_LOW_ON_MEMORY = "running low on memory"  # in the text alone: Ray has no class for an actor's death by it
_LAST_OF_BUILDING = "start"  # a worker's first call, or that after which its parts are there


class _Host:
    """The actor: one worker in a process of its own, made in its first call. Errors are returned as values, so
    that their text and traceback arrive whole whatever their class."""

    def __init__(self, name: str, factory: str, args: tuple[Any, ...], folder: str) -> None:
        self.factory, self.args = factory, args
        for stream in (sys.stdout, sys.stderr):  # Ray's form of saying whose output follows
            print(f":actor_name:{name}", file=stream, flush=True)
        with suppress(
            OSError
        ):  # elsewhere on a cluster it may not be there; then relative paths mean nothing
            os.chdir(folder)
        self.instance: Any = None

    def call(self, method: str, returns: int, *args: Any) -> Any:
        failed = next((argument for argument in args if isinstance(argument, WorkerRaisedError)), None)
        if failed is not None:
            return (failed,) * returns if returns > 1 else failed
        try:
            if self.instance is None:
                self.instance = load_object(self.factory)(*self.args)
            values = [unpack_rollout(a) if isinstance(a, PackedRollout) else a for a in args]
            result = getattr(self.instance, method)(*values)
            if method == _LAST_OF_BUILDING:
                _settle()
        except Exception as error:
            problem = raised(error)
            return (problem,) * returns if returns > 1 else problem
        if returns == 1:
            return result
        return tuple(pack_rollout(item) if isinstance(item, Rollout) else item for item in result)

    def address(self) -> str:
        return str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]

    @ray.method(concurrency_group="pulse")
    def pulse(self) -> int:
        return int(getattr(self.instance, "pulse", 0))

    def close(self) -> None:
        close_worker(self.instance)
        self.instance = None


def _settle() -> None:
    """What a worker has imported and built stays until its process ends: the garbage collector need not walk over it
    again and again, which took a twentieth of the time of PPO on CartPole."""
    gc.collect()
    gc.freeze()


@dataclass(eq=False)
class RayWorker:
    """A handle on an actor."""

    name: str
    handle: Any


class RayTransport:
    """Workers on the cluster that this process is connected to."""

    name = "ray"

    def __init__(self, cluster: Cluster, start_timeout: float) -> None:
        self._cluster, self._start_timeout = cluster, start_timeout
        self._workers: list[RayWorker] = []
        self._next_check = 0.0

    def spawn(self, name: str, factory: str, *args: Any, gpus: int = 0) -> RayWorker:
        """Make an actor on one CPU (and ``gpus``). It never restarts by itself: the driver is the supervisor."""
        # Under its worker's name the process is easy to find: ray::Sampler, ray::Learner...
        host = type(factory.rpartition(":")[2], (_Host,), {})
        # The pulse is answered by a thread of its own, whatever the worker does.
        actor: Any = ray.remote(concurrency_groups={"pulse": 1})(host)  # type: ignore[call-overload]
        options = actor.options(num_cpus=1, num_gpus=gpus, max_restarts=0, max_task_retries=0)
        worker = RayWorker(name, options.remote(name, factory, args, os.getcwd()))
        self._workers.append(worker)
        return worker

    def ready(self, workers: Sequence[Worker]) -> None:
        """A process that dies as it starts is tried again by Ray for ever: one must come up in good time."""
        missing: list[Any] = [self.pulse(worker) for worker in workers]
        since = time.monotonic()
        while missing:
            up, missing = ray.wait(missing, num_returns=1, timeout=_CHECK_SECONDS, fetch_local=False)
            self._cluster.check()
            if up:
                since = time.monotonic()
            elif time.monotonic() - since > self._start_timeout:
                raise ClusterError(
                    f"{len(missing)} of {len(workers)} workers' processes did not come up within "
                    f"{self._start_timeout:g} s (ray.start_timeout_s); Ray's logs are in {self._cluster.logs}"
                )

    def call(self, worker: Worker, method: str, *args: Any, returns: int = 1) -> tuple[Ref, ...]:
        """Call a method of the worker; arguments that are Refs are resolved in its process."""
        assert isinstance(worker, RayWorker)
        refs = worker.handle.call.options(num_returns=returns).remote(method, returns, *args)
        return (refs,) if returns == 1 else tuple(refs)

    def address(self, worker: Worker) -> str:
        """As Ray knows the node; loopback where all workers are on this machine."""
        assert isinstance(worker, RayWorker)
        return LOOPBACK if self._cluster.own else str(self.get(worker.handle.address.remote()))

    def pulse(self, worker: Worker) -> Ref | None:
        """Asked of a thread of the worker's own."""
        assert isinstance(worker, RayWorker)
        ref: Ref = worker.handle.pulse.remote()
        return ref

    def wait(self, refs: Sequence[Ref], timeout: float) -> list[Ref]:
        """Those that are ready."""
        if time.monotonic() > self._next_check:
            self._next_check = time.monotonic() + _CHECK_SECONDS
            self._cluster.check()
        pending: list[Any] = list(refs)
        ready, rest = ray.wait(pending, num_returns=1, timeout=timeout, fetch_local=False)
        if ready and rest:
            more, _ = ray.wait(rest, num_returns=len(rest), timeout=0, fetch_local=False)
            ready += more
        return list(ready)

    def get(self, ref: Ref) -> Any:
        """The value."""
        try:
            value = ray.get(ref)  # type: ignore[call-overload]
        except RayTaskError as error:
            raise WorkerRaisedError(_first_line(error), str(error)) from error
        except RayError as error:
            told = self._told(error)
            died = WorkerOutOfMemoryError(told) if _LOW_ON_MEMORY in str(error) else WorkerDiedError(told)
            raise died from error
        if isinstance(value, WorkerRaisedError):
            raise value
        return value

    def _told(self, error: RayError) -> str:
        """The first line of Ray's reasons, and where the rest of them is."""
        log = self._cluster.ray_log
        if log is None:
            return _first_line(error)
        log.say("ray", str(error))
        log.gather()
        return f"{_first_line(error)} ({log.path} has more)"

    def kill(self, worker: Worker) -> None:
        """End the actor at once."""
        assert isinstance(worker, RayWorker)
        if worker in self._workers:
            self._workers.remove(worker)
        ray.kill(worker.handle, no_restart=True)

    def close(self, *, at_once: bool = False) -> None:
        """Ask every worker to close, then end them all."""
        closing = [] if at_once else [worker.handle.close.remote() for worker in self._workers]
        if closing:
            ray.wait(closing, num_returns=len(closing), timeout=3.0)
        for worker in list(self._workers):
            self.kill(worker)


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
