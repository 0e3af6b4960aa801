"""omnirl train and resume: what each option does, and how a run's end becomes an exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import omnirl.run
from omnirl.api.errors import DiskError
from omnirl.api.observer import RunSummary
from omnirl.cli.app import run
from omnirl.config.files import merge
from omnirl.config.overrides import parse

SUMMARY = RunSummary("finished", "runs/x", 100, 800, 800, 2.0, 400.0, 50.0, {"return_mean": 7.0}, True)


class Recorder:
    """Stands for omnirl.run: takes what the real functions take and remembers it."""

    def __init__(self, stands_for) -> None:
        self.sources: tuple = ()
        self.overrides: list[str] = []
        self.trained: dict = {}
        self.summary = SUMMARY
        self.error: BaseException | None = None
        stands_for(omnirl.run, self, "configure", "train")

    def configure(self, *sources, overrides=()):
        self.sources, self.overrides = sources, list(overrides)
        return "the configuration"

    def train(self, config, *, local=False, resume="auto", observer_objects=()):
        self.trained = {"config": config, "local": local, "resume": resume, "observers": observer_objects}
        for observer in observer_objects:
            observer.run_finished(self.summary)
        if self.error is not None:
            raise self.error
        return self.summary

    @property
    def settings(self) -> dict:
        """The settings that options and overrides make, merged as omnirl.run merges them."""
        trees = [source for source in self.sources if not isinstance(source, str | Path)]
        return merge(*trees, parse(self.overrides)).data

    @property
    def named(self) -> list:
        return [source for source in self.sources if isinstance(source, str | Path)]


@pytest.fixture
def recorder(stands_for):
    return Recorder(stands_for)


def test_a_preset_trains_with_the_defaults(recorder, capsys):
    assert run(["train", "cartpole-ppo"]) == 0
    assert recorder.named == ["cartpole-ppo"]
    assert recorder.settings == {}
    assert recorder.trained["config"] == "the configuration"
    assert recorder.trained["local"] is False
    assert recorder.trained["resume"] == "auto"
    out, err = capsys.readouterr()
    assert "result:   return 7.0" in out
    assert "test:     omnirl test runs/x" in out
    assert err == ""


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--algo", "dqn"], {"agent": {"module": "dqn"}}),
        (["--env", "Acrobot-v1"], {"env": {"module": "gymnasium", "id": "Acrobot-v1"}}),
        (["--run-dir", "007"], {"runner": {"ckpt_dir": "007"}}),
        (["--seed", "3"], {"seed": 3}),
        (["--updates", "20"], {"runner": {"max_updates": 20}}),
        (["--steps", "1000"], {"runner": {"max_steps": 1000}}),
        (["--samplers", "4"], {"runner": {"num_samplers": 4}}),
        (["--samplers", "auto"], {"runner": {"num_samplers": "auto"}}),
        (["--device", "cuda"], {"device": {"learner": "cuda"}}),
        (["--address", "10.0.0.1:6379"], {"ray": {"address": "10.0.0.1:6379"}}),
        (["--resume", "auto"], {"runner": {"load_checkpoint": True}}),
        (["modules.learner.lr=3e-4"], {"modules": {"learner": {"lr": 3e-4}}}),
        (["--seed", "3", "seed=4"], {"seed": 4}),
        (["--updates", "20", "--samplers", "2"], {"runner": {"max_updates": 20, "num_samplers": 2}}),
    ],
)
def test_options_become_settings(recorder, options, settings):
    assert run(["train", "cartpole-ppo", *options]) == 0
    assert recorder.settings == settings


def test_an_option_is_the_origin_of_its_setting(recorder):
    run(["train", "cartpole-ppo", "--seed", "3", "--updates", "20"])
    origins = recorder.sources[-1].origins
    assert str(origins["seed",]) == "--seed"
    assert str(origins["runner", "max_updates"]) == "--updates"


def test_a_file_that_names_another_backend_wins_over_the_usual_one(recorder, tmp_path):
    run(["train", "cartpole-ppo", "--env", "X"])
    assert recorder.sources[0].data == {"env": {"module": "gymnasium"}}
    assert recorder.sources[1] == "cartpole-ppo"


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        (["--local"], "local", True),
        (["--resume", "never"], "resume", "never"),
        (["--resume", "must"], "resume", "must"),
    ],
)
def test_options_of_the_run_itself(recorder, options, key, value):
    assert run(["train", "cartpole-ppo", *options]) == 0
    assert recorder.trained[key] == value
    assert recorder.settings == {}


def test_files_and_settings_in_any_order(recorder):
    run(["train", "a.yaml", "seed=1", "runs/seed=2/b.yaml", "env.kwargs.some-name=1"])
    assert recorder.named == ["a.yaml", "runs/seed=2/b.yaml"]
    assert recorder.overrides == ["seed=1", "env.kwargs.some-name=1"]


def test_one_file_of_the_two_file_form(recorder):
    run(["train", "base.yaml", "--agent-config", "ppo.yaml"])
    assert recorder.named == ["base.yaml", Path("ppo.yaml")]


def test_the_two_file_form(recorder, tmp_path):
    (tmp_path / "train.yaml").write_text("runner: {max_updates: 5}\nagent: {module: ppo}\n")
    (tmp_path / "ppo.yaml").write_text("modules: {learner: {lr: 1e-3}}\n")
    arguments = [f"--runner-config={tmp_path}/train.yaml", f"--agent-config={tmp_path}/ppo.yaml"]
    assert run(["train", *arguments]) == 0
    assert recorder.settings == {
        "runner": {"max_updates": 5},
        "agent": {"module": "ppo"},
        "modules": {"learner": {"lr": 1e-3}},
    }


def test_a_swapped_pair_of_files_is_refused(recorder, tmp_path, capsys):
    (tmp_path / "train.yaml").write_text("runner: {max_updates: 5}\n")
    (tmp_path / "ppo.yaml").write_text("modules: {learner: {lr: 1e-3}}\n")
    arguments = [f"--agent-config={tmp_path}/train.yaml", f"--runner-config={tmp_path}/ppo.yaml"]
    assert run(["train", *arguments]) == 2
    assert "swapped" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--samplers", "0"], "--samplers takes a number from 1 or auto, not '0'"),
        (["--samplers", "many"], "not 'many'"),
        (["--updates", "0"], "--updates"),
        (["--steps", "-5"], "--steps"),
        (["--seed", "-1"], "--seed"),
        (["--device", "tpu"], "--device"),
        (["--resume", "maybe"], "--resume"),
        (["--local", "--address", "auto"], "--local runs without Ray"),
        (["--json", "--quiet"], "exclude each other"),
        (["--seeds", "0..4"], "No such option"),
        (["--threads", "2"], "No such option"),
        (["--log", "csv"], "No such option"),
    ],
)
def test_a_wrong_option_is_a_usage_error(recorder, options, text, capsys):
    assert run(["train", "cartpole-ppo", *options]) == 2
    out, err = capsys.readouterr()
    assert text in err
    assert out == ""
    assert recorder.trained == {}


def test_json_lines_and_nothing_else_on_standard_output(recorder, capsys):
    assert run(["train", "cartpole-ppo", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["finished"]


def test_quiet_prints_nothing(recorder, capsys):
    assert run(["train", "cartpole-ppo", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_no_progress_keeps_the_result(recorder, capsys):
    assert run(["train", "cartpole-ppo", "--no-progress"]) == 0
    assert "result:" in capsys.readouterr().out
    assert recorder.trained["observers"][0]._show_progress is False


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [("interrupted", "SIGINT", 130), ("interrupted", "SIGTERM", 143), ("failed", "", 1), ("finished", "", 0)],
)
def test_the_end_of_a_run_is_the_exit_code(recorder, status, message, code):
    recorder.summary = replace(SUMMARY, status=status, message=message)
    assert run(["train", "cartpole-ppo"]) == code


def test_an_expected_failure_is_told_in_its_lines(recorder, capsys):
    recorder.error = DiskError(["runs/x/checkpoint.ckpt cannot be written: No space left on device"])
    assert run(["train", "cartpole-ppo", "--quiet"]) == 23
    out, err = capsys.readouterr()
    assert err == "runs/x/checkpoint.ckpt cannot be written: No space left on device\n"
    assert out == ""


def test_the_terminal_is_given_back_after_a_failure(recorder, monkeypatch):
    from omnirl.observers.console import ConsoleObserver

    closed = []
    monkeypatch.setattr(ConsoleObserver, "close", lambda self: closed.append(self))
    recorder.error = RuntimeError("no result was told")
    run(["train", "cartpole-ppo", "--quiet"])
    assert recorder.trained["observers"][0] in closed


@pytest.fixture
def saved_run(tmp_path, monkeypatch):
    """A run's folder, as runs/first below the working directory."""
    folder = tmp_path / "runs" / "first"
    folder.mkdir(parents=True)
    (folder / "run_config.yaml").write_text("runner: {max_updates: 5}\n")
    monkeypatch.chdir(tmp_path)
    return Path("runs/first")


