"""Ray clusters: start one of our own for a run, or join one when, and only when, the user asks.

``ray.init()`` without an address joins whatever runs on the machine, and with a dead address waits for minutes; so
the address is always given, and probed first. A joined cluster must have the resources before anything is asked of
it, for an actor that asks for more waits for ever without a word. Where Ray itself does not come up it may wait
for ever too, so its start has a deadline. What it has to say goes to the run's ``ray.log``.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnirl.api.errors import ClusterError, ClusterLostError
from omnirl.runtime.ray_log import RayLog, ray_log
from omnirl.runtime.signals import end_at_once

_PROBE_SECONDS = 2.0
_LONGEST_TEMP_DIR = 36
_OTHER_TEMP_DIR = "/tmp"
_VITAL = {"raylet", "gcs_server"}
_SETTINGS = {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # else `uv run omnirl` rebuilds the environment for every worker
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
    # else ray.init waits for workers in C++, holding the interpreter's lock: where they die, for ever and unreachable
    "RAY_prestart_worker_first_driver": "0",
}


@dataclass(frozen=True)
class Needs:
    """What a run's workers ask for."""

    cpus: int
    gpus: int

    def describe(self) -> str:
        """For messages."""
        gpus = f" and {self.gpus} GPU" if self.gpus else ""
        return f"{self.cpus} CPUs{gpus}"


@dataclass(frozen=True)
class Cluster:
    """A cluster that this process is connected to. logs: Ray's folder of logs on this machine; ray_log: the run's;
    own: whether it was started for this run, on this machine."""

    logs: Path
    ray_log: RayLog | None
    own: bool

    def check(self) -> None:
        """Raises ClusterLostError where a process of our own cluster that nothing works without has ended."""
        from ray._private import worker

        node = worker._global_node
        dead: set[str] = {name for name, _ in node.dead_processes()} if node is not None else set()
        for name in _VITAL & dead:
            raise ClusterLostError(
                f"Ray's {name} ended during the run, and the cluster with it; Ray's logs are in {self.logs}"
            )


@contextmanager
def connected(
    address: str,
    needs: Needs,
    *,
    num_cpus: int | None,
    object_store_memory: int | None,
    start_timeout: float,
    folder: Path | None,
) -> Iterator[Cluster]:
    """Be connected for the length of the block. Raises ClusterError (exit 6).

    start_timeout: seconds for Ray's start. folder: where ``ray.log`` goes; None: no log is kept.
    """
    own = address == "local"
    settings = {**_SETTINGS, **(_starting() if own else _joining())}
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    target = address if own else _reachable(address)
    import ray

    if ray.is_initialized():
        raise ClusterError("ray is already initialised in this process: end it with ray.shutdown() first")
    options: dict[str, Any] = {}
    if own:
        options.update(include_dashboard=False, num_cpus=num_cpus or needs.cpus, **_temp_dir())
    if own and num_cpus is not None and num_cpus < needs.cpus:
        raise ClusterError(f"ray.num_cpus: {num_cpus}, but the workers need {needs.describe()}")
    if own and needs.gpus:
        options["num_gpus"] = needs.gpus
    if own and object_store_memory is not None:
        options["object_store_memory"] = object_store_memory
    with ExitStack() as stack:
        log = stack.enter_context(ray_log(folder)) if folder is not None else None
        if log is not None:
            stack.enter_context(_messages_to(log))
        stack.callback(ray.shutdown)
        logs = _start(target, start_timeout, options)
        if log is not None:
            log.follow(logs, ray.get_runtime_context().get_job_id(), whole=own)
        try:
            if not own:
                _check(address, needs)
            yield Cluster(logs, log, own)
        except SystemExit as end:
            raise _as_terminated(end) from None


def _start(target: str, timeout: float, options: dict[str, Any]) -> Path:
    """Start or join; returns Ray's folder of logs on this machine."""
    import ray

    try:
        with _deadline(timeout):
            context: Any = ray.init(
                address=target, log_to_driver=False, logging_level=logging.ERROR, **options
            )
    except SystemExit as end:
        if end.code == signal.SIGTERM:
            raise _as_terminated(end) from None
        raise ClusterError(f"ray cannot start or join a cluster ({target}){_see_logs()}") from end
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ClusterError(f"ray cannot start or join a cluster ({target}): {reason}{_see_logs()}") from error
    return Path(context.address_info["session_dir"], "logs")


