"""What this machine has: its cores, and whether torch finds a GPU, which is asked of a child process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

_TIMEOUT = 120.0
_ASK_TORCH = (
    "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available(), sep='\\n')"
)


def cores() -> int:
    """The CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cuda_problem() -> str:
    """Why torch cannot use CUDA, in one line with the way out; empty where it can."""
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _ASK_TORCH], capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
        answer, error = asked.stdout.split(), asked.stderr.strip().splitlines()
    except subprocess.TimeoutExpired:
        answer, error = [], [f"no answer within {_TIMEOUT:g} s"]
    if len(answer) != 3:
        return f"torch cannot be asked for CUDA: {error[-1] if error else 'it ended without an answer'}"
    version, cuda, available = answer
    if cuda == "None":
        return f"this torch ({version}) is built without CUDA: install another, or use cpu or auto"
    if available != "True":
        return f"torch {version} (CUDA {cuda}) finds no GPU: use cpu or auto"
    return ""


def has_cuda() -> bool:
    """Whether ``device.learner: auto`` means cuda. Where there is no driver, torch need not be asked."""
    driver = os.path.exists("/proc/driver/nvidia") or shutil.which("nvidia-smi") is not None
    return driver and not cuda_problem()
