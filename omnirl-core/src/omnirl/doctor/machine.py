"""Looks at the machine that a run would use: cores, memory, disk, shared memory, temporary files, loopback, Ray, torch.

Ray and torch are asked for in child processes, both at once: importing them takes seconds, and a broken one may end
the process that imports it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from omnirl.config import hardware
from omnirl.doctor.findings import CLUSTER, PLUGIN, Finding, ok, problem, warning

GIB = 1024**3
_LEAST_SHARED, _LEAST_MEMORY, _LEAST_DISK = 1 * GIB, 2 * GIB, 1 * GIB
_LONGEST_TEMPORARY = 40
"""Ray puts a socket of a 67-character name below it, and a socket's path has at most 107 characters."""
_ASK_SECONDS = 120.0
_ASK_RAY = "import ray; print(ray.__version__)"
_ASK_TORCH = (
    "import torch; print(torch.__version__, torch.version.cuda, "
    "torch.cuda.device_count() if torch.cuda.is_available() else 0)"
)


def look() -> Iterator[Finding]:
    """All that can be found out, quickly; the slowest, Ray and torch, at the end."""
    children = {name: _ask(code) for name, code in (("ray", _ASK_RAY), ("torch", _ASK_TORCH))}
    yield cores(hardware.cores())
    yield memory(_memory())
    yield disk(Path.cwd())
    yield temporary(Path(tempfile.gettempdir()))
    yield shared_memory(Path("/dev/shm"))
    yield loopback()
    yield ray(*_answer(children["ray"]))
    driver = os.path.exists("/proc/driver/nvidia") or shutil.which("nvidia-smi") is not None
    yield torch(*_answer(children["torch"]), driver=driver)


def cores(count: int) -> Finding:
    """How many this process may use."""
    if count > 1:
        return ok("cores", f"{count}")
    return warning("cores", "1", "samplers and learner take turns on it: use --local")


def memory(total: int | None) -> Finding:
    """RAM, or the container's limit, in bytes; None where the system does not say."""
    if total is None:
        return ok("memory", "unknown")
    if total >= _LEAST_MEMORY:
        return ok("memory", _size(total))
    return warning(
        "memory", _size(total), f"less than {_size(_LEAST_MEMORY)}: use --local and few environments"
    )


def disk(folder: Path) -> Finding:
    """Where runs are written unless told otherwise."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return warning("disk", f"{folder} cannot be written to", "give runs another place with --run-dir")
    free = shutil.disk_usage(folder).free
    if free >= _LEAST_DISK:
        return ok("disk", f"{_size(free)} free in {folder}")
    return warning(
        "disk", f"{_size(free)} free in {folder}", "make room, or give runs another place with --run-dir"
    )


def temporary(folder: Path) -> Finding:
    """Ray's sockets and logs are below it."""
    remedy = "set TMPDIR to a folder of your own, such as /tmp"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        return problem("temporary files", f"{folder}: {error.strerror}", remedy, CLUSTER)
    if len(str(folder)) > _LONGEST_TEMPORARY:
        text = f"{folder} is too long for Ray's sockets ({_LONGEST_TEMPORARY} characters at most)"
        return problem("temporary files", text, "set TMPDIR to a shorter path, such as /tmp", CLUSTER)
    return ok("temporary files", str(folder))


def shared_memory(folder: Path) -> Finding:
    """Ray's object store lies in it on Linux, and on the disk where it is too small."""
    if not folder.is_dir():
        return ok("shared memory", f"no {folder} on this system")
    free = shutil.disk_usage(folder).free
    if free >= _LEAST_SHARED:
        return ok("shared memory", f"{_size(free)} free in {folder}")
    remedy = "Ray would use the disk: in a container, start it with --shm-size=2g, or lower ray.object_store_memory"
    return warning("shared memory", f"{_size(free)} free in {folder}", remedy)


def loopback(host: str = "127.0.0.1") -> Finding:
    """Ray's processes talk to each other through ports on it."""
    try:
        with socket.create_server((host, 0)) as server:
            port = server.getsockname()[1]
            with socket.create_connection((host, port), timeout=2.0):
                return ok("loopback", f"ports on {host} can be opened and reached")
    except OSError as error:
        text = f"no port on {host} can be opened and reached: {error.strerror or error}"
        return problem("loopback", text, "allow it in the firewall or the sandbox, or use --local", CLUSTER)


def ray(answer: str, error: str) -> Finding:
    """Whether Ray can be imported; only --local works without it."""
    if answer:
        return ok("ray", answer)
    return problem("ray", f"cannot be imported: {error}", 'pip install "ray>=2.54", or use --local', CLUSTER)


def torch(answer: str, error: str, *, driver: bool) -> Finding:
    """What OmniRL's own algorithms compute with. driver: whether the machine has one of NVIDIA's."""
    if not answer:
        if "No module named 'torch'" in error:
            text = "not installed: only algorithms that do without it can be trained"
            return warning("torch", text, "pip install omnirl-algos")
        return problem("torch", f"cannot be imported: {error}", "pip install --force-reinstall torch", PLUGIN)
    version, cuda, count = answer.split()
    if count != "0":
        return ok("torch", f"{version} with CUDA {cuda} and {count} GPU{'s' if count != '1' else ''}")
    if driver:
        why = "is built without CUDA" if cuda == "None" else f"with CUDA {cuda} finds no GPU"
        return warning("torch", f"{version} {why}", "install the build of torch for this driver: pytorch.org")
    return ok("torch", f"{version} on the CPU")


def _ask(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _answer(child: subprocess.Popen[str]) -> tuple[str, str]:
    """``(what it printed, "")``, or ``("", its last words)``."""
    try:
        out, err = child.communicate(timeout=_ASK_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return "", f"no answer within {_ASK_SECONDS:g} s"
    if child.returncode == 0 and out.strip():
        return out.strip().splitlines()[-1], ""
    words = err.strip().splitlines()
    return "", words[-1] if words else f"it ended with {child.returncode} and said nothing"


def _memory() -> int | None:
    """RAM in bytes, or the control group's limit where that is less."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdecimal() else total


def _size(count: int) -> str:
    return f"{count / GIB:.1f} GiB"
