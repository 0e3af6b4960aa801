"""Faults done for real, each with its bound; ``nox -s faults`` repeats them and writes what was measured as a table."""

from __future__ import annotations

import datetime
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

MEASURED: dict[str, tuple[str, float, list[float]]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--repetitions", type=int, default=1, help="how often each fault is done")
    parser.addoption("--table", default=None, help="file for the table of bounds and measurements")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    count = metafunc.config.getoption("--repetitions", default=1)
    if "repetition" in metafunc.fixturenames:
        metafunc.parametrize("repetition", range(count))


@pytest.fixture
def within(repetition: int) -> Callable[..., Any]:
    """``with within("kill -9 sampler", "what must happen", 15): ...`` fails when it takes longer, and is recorded."""

    @contextmanager
    def measure(fault: str, consequence: str, seconds: float) -> Iterator[None]:
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        MEASURED.setdefault(fault, (consequence, seconds, []))[2].append(took)
        assert took <= seconds, f"{fault}: {took:.1f} s, the bound is {seconds:g} s"

    return measure


def pytest_sessionfinish(session: pytest.Session) -> None:
    target = session.config.getoption("--table", default=None)
    if not target or not MEASURED:
        return
    repetitions = session.config.getoption("--repetitions")
    versions = ", ".join(f"{name} {version(name)}" for name in ("ray", "numpy", "torch"))
    lines = [
        "# Faults, measured",
        "",
        f"Each fault was done for real {repetitions} times by `python -m nox -s faults`, which runs `pytest "
        f"tests/integration/faults --repetitions {repetitions} --table {target}`. [What must happen](faults.md) has a "
        "bound; the seconds are those from the fault to the consequence, the starts of commands that are part of it "
        "included.",
        "",
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}; Python "
        f"{platform.python_version()}, {versions}; {datetime.date.today():%Y-%m-%d}.",
        "",
        "| fault | consequence | bound | median | worst | runs |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for fault, (consequence, bound, took) in MEASURED.items():
        median, worst = statistics.median(took), max(took)
        lines.append(
            f"| {fault} | {consequence} | {bound:g} s | {median:.1f} s | {worst:.1f} s | {len(took)} |"
        )
    Path(target).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _processor() -> str:
    described = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    return next((line.partition(": ")[2] for line in described if line.startswith("model name")), "processor")
