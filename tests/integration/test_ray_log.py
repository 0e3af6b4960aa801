"""``ray.log``: what Ray and the workers say is there, in order, attributed; and not on the terminal."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.ray
TALKATIVE = '''
"""Counts, and talks about it; the step that CRASH_AT names ends the process as a bug in native code does."""
import dataclasses, os, sys, warnings
from omnirl.api import EnvBackend
from omnirl.testing import environments
from omnirl.testing.inline import InlineEnvironment


class Talkative(InlineEnvironment):
    steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps == 3:
            print("said on standard output")
            warnings.warn("a warning of the environment", stacklevel=1)
            print("the token is", os.environ.get("RAY_AUTH_TOKEN"))
        if self.steps == int(os.environ.get("CRASH_AT", "0")) and not os.path.exists("crashed"):
            open("crashed", "w").close()
            os.write(2, b"native code: assertion failed")
            os.abort()
        return super().step(action)


def build_env(config, context):
    return Talkative([environments.build_single(config) for _ in range(context.num_envs)])


PROPS = EnvBackend(get_env_spec=environments.get_env_spec, build_env=build_env)
BACKEND = dataclasses.replace(environments.BACKEND, name="talkative", backend="acme.talkative:PROPS")
'''
TRAIN = [
    *("train", "--run-dir", "run", "agent.module=omnirl.testing.algorithm", "runner.log_interval=0"),
    *("env.id=count", "env.length=20", "runner.num_envs_per_sampler=2", "runner.num_evaluators=0"),
]


@pytest.fixture
def talkative(tmp_path: Path) -> dict[str, str]:
    """The variables with which ``env.module=acme.talkative`` is found."""
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "talkative.py").write_text(TALKATIVE, encoding="utf-8")
    return {"PYTHONPATH": str(tmp_path), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "f00d" * 16}


def test_what_workers_print_is_in_the_file_and_not_on_the_terminal(
    start: Callable[..., Any], tmp_path: Path, talkative: dict[str, str]
) -> None:
    run = start(*TRAIN, "env.module=acme.talkative", "runner.max_updates=4", variables=talkative)
    assert run.wait(90) == 0, run.output
    log = (tmp_path / "run" / "ray.log").read_text("utf-8")
    (said,) = [line for line in log.splitlines() if "said on standard output" in line]
    assert " sampler 0 (pid " in said
    assert "UserWarning: a warning of the environment" in log
    assert "the token is ***" in log
    for text in ("said on", "a warning", "the token"):
        assert text not in run.output
    again = start("resume", "run", "runner.max_updates=8", variables=talkative)
    assert again.wait(90) == 0, again.output
    later = (tmp_path / "run" / "ray.log").read_text("utf-8")
    assert later.startswith(log)
    assert later.count("said on standard output") == 2


def test_a_crash_in_native_code_is_in_the_file_that_the_message_names(
    start: Callable[..., Any], tmp_path: Path, talkative: dict[str, str]
) -> None:
    variables = {**talkative, "CRASH_AT": "50"}
    run = start(*TRAIN, "env.module=acme.talkative", "runner.max_updates=20", variables=variables)
    assert run.wait(90) == 0, run.output
    told = [line for line in run.output.splitlines() if "sampler 0 was restarted" in line]
    assert len(told) == 1
    assert told[0].endswith("(run/ray.log has more)")
    log = (tmp_path / "run" / "ray.log").read_text("utf-8")
    assert "native code: assertion failed" in log
    assert "raylet: A worker died" in log
    assert "raylet" not in run.output
    # Nothing but OmniRL's own lines, of which a slow run has one of progress every ten seconds.
    assert len([line for line in run.output.splitlines() if "env_steps=" not in line]) < 12


OF_A_WORKER = re.compile(r"\d\d:\d\d:\d\d (sampler|evaluator|learner|worker)[^:]*: (.*)")
RAYS_OWN = re.compile(r"\[\d{4}-[^]]* [DIWECF] \d+ \d+\]|\d{4}-\S+ \S+\s+[A-Z]+ \w+\.py:\d+ -- ")


def test_nothing_is_said_of_the_workers_of_a_healthy_run(start: Callable[..., Any], tmp_path: Path) -> None:
    """Ray itself may have something to say of the machine, as of a disk that is nearly full or an agent of its own
    that did not come up in time; where nobody has, the file is not there."""
    run = start(*TRAIN, "env.module=omnirl.testing.environments", "runner.max_updates=4")
    assert run.wait(90) == 0, run.output
    path = tmp_path / "run" / "ray.log"
    log = path.read_text("utf-8") if path.exists() else "of Ray"
    assert log.strip(), "an empty file was left"
    said = [match[2] for match in map(OF_A_WORKER.match, log.splitlines()) if match is not None]
    assert [text for text in said if not RAYS_OWN.match(text)] == [], log
    for text in ("A worker died", "Traceback", "restarted"):
        assert text not in log, log
    assert "ray.log" not in run.output


@pytest.mark.parametrize("victim", ["raylet", "gcs_server"])
def test_the_death_of_ray_itself_ends_the_run(
    start: Callable[..., Any], tmp_path: Path, read: Any, victim: str
) -> None:
    run = start(*TRAIN, "env.module=omnirl.testing.environments", "runner.max_updates=100000")
    run.until(lambda: len(read.rows(tmp_path / "run")) > 20)
    (process,) = [p for p in run.processes() if p.name() == victim]
    process.send_signal(signal.SIGKILL)
    assert run.wait(30) == 21, run.output
    assert f"Ray's {victim} ended during the run" in run.output
    assert "omnirl resume run" in run.output
    assert run.left_over() == []
