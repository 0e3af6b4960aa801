"""Resuming with settings that cannot be, or that leave nothing to do: the run can still go on as it was."""

from __future__ import annotations

import pytest

from omnirl.cli.app import run
from omnirl.observers.csv_log import read_rows

FILE = """\
runner: {max_updates: 6, num_samplers: 1, num_envs_per_sampler: 2, num_evaluators: 0, log_interval: 0}
device: {threads: 1}
env: {module: omnirl.testing.environments, id: count, length: 10}
agent: {module: omnirl.testing.algorithm}
"""


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """The folder of a finished run of six updates."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "count.yaml").write_text(FILE)
    assert run(["train", "count.yaml", "--local", "--run-dir", "here", "--quiet"]) == 0
    capsys.readouterr()
    return tmp_path / "here"


@pytest.mark.parametrize(
    ("override", "code"),
    [("modules.memory.kind=replay", 5), ("env.id=chain5 env.length=", 5), ("modules.learner.lr=x", 2)],
)
def test_a_resume_that_is_refused_can_be_made_up_for(here, override, code, capsys):
    before = (here / "run_config.yaml").read_bytes()
    assert run(["resume", "here", "--local", "runner.max_updates=9", *override.split()]) == code
    assert "Traceback" not in capsys.readouterr().err
    assert (here / "run_config.yaml").read_bytes() == before
    assert run(["resume", "here", "--local", "runner.max_updates=9", "--quiet"]) == 0
    assert [int(row["updates"]) for row in read_rows(here / "log.csv")] == list(range(1, 10))


@pytest.mark.parametrize("target", ["6", "3"])
def test_a_run_that_has_reached_its_target_says_that_nothing_is_left(here, target, capsys):
    assert run(["resume", "here", "--local", f"runner.max_updates={target}"]) == 0
    out = capsys.readouterr().out
    assert f"nothing is left to train: 6 updates were made and the target is {target}" in out
    assert [int(row["updates"]) for row in read_rows(here / "log.csv")] == [1, 2, 3, 4, 5, 6]


def test_a_moved_run_goes_on_where_it_is(here, capsys):
    here.rename(here.with_name("there"))
    assert run(["resume", "there", "--local", "runner.max_updates=8", "--quiet"]) == 0
    assert not here.exists()
    assert [int(row["updates"]) for row in read_rows(here.with_name("there") / "log.csv")][-1] == 8


def test_a_run_goes_on_with_more_samplers_and_with_fewer(here):
    """8 steps x 2 environments per sampler: 16 steps an update, then 48, then 16 again."""
    resume = ["resume", "here", "--local", "--quiet"]
    assert run([*resume, "runner.num_samplers=3", "runner.max_updates=8"]) == 0
    assert run([*resume, "runner.num_samplers=1", "runner.max_updates=9"]) == 0
    steps = [int(row["env_steps"]) for row in read_rows(here / "log.csv")]
    assert steps == [16, 32, 48, 64, 80, 96, 96 + 48, 96 + 96, 96 + 96 + 16]


def test_a_sampler_of_another_width_is_refused_in_a_line(here, capsys):
    assert run(["resume", "here", "--local", "runner.num_envs_per_sampler=5", "runner.max_updates=9"]) == 5
    err = capsys.readouterr().err
    assert "the checkpoint's sampler has 2 environments, this one 5" in err
    assert err.count("\n") == 1


def test_what_does_not_fit_is_named_with_its_values_then_and_now(here, capsys):
    resume = ["resume", "here", "--local", "runner.max_updates=9"]
    assert run([*resume, "modules.memory.kind=replay", "modules.learner.lr=0.5"]) == 5
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "the checkpoint does not fit this configuration, which was changed since it was written: "
    )
    assert 'modules.memory.kind was "queue", is "replay"' in line
    assert "modules.learner.lr was 0.01, is 0.5" in line
    assert "resume with the values that it was written with, or train anew in another --run-dir (" in line


def test_what_fits_and_was_changed_is_told_too(here, capsys):
    assert run(["resume", "here", "--local", "runner.max_updates=7", "modules.learner.lr=0.5"]) == 0
    assert "changed since the checkpoint: modules.learner.lr was 0.01, is 0.5\n" in capsys.readouterr().out
    assert run(["resume", "here", "--local", "runner.max_updates=8"]) == 0
    assert "changed since" not in capsys.readouterr().out
