"""Observers that fail: the others are told, the run is not hurt, and after three times they are off."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import omnirl.run
from omnirl import plugins
from omnirl.api.plugin import ObserverSpec
from omnirl.cli import train as train_command
from omnirl.cli.app import run
from omnirl.observers.csv_log import CsvLog
from omnirl.plugins import PluginSource, Provided, Registry
from omnirl.runtime.dispatch import ObserverThread

FILE = """\
runner: {max_updates: 6, num_samplers: 1, num_envs_per_sampler: 2, num_evaluators: 0, log_interval: 0}
device: {threads: 1}
env: {module: omnirl.testing.environments, id: count, length: 10}
agent: {module: omnirl.testing.algorithm}
"""


class Fails:
    """Raises in every call that it takes."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.calls = 0

    def metrics(self, row: dict[str, Any]) -> None:
        self.calls += 1
        raise self.error


class Listens:
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.rows: list[int] = []

    def event(self, text: str) -> None:
        self.heard.append(text)

    def metrics(self, row: dict[str, Any]) -> None:
        self.rows.append(row["updates"])


@pytest.mark.parametrize("error", [ValueError("no such server"), SystemExit("no such server")])
def test_it_is_off_after_three_times_and_the_others_go_on(error: BaseException) -> None:
    fails, listens = Fails(error), Listens()
    thread = ObserverThread([fails, listens])  # type: ignore[list-item]
    for updates in range(5):
        thread.send("metrics", {"updates": updates})
    thread.flush()
    thread.close()
    assert fails.calls == 3
    assert listens.rows == [0, 1, 2, 3, 4]
    line = f"observer Fails failed: {type(error).__name__}: no such server"
    assert listens.heard == [line, line, f"{line}; it is off from now on"]


def test_a_slow_observer_is_spared_glances_and_nothing_else() -> None:
    """The queue would be full: whoever sends would wait for it."""
    release = threading.Event()
    seen: list[str] = []

    class Slow:
        def event(self, text: str) -> None:
            release.wait(60)
            seen.append(text)

        def progress(self, glance: Any) -> None:
            seen.append("glance")

    thread = ObserverThread([Slow()])  # type: ignore[list-item]
    thread.send("event", "first")
    for number in range(10_000):
        thread.send("progress", number)
    thread.send("event", "last")
    release.set()
    thread.close()
    assert (seen[0], seen[-1]) == ("first", "last")
    assert 0 < seen.count("glance") < 4096


def test_a_run_ends_as_it_would_have(tmp_path: Path) -> None:
    (tmp_path / "count.yaml").write_text(FILE, encoding="utf-8")
    fails = Fails(ValueError("no such server"))
    summary = omnirl.run.train(
        str(tmp_path / "count.yaml"),
        overrides=[f"runner.ckpt_dir={tmp_path / 'run'}"],
        local=True,
        observer_objects=[fails],  # type: ignore[list-item]
    )
    assert (summary.status, summary.updates, fails.calls) == ("finished", 6, 3)
    assert len((tmp_path / "run" / "log.csv").read_text().splitlines()) == 7


def test_one_that_is_there_anyway_and_named_too_watches_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "count.yaml").write_text(FILE, encoding="utf-8")
    started: list[str] = []

    def run_started(self: CsvLog, run: Any) -> None:
        started.append(run.run_dir)
        begin(self, run)

    begin = CsvLog.run_started
    monkeypatch.setattr(CsvLog, "run_started", run_started)
    settings = [f"runner.ckpt_dir={tmp_path / 'run'}"]
    omnirl.run.train(str(tmp_path / "count.yaml"), overrides=settings, local=True, observers=["csv", "csv"])
    assert started == [str(tmp_path / "run")]


def test_one_whose_name_two_plugins_provide_does_not_watch_and_the_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of the two would draw? Another name is as good as ever."""
    own = plugins.load().observers()
    other = Provided(
        ObserverSpec("curve", "acme:Curve", default=True), PluginSource("acme", "acme-curves", "2.5")
    )
    registry = Registry({"omnirl_observers": [*own, other]})
    monkeypatch.setattr(omnirl.run.plugins, "load", lambda: registry)
    (tmp_path / "count.yaml").write_text(FILE, encoding="utf-8")
    listens = Listens()
    summary = omnirl.run.train(
        str(tmp_path / "count.yaml"),
        overrides=[f"runner.ckpt_dir={tmp_path / 'run'}"],
        local=True,
        observer_objects=[listens],  # type: ignore[list-item]
    )
    assert summary.status == "finished"
    (line,) = [text for text in listens.heard if "curve" in text]
    assert line.startswith("the observer 'curve' is provided by plugin ")
    assert "(acme-curves 2.5): uninstall one, or switch one off" in line
    assert not (tmp_path / "run" / "curve.png").exists()
    assert len((tmp_path / "run" / "log.csv").read_text().splitlines()) == 7


def test_the_commands_exit_code_does_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The console itself fails: the run is made all the same."""
    from omnirl.observers.console import ConsoleObserver

    class Broken(ConsoleObserver):
        def run_started(self, run: Any) -> None:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(train_command, "build_console", lambda **options: Broken("plain"))
    (tmp_path / "count.yaml").write_text(FILE, encoding="utf-8")
    assert run(["train", str(tmp_path / "count.yaml"), "--local", "--run-dir", str(tmp_path / "run")]) == 0
    assert (tmp_path / "run" / "agent_6.pth").is_file()
    assert capsys.readouterr().err == ""