@pytest.mark.parametrize("name", ["runs/first", "first"])
def test_resume_reads_the_runs_own_configuration(recorder, saved_run, name):
    assert run(["resume", name, "runner.max_updates=200", "--local"]) == 0
    assert recorder.named == [saved_run / "run_config.yaml"]
    assert recorder.settings == {"runner": {"ckpt_dir": "runs/first", "max_updates": 200}}
    assert recorder.trained["resume"] == "must"
    assert recorder.trained["local"] is True


def test_resuming_what_is_not_there_ends_with_3(recorder, saved_run, capsys):
    assert run(["resume", "runs/frist"]) == 3
    assert capsys.readouterr().err == "runs/frist: no such run (did you mean 'runs/first'?)\n"
    assert run(["resume", "frist"]) == 3
    assert "did you mean 'runs/first'?" in capsys.readouterr().err
    assert run(["resume", "runs"]) == 3
    assert "not the folder of a run" in capsys.readouterr().err
    assert recorder.trained == {}


def test_resume_takes_no_further_source(recorder, saved_run, capsys):
    assert run(["resume", "first", "cartpole-ppo"]) == 2
    assert "'cartpole-ppo' is not of the form KEY=VALUE" in capsys.readouterr().err


def test_resume_needs_a_run(recorder, capsys):
    assert run(["resume"]) == 2
    assert "RUN" in capsys.readouterr().err
