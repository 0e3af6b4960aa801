"""What this machine has: its cores, its memory, and whether torch finds a GPU, which is asked of a child process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_TIMEOUT = 120.0
_ASK_TORCH = (
    "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available(), sep='\\n')"
)
_COUNT_DEVICES = "import torch; print(torch.cuda.device_count())"


def cores() -> int:
    """The CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """The bytes that this process may still take: what the system has left, or its control group (a container) where
    that is less. None where the system does not say."""
    found = [*_system_memory(proc / "meminfo"), *_group_memory(proc / "self" / "cgroup", groups)]
    return max(0, min(found)) if found else None


def _system_memory(meminfo: Path) -> Iterator[int]:
    for line in _text(meminfo).splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _group_memory(membership: Path, groups: Path) -> Iterator[int]:
    """What is left in each control group with a limit that this process is in, of version 2 and 1. What a group uses
    for files that were read is given back when it is needed."""
    for line in _text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, limit, usage, files = groups, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, limit = groups / "memory", "memory.limit_in_bytes"
            usage, files = "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        place = root / path.strip("/")
        for folder in (place, *place.parents):
            most, used = _text(folder / limit).strip(), _text(folder / usage).strip()
            if most.isdecimal() and used.isdecimal():
                figures = dict(line.split() for line in _text(folder / "memory.stat").splitlines())
                yield int(most) - int(used) + int(figures.get(files, 0))
            if folder == root:
                break


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


def cuda_problem() -> str:
    """Why torch cannot use CUDA, in one line with the way out; empty where it can."""
    answer, error = _asked(_ASK_TORCH)
    if len(answer) != 3:
        return f"torch cannot be asked for CUDA: {error[-1] if error else 'it ended without an answer'}"
    version, cuda, available = answer
    if cuda == "None":
        return f"this torch ({version}) is built without CUDA: install another, or use cpu or auto"
    if available != "True":
        return f"torch {version} (CUDA {cuda}) finds no GPU: use cpu or auto"
    return ""


def _asked(code: str) -> tuple[list[str], list[str]]:
    """The words that a child process prints, and the lines of its error."""
    try:
        asked = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return [], [f"no answer within {_TIMEOUT:g} s"]
    return asked.stdout.split(), asked.stderr.strip().splitlines()


def has_cuda(learners: int = 1) -> bool:
    """Whether ``device.learner: auto`` means cuda, with a GPU for each learner. Where there is no driver, torch need
    not be asked."""
    driver = os.path.exists("/proc/driver/nvidia") or shutil.which("nvidia-smi") is not None
    return driver and not cuda_problem() and (learners == 1 or cuda_devices() >= learners)


def cuda_devices() -> int:
    """The number of GPUs that torch finds, where :func:`cuda_problem` says nothing."""
    return int(_asked(_COUNT_DEVICES)[0][0])
