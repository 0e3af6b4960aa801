"""The file of what Ray says: what is taken in, from whom, how much; and that standard error is given back."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from omnirl.api.errors import DiskError
from omnirl.runtime import ray_log
from omnirl.runtime.ray_log import RayLog

WORKER = "worker-0c79-ffffffff-4711"


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_AUTH_TOKEN_PATH", "RAY_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


def followed(tmp_path: Path, logs: Path, *, whole: bool = True) -> RayLog:
    log = RayLog(tmp_path)
    log.follow(logs, "01000000", whole=whole)
    return log


def said(tmp_path: Path) -> list[str]:
    """The lines without their times; the title is left out."""
    lines = (tmp_path / "ray.log").read_text("utf-8").splitlines()
    return [line[9:] for line in lines if not line.startswith("---")]


def test_lines_of_this_job_are_taken_with_their_author(tmp_path: Path, logs: Path) -> None:
    log = followed(tmp_path, logs)
    path = logs / f"{WORKER}.out"
    path.write_text("before any job\n:job_id:01000000\n:actor_name:sampler 0\nhello\nwor", "utf-8")
    log.gather()
    assert said(tmp_path) == ["sampler 0 (pid 4711): hello"]
    with open(path, "a", encoding="utf-8") as stream:
        stream.write("ld\n\nno end")
    log.gather()
    assert said(tmp_path)[1:] == ["sampler 0 (pid 4711): world"]
    log.close()
    assert said(tmp_path)[2:] == ["sampler 0 (pid 4711): no end"]


def test_what_another_job_prints_is_none_of_ours(tmp_path: Path, logs: Path) -> None:
    log = followed(tmp_path, logs, whole=False)
    (logs / f"{WORKER}.err").write_text(":job_id:02000000\nprivate\n", "utf-8")
    (logs / "raylet.err").write_text("of all jobs\n", "utf-8")
    log.close()
    assert not (tmp_path / "ray.log").exists()


def test_of_rays_own_processes_errors_count(tmp_path: Path, logs: Path) -> None:
    (logs / "raylet.out").write_text(
        "[2026-01-01 10:00:00,000 I 7 8] (raylet) main.cc:1: fine\n"
        "[2026-01-01 10:00:00,000 E 7 8] (raylet) main.cc:2: not fine\n"
        "  its stack\n"
        "[2026-01-01 10:00:00,000 W 7 8] (raylet) main.cc:3: so so\n",
        "utf-8",
    )
    (logs / "gcs_server.err").write_text("anything\n", "utf-8")
    followed(tmp_path, logs).close()
    assert sorted(said(tmp_path)) == [
        "gcs: anything",
        "raylet:   its stack",
        "raylet: [2026-01-01 10:00:00,000 E 7 8] (raylet) main.cc:2: not fine",
    ]


def test_a_flood_is_cut_down_to_its_end(tmp_path: Path, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_log, "_MOST_AT_ONCE", 20)
    path = logs / f"{WORKER}.out"
    path.write_text(":job_id:01000000\n", "utf-8")
    log = followed(tmp_path, logs)
    log.gather()
    with open(path, "a", encoding="utf-8") as stream:
        stream.write("".join(f"line {number:04}\n" for number in range(100)))
    log.close()
    assert said(tmp_path) == [
        "worker (pid 4711): (980 bytes left out)",
        "worker (pid 4711): line 0098",
        "worker (pid 4711): line 0099",
    ]


def test_a_large_file_begins_anew_and_the_one_before_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_log, "LARGEST_FILE", 200)
    log = RayLog(tmp_path)
    for number in range(30):
        log.say("me", f"line {number:02}" + 20 * ".")
    log.close()
    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("ray*.log")}
    assert set(sizes) == {"ray.log", "ray.prev.log"}
    assert max(sizes.values()) < 300
    everything = "".join((tmp_path / name).read_text("utf-8") for name in ("ray.prev.log", "ray.log"))
    assert "line 29" in everything


def test_rays_token_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("c0ffee" * 8 + "\n", "utf-8")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setenv("RAY_AUTH_TOKEN", "beef" * 16)
    log = RayLog(tmp_path)
    log.say("me", f"{'c0ffee' * 8} and {'beef' * 16}")
    log.close()
    assert said(tmp_path) == ["me: *** and ***"]


CHILD = """
import logging, os, sys
from pathlib import Path
from omnirl.runtime.ray_log import ray_log
with ray_log(Path(sys.argv[1])):
    os.write(2, b"from C++\\n")
    print("ours", file=sys.stderr)
    logging.getLogger("ray").error("a record")
os.write(2, b"later\\n")
print("and ours", file=sys.stderr)
"""


def test_standard_error_leads_to_the_file_for_others_only(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == ["ours", "later", "and ours"]
    text = (tmp_path / "ray.log").read_text("utf-8")
    assert text.startswith("from C++\n")
    assert text.endswith(" ray: a record\n")


def test_a_closed_standard_error_is_no_reason_to_fail(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -c '{CHILD.replace(chr(39), chr(34))}' {tmp_path} 2>&-"
    code = command.replace('os.write(2, b"later\\n")', "").replace('os.write(2, b"from C++\\n")', "")
    done = subprocess.run(["sh", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "ray.log").read_text("utf-8").endswith(" ray: a record\n")


def test_a_full_disk_does_not_harm_the_run(tmp_path: Path) -> None:
    log = RayLog(tmp_path)
    log._stream.close()
    log._stream = open("/dev/full", "ab", buffering=0)  # noqa: SIM115
    log.say("me", "nobody will read this")
    log.close()


def test_logger_and_descriptor_are_as_before(tmp_path: Path) -> None:
    logger = logging.getLogger("ray")
    before = (logger.handlers, logger.propagate, os.fstat(2).st_ino, sys.stderr)
    with ray_log.ray_log(tmp_path):
        assert os.fstat(2).st_ino == (tmp_path / "ray.log").stat().st_ino
    assert (logger.handlers, logger.propagate, os.fstat(2).st_ino, sys.stderr) == before
    assert not (tmp_path / "ray.log").exists()


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "ray.log").mkdir()
    with pytest.raises(DiskError, match=r"ray\.log: cannot be written: Is a directory"):
        RayLog(tmp_path)
