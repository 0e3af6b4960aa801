"""omnirl envs check and omnirl.run.check_environment: what is found in any backend's environments."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import psutil
import pytest

import omnirl.run
from omnirl.api.errors import ConfigError
from omnirl.cli.app import run
from omnirl.doctor import other_process

FAKES = str(Path(__file__).parent / "fakes")
MODULE = "acme_watch.unsound"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(FAKES)


@pytest.fixture
def found(monkeypatch):
    """``found(id)`` -> the findings in 100 steps, but for those of another process, which the tests below ask."""
    monkeypatch.setattr(other_process, "look", lambda spec, config, seconds: iter(()))

    def check(kind, steps=100):
        report = omnirl.run.check_environment(kind, backend=MODULE, steps=steps)
        assert all("\n" not in finding.text + finding.remedy for finding in report.findings)
        assert all(finding.remedy for finding in report.findings)
        return report.findings

    return check


def test_a_sound_one_has_no_findings(found):
    assert found("sound") == ()
    report = omnirl.run.check_environment("sound", backend=MODULE, steps=101)
    facts = (report.environment, report.backend, report.steps, report.episodes)
    assert facts == ("sound", "unsound", 101, 20)
    assert report.steps_per_s > 50  # thousands, unless others keep the machine busy


@pytest.mark.parametrize(
    ("kind", "name", "severity", "text"),
    [
        ("nan", "finite", "error", "step 3: the observation is nan"),
        ("nan at the reset", "finite", "error", "step 0: the observation is nan"),
        ("inf", "finite", "error", "step 1: the reward is inf"),
        ("float64", "form", "error", "after step 2: observation is float64, not float32"),
        ("raises", "raises", "error", "step 3: RuntimeError: fell over"),
        ("no constructor", "raises", "error", "ZeroDivisionError: no room"),
        ("no spec", "raises", "error", "AttributeError: no observation_space"),
        (
            "endless",
            "endless",
            "error",
            "no episode ended in 10,100 steps: an evaluation, which plays whole ones, might never end",
        ),
        (
            "unseeded",
            "unseeded",
            "warning",
            "the same seed and actions gave something else at the first observation: runs and resumes do not repeat",
        ),
        (
            "unseeded reward",
            "unseeded",
            "warning",
            "the same seed and actions gave something else at step 4: runs and resumes do not repeat",
        ),
        ("bad picture", "render", "warning", "its picture is uint8 [4, 4], not uint8 [height, width, 3]"),
        ("no picture", "render", "warning", "it cannot be filmed: OSError: no screen"),
    ],
)
def test_what_is_wrong_is_found(found, kind, name, severity, text):
    (finding,) = found(kind)
    assert (finding.name, finding.severity, finding.text) == (name, severity, text)


def test_slow_steps_are_measured(found):
    (finding,) = found("slow", steps=20)
    assert (finding.name, finding.severity) == ("slow", "warning")
    measured = re.fullmatch(
        r"a step takes (\d+\.\d) ms, so one environment gives (\d+) steps/s", finding.text
    )
    assert measured is not None
    assert float(measured[1]) >= 4.0
    assert int(measured[2]) <= 250
    assert finding.remedy == "more samplers (runner.num_samplers)"


def test_what_the_backend_finds_replaces_ours_by_the_same_name(found, monkeypatch):
    from acme_watch import unsound

    monkeypatch.setattr(unsound, "UNSOUND", unsound.CHECKED)
    (finding,) = found("slow", steps=20)
    assert finding.text == "of the backend's own, in 20 steps"
    assert {finding.name for finding in found("unseeded")} == {"slow", "unseeded"}
    assert {finding.name for finding in found("endless")} == {"slow"}  # ends are the backend's to judge


def test_errors_come_first(found, monkeypatch):
    from acme_watch import unsound

    monkeypatch.setattr(unsound, "UNSOUND", unsound.CHECKED)
    assert [finding.severity for finding in found("inf")] == ["error", "warning"]


def test_what_only_this_process_can_build_is_found(monkeypatch):
    from acme_watch import unsound

    monkeypatch.setattr(unsound, "BUILT_HERE", [1])
    report = omnirl.run.check_environment("local", backend=MODULE, steps=20)
    (finding,) = report.errors
    assert (finding.name, finding.text) == (
        "process",
        "another process cannot build it: LookupError: only where it was registered",
    )
    assert report.warnings == ()


def test_a_configuration_that_no_worker_can_be_sent(monkeypatch):
    from acme_watch.unsound import BACKEND

    class Held:
        model_fields = ()

    monkeypatch.setattr(other_process.models, "plain", lambda config: {"id": Held()})
    (finding,) = other_process.look(BACKEND, None, 60)
    assert finding.text.startswith("its configuration cannot be sent to a worker: Object of type Held")


def test_another_process_that_hangs():
    from acme_watch.unsound import BACKEND, UnsoundConfig

    (finding,) = other_process.look(BACKEND, UnsoundConfig(id="sound"), 0.01)
    assert finding.text == "another process did not build it within 0.01 s"


@pytest.mark.parametrize(("kind", "method"), [("hangs", "step"), ("hangs at the reset", "reset")])
def test_one_that_hangs_is_ended_at_the_deadline(kind, method):
    """In a copy of this process; another one, which would hang too, is not asked."""
    began = time.monotonic()
    report = omnirl.run.check_environment(kind, backend=MODULE, timeout=1.5)
    assert time.monotonic() - began < 10
    (finding,) = report.findings
    assert (finding.name, finding.severity) == ("timeout", "error")
    pattern = rf"it was not done within 1.5 s \(--timeout\): it was in {method} \(.*unsound\.py, line \d+\)"
    assert re.fullmatch(pattern, finding.text)
    assert (report.steps, report.episodes, report.steps_per_s) == (0, 0, 0.0)
    assert [process for process in psutil.process_iter() if "1000.25" in _command(process)] == []
    assert psutil.Process().children() == []


def _command(process):
    try:
        return process.cmdline() if process.status() != psutil.STATUS_ZOMBIE else []
    except psutil.Error:
        return []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("ends", r"it ended the process that played it \(exit code 0\)"),
        (
            "crashes",
            r"it ended the process that played it \(signal SIGABRT\): it was in step \(.*unsound\.py, line \d+\)",
        ),
    ],
)
def test_one_that_ends_its_process_does_not_end_ours(kind, text):
    (finding,) = omnirl.run.check_environment(kind, backend=MODULE).findings
    assert (finding.name, finding.severity) == ("ends", "error")
    assert re.fullmatch(text, finding.text)


def test_one_that_calls_sys_exit(found):
    (finding,) = found("exits")
    assert (finding.name, finding.text) == ("raises", "SystemExit: 7")


def test_mistakes_of_the_configuration_are_told_as_ever(capsys):
    with pytest.raises(ConfigError, match="refused by its backend"):
        omnirl.run.check_environment("refused", backend=MODULE)
    with pytest.raises(ConfigError, match="steps: 0, must be at least 1"):
        omnirl.run.check_environment("sound", backend=MODULE, steps=0)
    for timeout in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match=f"timeout: {timeout:g}, must be more than 0 and at most 1e"):
            omnirl.run.check_environment("sound", backend=MODULE, timeout=timeout)
    for arguments, line in (
        (["sound", "env.sise=3"], "override env.sise: unknown key (there are: id) [backend unsound]"),
        (["sound", "runner.max_updates=3"], "override runner: only keys of env can be set here"),
        ([], "env.id: missing"),
    ):
        assert run(["envs", "check", *arguments, "--backend", MODULE]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(line), err
    assert run(["envs", "check", "--backend", "acme_watch"]) == 2
    assert "unknown environment backend 'acme_watch'" in capsys.readouterr().err
    assert run(["envs", "check", "one", "two"]) == 2
    assert "one environment at a time, not one and two" in capsys.readouterr().err


def test_the_command(monkeypatch, capsys):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([FAKES, os.environ.get("PYTHONPATH", "")]))
    check = ["envs", "check", "--backend", MODULE, "--steps", "50"]
    assert run([*check, "sound"]) == 0
    pattern = r"sound \(unsound\): 50 random steps, 10 episodes, [\d,]+ steps/s: nothing found\n"
    assert re.fullmatch(pattern, capsys.readouterr().out)

    assert run([*check, "inf"]) == 31
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"inf \(unsound\): 1 random steps, 0 episodes, 0 steps/s: 1 error", lines[0])
    assert lines[1] == "problem  finite: step 1: the reward is inf"
    assert lines[2].startswith("         -> find the division")

    assert run([*check, "no picture", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["environment"], said["status"], said["steps"]) == ("no picture", "warning", 50)
    assert [(item["subject"], item["status"]) for item in said["checks"]] == [("render", "warning")]

    assert run([*check, "hangs", "--timeout", "0.5"]) == 31
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "hangs (unsound): 0 random steps, 0 episodes, 0 steps/s: 1 error"
    assert lines[1].startswith("problem  timeout: it was not done within 0.5 s (--timeout): it was in step (")
    assert lines[2].startswith("         -> if it hangs there, mend it")


def test_what_an_environment_prints_is_not_in_the_json(monkeypatch, capfd):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([FAKES, os.environ.get("PYTHONPATH", "")]))
    assert run(["envs", "check", "--backend", MODULE, "--steps", "5", "talks", "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["steps"] == 5
    assert "said by the environment" in err
