"""Runs on the disk: status, counters, evaluations, files; what a damaged one says; and that looking leaves no trace."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from omnirl.cli.app import run as run_command
from omnirl.runs.folder import find_runs, read_run
from omnirl.runs.log import evaluation, figure, read_rows, value
from omnirl.runtime import checkpoint

HEADER = "wall_time,updates,env_steps,train_return,eval_return_mean,eval_episodes,loss"
MakeRun = Callable[..., Path]


def test_a_run_that_has_finished(tmp_path: Path, make_run: MakeRun) -> None:
    rows = ["1.5,10,100,3.5,4.0,2.0,0.5", "2.5,20,200,,5.5,2.0,0.25", "3.5,30,300,6.5,,,0.125"]
    run = read_run(make_run(tmp_path / "a", HEADER, rows, seed=7, finished=True, updates=30))
    assert (run.algorithm, run.env_id, run.seed, run.status, run.problem) == (
        "toy",
        "count",
        7,
        "finished",
        "",
    )
    assert run.counters == {"updates": 30, "env_steps": 300}
    assert run.last_return == 5.5
    assert run.evaluations == [
        {"updates": 10, "env_steps": 100, "return_mean": 4.0, "episodes": 2.0},
        {"updates": 20, "env_steps": 200, "return_mean": 5.5, "episodes": 2.0},
    ]


@pytest.mark.parametrize(
    ("finished", "status"), [(True, "finished"), (False, "unfinished"), (None, "no checkpoint")]
)
def test_the_status_is_the_checkpoints(
    tmp_path: Path, make_run: MakeRun, finished: bool | None, status: str
) -> None:
    assert read_run(make_run(tmp_path / "a", finished=finished)).status == status


def test_a_run_that_is_at_work_is_running_and_looking_disturbs_nothing(
    tmp_path: Path, make_run: MakeRun
) -> None:
    folder = make_run(tmp_path / "a", finished=True)
    before = sorted(os.listdir(folder))
    assert read_run(folder).status == "finished"
    assert sorted(os.listdir(folder)) == before
    with open(folder / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert read_run(folder).status == "running"
    assert read_run(folder).status == "finished"
    with open(folder / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody holds it any more


def test_the_counters_are_those_that_are_further(tmp_path: Path, make_run: MakeRun) -> None:
    """A log is ahead of its checkpoint while the run goes on, and behind it where rows are rare."""
    rows = ["1,40,400,,,,"]
    assert read_run(make_run(tmp_path / "a", HEADER, rows, finished=False, updates=30)).counters == {
        "updates": 40,
        "env_steps": 400,
    }
    assert read_run(make_run(tmp_path / "b", HEADER, rows, finished=False, updates=50)).counters == {
        "updates": 50,
        "env_steps": 500,
    }
    assert read_run(make_run(tmp_path / "c")).counters == {"updates": 0, "env_steps": 0}


def test_a_damaged_checkpoint_falls_back_to_the_previous_or_is_named(
    tmp_path: Path, make_run: MakeRun
) -> None:
    folder = make_run(tmp_path / "a", finished=False, updates=3)
    checkpoint.write(folder / checkpoint.CURRENT, {"finished": True, "counters": {"updates": 5}}, {})
    (folder / checkpoint.CURRENT).write_bytes(b"not a zip")
    run = read_run(folder)
    assert (run.status, run.counters["updates"]) == ("unfinished", 3)
    (folder / checkpoint.PREVIOUS).unlink()
    run = read_run(folder)
    assert run.status == "damaged"
    assert run.problem.startswith(str(folder / checkpoint.CURRENT))


def test_a_damaged_configuration_is_named_and_hides_no_other_run(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path / "a")
    make_run(tmp_path / "b")
    (folder / "run_config.yaml").write_text("a: [1\n")
    runs = {run.path.name: run for run in find_runs(tmp_path)}
    assert set(runs) == {"a", "b"}
    assert runs["a"].status == "damaged"
    assert "run_config.yaml" in runs["a"].problem
    assert (runs["a"].algorithm, runs["a"].env_id, runs["a"].seed) == ("?", "?", 0)


@pytest.mark.parametrize(
    "text",
    [
        "runner: []\nseed: x\nenv: 3\nagent: [ppo]\n",
        "runner: {max_updates: many, stop_return: [1], log_name: [1]}\n",
        "{}\n",
    ],
)
def test_a_foreign_configuration_breaks_nothing(
    tmp_path: Path, make_run: MakeRun, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_run(tmp_path / "a", finished=True, updates=3)
    (folder / "run_config.yaml").write_text(text)
    checkpoint.write(folder / checkpoint.CURRENT, {"finished": True, "counters": "none"}, {})
    assert run_command(["runs", "list", str(tmp_path)]) == 0
    assert run_command(["runs", "show", str(folder)]) == 0
    assert run_command(["runs", "show", str(folder), "--json"]) == 0
    assert run_command(["runs", "plot", str(folder)]) == 3
    assert (
        capsys.readouterr().err
        == f"{folder}: nothing to plot: {read_run(folder).log_path.name} has no row yet\n"
    )
    assert (read_run(folder).status, read_run(folder).counters["updates"]) == ("finished", 0)


def test_runs_are_found_below_a_folder_the_last_written_first(tmp_path: Path, make_run: MakeRun) -> None:
    for number, name in enumerate(("old", "deep/new", "deep/middle")):
        folder = make_run(tmp_path / name)
        when = {0: 1000.0, 1: 3000.0, 2: 2000.0}[number]
        os.utime(folder / "run_config.yaml", (when, when))
    make_run(tmp_path / "old" / "replay" / "inside")  # a run holds no runs
    (tmp_path / "empty").mkdir()
    assert [str(run.path.relative_to(tmp_path)) for run in find_runs(tmp_path)] == [
        "deep/new",
        "deep/middle",
        "old",
    ]
    assert find_runs(tmp_path / "none") == []


def test_files_with_their_sizes(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path / "a")
    (folder / "agent_3.pth").write_bytes(b"x" * 1234)
    (folder / "replay").mkdir()
    (folder / "replay" / "one.npy").write_bytes(b"x" * 10)
    (folder / "replay" / "two.npy").write_bytes(b"x" * 20)
    (folder / ".lock").write_text("")
    sizes = read_run(folder).sizes()
    assert sizes == {
        "agent_3.pth": 1234,
        "replay/": 30,
        "run_config.yaml": (folder / "run_config.yaml").stat().st_size,
    }


def test_the_best_agent(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path / "a")
    assert read_run(folder).best is None
    (folder / "best.json").write_text(json.dumps({"updates": 40, "return_mean": 9.5}))
    assert read_run(folder).best == (40, 9.5)
    (folder / "best.json").write_text("{")
    assert read_run(folder).best is None


def test_the_seed_of_a_run_with_one_per_role_is_the_learners(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path / "a")
    text = (folder / "run_config.yaml").read_text()
    (folder / "run_config.yaml").write_text(
        text.replace("seed: 0", "seed: {learner: 4, sampler: 5, evaluator: 6}")
    )
    assert read_run(folder).seed == 4


def test_the_log_has_the_name_that_the_configuration_gives(tmp_path: Path, make_run: MakeRun) -> None:
    folder = make_run(tmp_path / "a", runner={"log_name": "mine"})
    (folder / "mine.csv").write_text(f"{HEADER}\n1,2,3,,,,\n")
    assert read_run(folder).counters == {"updates": 2, "env_steps": 3}


# ------------------------------------------------------------------ rows and figures


def test_torn_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('updates,loss\n1,0.5\n\0\0\n2\n"3,1\nx,1\n1,9\n\n4,0.25\n"5","a,b"\n6,0.1')
    assert [(row["updates"], row["loss"]) for row in read_rows(path)] == [
        ("1", "0.5"),
        ("4", "0.25"),
        ("5", "a,b"),
    ]
    assert list(read_rows(tmp_path / "none.csv")) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [("0.5", 0.5), ("7", 7.0), ("", None), (None, None), ("nan", None), ("-inf", None), ("x", None)],
)
def test_a_figure_is_finite_or_none(text: str | None, number: float | None) -> None:
    assert figure(text) == number


def test_whole_numbers_stay_whole() -> None:
    assert (value("7"), type(value("7"))) == (7, int)
    assert (value("7.0"), type(value("7.0"))) == (7.0, float)
    assert value("") is None


def test_a_row_without_an_evaluation_has_none() -> None:
    assert evaluation({"updates": "1", "eval_wins": "", "eval_return_mean": ""}) == {}
    assert evaluation({"updates": "1", "eval_wins": "3", "eval_return_mean": ""}) == {
        "wins": 3,
        "return_mean": None,
    }
