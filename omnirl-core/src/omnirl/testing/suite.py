"""What the conformance suites share: parametrised methods, skipping, and looking into a descriptor's parts."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np


def parametrize(metafunc: Any, argument: str, values: Mapping[str, Any]) -> None:
    """Let pytest run a method once per value, if it takes ``argument``; the keys name the cases."""
    if argument in metafunc.fixturenames:
        metafunc.parametrize(argument, list(values.values()), ids=list(values))


def skip(reason: str) -> NoReturn:
    """Leave a check out, saying why."""
    raise unittest.SkipTest(reason)  # which pytest understands, and needs no pytest


def loaded_by(code: str, modules: Sequence[str]) -> list[str]:
    """Which of ``modules`` a fresh interpreter has imported after running ``code``; it finds what this one does.

    Raises AssertionError with the interpreter's last words where the code fails.
    """
    report = (
        f"import sys, json; print(json.dumps([name for name in {list(modules)!r} if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.strip().splitlines()[-1]
    loaded: list[str] = json.loads(done.stdout.splitlines()[-1])
    return loaded


def disturb(seed: int) -> None:
    """Put the process's global generators somewhere else: nothing may depend on them."""
    random.seed(seed)
    np.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def raises(action: Callable[[], object], expected: type[Exception] | tuple[type[Exception], ...]) -> bool:
    """Whether ``action()`` raises one of ``expected``; anything else it raises goes on."""
    try:
        action()
    except expected:
        return True
    return False