def _as_terminated(end: SystemExit) -> SystemExit:
    """With the exit code of SIGTERM where the handler that ray.init sets ends the process, with the signal's number."""
    return SystemExit(128 + signal.SIGTERM) if end.code == signal.SIGTERM else end


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """End the process where the block takes longer: Ray has no deadline of its own for every one of its waits, and an
    exception or a signal does not reach into them."""

    def passed() -> None:
        line = f"Ray did not start within {seconds:g} s (ray.start_timeout_s){_see_logs()}"
        end_at_once(line, ClusterError.exit_code)

    timer = threading.Timer(seconds, passed)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _see_logs() -> str:
    """Where Ray's logs are of the cluster that is being started: a session's folder is named after the process."""
    parent = _temp_dir().get("_temp_dir") or os.path.join(
        os.environ.get("RAY_TMPDIR") or tempfile.gettempdir(), "ray"
    )
    sessions = sorted(Path(parent).glob(f"session_*_{os.getpid()}"))
    return f"; Ray's logs are in {sessions[-1] / 'logs'}" if sessions else ""


@contextmanager
def _messages_to(log: RayLog) -> Iterator[None]:
    """Ray prints its messages about workers that died, whatever ``log_to_driver`` says: into the log with them."""
    from ray._private import worker

    def keep(data: dict[str, Any], ignore_prefix: bool = False) -> None:
        log.say(str(data.get("pid", "ray")), "\n".join(data["lines"]))

    printing = worker.print_to_stdstream
    worker.print_to_stdstream = keep
    try:
        yield
    finally:
        worker.print_to_stdstream = printing


def _starting() -> dict[str, str]:
    """Settings for a cluster of our own. Ray keeps its token in the home folder; where that cannot be written, as
    in many containers, the token is handed to the workers through their environment."""
    if any(name in os.environ for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")):
        return {}
    try:
        folder = Path.home() / ".ray"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK) or os.access(folder / "auth_token", os.R_OK):
            return {}
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        pass
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _temp_dir() -> dict[str, str]:
    """A folder for Ray's session, where its own choice would not do: a path too long for sockets (the kernel allows 107
    bytes, a session takes up to 70) is refused by Ray, and with one inside the virtual environment its workers die
    as they start while it waits for ever."""
    chosen = os.path.abspath(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir())
    environment = os.environ.get("VIRTUAL_ENV")
    inside = environment is not None and Path(environment) in Path(chosen).parents
    if not inside and len(os.fsencode(chosen)) <= _LONGEST_TEMP_DIR:
        return {}
    if os.access(_OTHER_TEMP_DIR, os.W_OK | os.X_OK):
        return {"_temp_dir": os.path.join(_OTHER_TEMP_DIR, "ray")}
    raise ClusterError(
        f"the temp folder {chosen} does not suit Ray: set RAY_TMPDIR to one of at most {_LONGEST_TEMP_DIR} bytes "
        "outside the virtual environment"
    )


def _joining() -> dict[str, str]:
    """Settings for a cluster that others started: show the token that lies where Ray looks for it, and give up
    after seconds rather than after the 20 that Ray would try."""
    token = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", Path.home() / ".ray" / "auth_token"))
    mode = {"RAY_AUTH_MODE": "token"} if token.is_file() or "RAY_AUTH_TOKEN" in os.environ else {}
    return {"RAY_NUM_REDIS_GET_RETRIES": "3", **mode}


def _reachable(address: str) -> str:
    """The address, after a probe of its socket."""
    if address == "auto":
        from ray._private.services import find_gcs_addresses

        found = sorted(find_gcs_addresses())  # type: ignore[no-untyped-call]
        if not found:
            raise ClusterError(
                "ray.address: auto, but no cluster runs on this machine: start one with "
                "`ray start --head`, or use ray.address=local"
            )
        address = found[0]
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_PROBE_SECONDS):
            return address
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"ray.address: nothing answers at {address} ({error}); use ray.address=local, "
            "or the address that `ray start --head` printed"
        ) from error


def _check(address: str, needs: Needs) -> None:
    import ray

    total = ray.cluster_resources()  # type: ignore[no-untyped-call]
    free = ray.available_resources()  # type: ignore[no-untyped-call]
    cpus, gpus = int(total.get("CPU", 0)), int(total.get("GPU", 0))
    free_cpus, free_gpus = int(free.get("CPU", 0)), int(free.get("GPU", 0))
    if needs.cpus > free_cpus or needs.gpus > free_gpus:
        has = f"{cpus} CPUs" + (f" and {gpus} GPUs" if gpus or needs.gpus else "")
        left = f" ({free_cpus} CPUs free)" if free_cpus != cpus else ""
        raise ClusterError(
            f"the run needs {needs.describe()}, the cluster at {address} has {has}{left}: lower "
            "runner.num_samplers, runner.num_evaluators or runner.num_learners, or add nodes"
        )
