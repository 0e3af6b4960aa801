"""Whether another process can build an environment from its configuration alone, as every worker does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from omnirl.api.environment import EnvFinding
from omnirl.api.plugin import EnvBackendSpec
from omnirl.config import models

_CHILD = """
import json, sys
given = json.load(sys.stdin)
sys.path[:] = given["path"]
from omnirl.api.environment import EnvContext
from omnirl.api.plugin import load_object
config = load_object(given["config"]).model_validate(given["env"])
environment = load_object(given["backend"]).build_env(config, EnvContext("sampler", 0, 1))
environment.reset(0, 0)
environment.close()
"""
_REMEDY = (
    "register it in a module that others can import (Gymnasium: env.imports), and give it plain values only"
)


def look(backend: EnvBackendSpec, config: Any, seconds: float) -> Iterator[EnvFinding]:
    """Build it once in a child process, which has ``seconds`` for it."""
    given = {
        "path": sys.path,
        "config": backend.config,
        "backend": backend.backend,
        "env": models.plain(config),
    }
    try:
        text = json.dumps(given)
    except (TypeError, ValueError) as error:
        told = f"its configuration cannot be sent to a worker: {error}"
        yield EnvFinding("process", "error", told, _REMEDY)
        return
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=text,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        told = f"another process did not build it within {seconds:g} s"
        yield EnvFinding("process", "error", told, "build it faster: each worker builds its own")
        return
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        yield EnvFinding("process", "error", f"another process cannot build it: {last}", _REMEDY)
