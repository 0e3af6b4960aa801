"""Ray clusters: start one of our own for a run, or join one when, and only when, the user asks.

``ray.init()`` without an address joins whatever runs on the machine, and with a dead address waits for minutes; so
the address is always given, and probed first. A joined cluster must have the resources before anything is asked of
it, for an actor that asks for more waits for ever without a word.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnirl.api.errors import ClusterError

_PROBE_SECONDS = 2.0
_LONGEST_TEMP_DIR = 36
_OTHER_TEMP_DIR = "/tmp"
_SETTINGS = {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # else `uv run omnirl` rebuilds the environment for every worker
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
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


@contextmanager
def connected(
    address: str, needs: Needs, num_cpus: int | None, object_store_memory: int | None
) -> Iterator[str]:
    """Be connected for the length of the block; yields a description. Raises ClusterError (exit 6)."""
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
    try:
        ray.init(address=target, log_to_driver=False, logging_level=logging.ERROR, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ClusterError(f"ray cannot start or join a cluster ({address}): {error}") from error
    try:
        if not own:
            _check(address, needs)
        yield "a Ray cluster of our own" if own else f"the Ray cluster at {target}"
    finally:
        ray.shutdown()


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
            "runner.num_samplers or runner.num_evaluators, or add nodes"
        )
