"""What the doctor says about an installation and a machine, given what it finds there."""

from __future__ import annotations

import errno
import socket
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from omnirl.api.errors import PluginError
from omnirl.doctor import installation, machine
from omnirl.doctor.findings import exit_code, ok, problem, warning, worst
from omnirl.plugins import PluginFailure, PluginSource, Registry

ALL = {"omnirl-core": "0.2.0", "omnirl-algos": "0.2.0", "omnirl-gymnasium": "0.2.0", "numpy": "2.1.0"}


def told(finding):
    return finding.status, finding.text, finding.remedy


def test_the_worst_finding_decides():
    fine, warned = ok("a", "1"), warning("b", "2", "mend")
    plugin, cluster = problem("c", "3", "mend", 4), problem("d", "4", "mend", 6)
    assert [worst(items) for items in ([], [fine], [fine, warned], [cluster, warned])] == [
        "ok",
        "ok",
        "warning",
        "problem",
    ]
    assert [exit_code(items) for items in ([fine, warned], [cluster], [cluster, plugin])] == [0, 6, 4]


@pytest.mark.parametrize(
    ("version", "status"),
    [((3, 9, 1), "problem"), ((3, 10, 0), "ok"), ((3, 13, 2), "ok"), ((3, 14, 0), "warning")],
)
def test_python(version, status):
    finding = installation.python(version)
    assert (finding.status, finding.text) == (status, ".".join(map(str, version)))


def test_the_running_python_is_supported():
    assert installation.python().status == "ok"


def test_distributions_that_belong_together():
    assert [(item.subject, item.status) for item in installation.distributions(ALL)] == [
        (name, "ok") for name in ALL
    ]


def test_a_distribution_of_another_version():
    findings = list(installation.distributions({**ALL, "omnirl-algos": "0.1.0"}))
    (wrong,) = [item for item in findings if item.status != "ok"]
    assert (wrong.subject, wrong.status, wrong.exit_code) == ("omnirl-algos", "problem", 4)
    assert wrong.text == "0.1.0 beside omnirl-core 0.2.0: OmniRL's distributions move together"
    assert wrong.remedy == "pip install -U omnirl-core omnirl-algos omnirl-gymnasium"


def test_a_distribution_that_is_not_there():
    findings = list(installation.distributions({**ALL, "omnirl-gymnasium": installation.ABSENT}))
    (lacking,) = [item for item in findings if item.status != "ok"]
    assert told(lacking) == (
        "warning",
        "not installed: no Gymnasium environment",
        "pip install omnirl-gymnasium",
    )


def test_a_package_that_is_hidden():
    refusal = PluginError(["the first version is installed; mend it with", "  pip uninstall it"])
    finding = installation.shared(refusal)
    assert told(finding) == ("problem", "the first version is installed; mend it with", "pip uninstall it")
    assert finding.exit_code == 4
    assert installation.shared(None).status == "ok"


def test_plugins_at_a_glance():
    good, bad = PluginSource("good", "good-rl", "1"), PluginSource("bad", "bad-rl", "1")
    assert told(installation.plugins(Registry({}, loaded=[good]))) == ("ok", "good", "")
    failing = Registry({}, loaded=[good], failures=[PluginFailure(bad, "import", "ImportError: x")])
    assert told(installation.plugins(failing)) == ("problem", "failing: bad", "omnirl plugins doctor")


def test_cores_and_memory():
    assert told(machine.cores(8)) == ("ok", "8", "")
    assert machine.cores(1).status == "warning"
    assert told(machine.memory(8 * machine.GIB)) == ("ok", "8.0 GiB", "")
    assert machine.memory(machine.GIB).status == "warning"
    assert machine.memory(None).status == "ok"


def full(monkeypatch, free):
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))


def test_disk(tmp_path, monkeypatch):
    full(monkeypatch, 3 * machine.GIB)
    assert told(machine.disk(tmp_path)) == ("ok", f"3.0 GiB free in {tmp_path}", "")
    full(monkeypatch, machine.GIB // 2)
    assert machine.disk(tmp_path).status == "warning"
    assert "cannot be written to" in machine.disk(Path("/proc/nowhere")).text


def test_shared_memory(tmp_path, monkeypatch):
    full(monkeypatch, 64 * 1024**2)  # what Docker gives unless told otherwise
    finding = machine.shared_memory(tmp_path)
    assert (finding.status, finding.text) == ("warning", f"0.1 GiB free in {tmp_path}")
    assert "--shm-size" in finding.remedy
    full(monkeypatch, 8 * machine.GIB)
    assert machine.shared_memory(tmp_path).status == "ok"
    assert machine.shared_memory(tmp_path / "none").status == "ok"


def test_temporary_files(tmp_path, monkeypatch):
    short = Path(tempfile.mkdtemp(dir="/tmp"))
    assert told(machine.temporary(short)) == ("ok", str(short), "")
    short.rmdir()
    missing = machine.temporary(short)
    assert (missing.status, missing.exit_code) == ("problem", 6)
    assert "No such file" in missing.text
    long = tmp_path / ("x" * 60)
    long.mkdir()
    assert "too long for Ray's sockets" in machine.temporary(long).text


def test_loopback(monkeypatch):
    assert machine.loopback().status == "ok"

    def refuse(*args, **kwargs):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(socket, "create_server", refuse)
    finding = machine.loopback()
    assert (finding.status, finding.exit_code) == ("problem", 6)
    assert "Operation not permitted" in finding.text


def test_ray():
    assert told(machine.ray("2.60.0", "")) == ("ok", "2.60.0", "")
    finding = machine.ray("", "ModuleNotFoundError: No module named 'ray'")
    assert (finding.status, finding.exit_code) == ("problem", 6)
    assert "--local" in finding.remedy


@pytest.mark.parametrize(
    ("answer", "error", "driver", "status", "words"),
    [
        ("2.13.0+cu128 12.8 2", "", True, "ok", "with CUDA 12.8 and 2 GPUs"),
        ("2.13.0+cpu None 0", "", False, "ok", "on the CPU"),
        ("2.13.0+cpu None 0", "", True, "warning", "built without CUDA"),
        ("2.13.0+cu128 12.8 0", "", True, "warning", "finds no GPU"),
        ("", "ModuleNotFoundError: No module named 'torch'", False, "warning", "not installed"),
        ("", "OSError: libtorch.so: broken", False, "problem", "libtorch.so: broken"),
    ],
)
def test_torch(answer, error, driver, status, words):
    finding = machine.torch(answer, error, driver=driver)
    assert finding.status == status
    assert words in finding.text


def test_children_are_asked():
    assert machine._answer(machine._ask("print('noise'); print('1.2.3')")) == ("1.2.3", "")
    assert machine._answer(machine._ask("import not_there_at_all")) == (
        "",
        "ModuleNotFoundError: No module named 'not_there_at_all'",
    )
    assert machine._answer(machine._ask("import os; os._exit(7)")) == ("", "it ended with 7 and said nothing")


def test_a_child_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(machine, "_ASK_SECONDS", 0.3)
    child = machine._ask("import time; time.sleep(60)")
    assert machine._answer(child) == ("", "no answer within 0.3 s")
    assert child.returncode != 0
