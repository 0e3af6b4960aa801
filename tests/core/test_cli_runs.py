"""omnirl runs: list, show and plot, in words and as JSON; what is not there; and that nothing heavy is imported."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnirl.cli.app import run
from omnirl.cli.runs_text import age, size
from omnirl.runs import picture
from omnirl.runs.commands import run_commands

HEADER = (
    "wall_time,updates,env_steps,steps_per_s,train_return,eval_return_mean,eval_return_std,eval_episodes,loss"
)
ROWS = ["60,10,100,5,1.0,2.5,0.5,4.0,9", "3720,20,200,5,3.0,,,,8.123456"]
INSTALLED = importlib.util.find_spec("matplotlib") is not None
MakeRun = Callable[..., Path]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_run: MakeRun) -> Path:
    """A working folder with two runs below runs/."""
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "runs" / "first", HEADER, ROWS, seed=4, finished=True, updates=20, lr=0.1, clip=None)
    make_run(tmp_path / "runs" / "second", seed=5)
    for name, when in (("first", 100.0), ("second", 3600.0)):
        for file in (tmp_path / "runs" / name).iterdir():
            os.utime(file, (time.time() - when,) * 2)
    return tmp_path


# ------------------------------------------------------------------ list


def test_the_list_has_a_line_per_run(place: Path, output: Callable[..., str]) -> None:
    header, first, second = output(["runs", "list"]).splitlines()
    assert " ".join(header.split()) == "run algorithm env seed status updates steps return age"
    assert first.split() == ["first", "toy", "count", "4", "finished", "20", "200", "2.5", "100", "s"]
    assert second.split() == ["second", "toy", "count", "5", "no", "checkpoint", "0", "0", "60", "min"]


def test_the_list_as_json_has_the_same_facts(place: Path, output: Callable[..., str]) -> None:
    first, second = json.loads(output(["runs", "list", "--json"]))
    age_s = first.pop("age_s")
    assert 100 <= age_s < 130
    modified = first.pop("modified")
    assert modified.endswith("+00:00")
    assert first == {
        "run": "first",
        "path": "runs/first",
        "algorithm": "toy",
        "env": "count",
        "seed": 4,
        "status": "finished",
        "updates": 20,
        "env_steps": 200,
        "last_return": 2.5,
        "best": None,
        "problem": "",
    }
    assert (second["status"], second["last_return"]) == ("no checkpoint", None)


def test_another_folder_is_listed(place: Path, make_run: MakeRun, output: Callable[..., str]) -> None:
    make_run(place / "elsewhere" / "deep" / "third")
    assert output(["runs", "list", "elsewhere"]).splitlines()[1].startswith("deep/third  toy")
    assert output(["runs", "list", "runs/first"]).splitlines()[1].startswith("runs/first  toy")


def test_where_there_is_no_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    output: Callable[..., str],
    refusal: Callable[..., list[str]],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert output(["runs", "list"]) == "there is no run below runs\n"
    assert json.loads(output(["runs", "list", "--json"])) == []
    assert refusal(["runs", "list", "none"], 3) == ["none: no such folder"]


# ------------------------------------------------------------------ show


def test_a_run_is_shown(place: Path, output: Callable[..., str]) -> None:
    lines = output(["runs", "show", "first"]).splitlines()
    assert lines[0] == "runs/first: TOY count seed 4"
    assert "status:           finished, last written 100 s ago" in lines
    assert "updates:          20 of 100" in lines
    assert "env steps:        200" in lines
    assert "wall time:        1:02:00" in lines
    assert "env:              module testing, id count" in lines
    assert "modules.learner:  lr 0.1" in lines  # what is unset is left out
    assert "  update 10  100 steps  return 2.5 ± 0.5 over 4 episodes" in lines
    table = lines[lines.index("last rows") + 1 :]
    assert table[0].split() == [
        "wall_time",
        "updates",
        "env_steps",
        "steps_per_s",
        "train_return",
        "eval_return_mean",
        "loss",
    ]
    assert table[2].split() == ["3720", "20", "200", "5", "3", "8.1235"]
    assert any(line.split()[0] == "checkpoint.ckpt" for line in lines if line.startswith("  "))
    assert lines[-3:] == [
        "resume:  omnirl resume runs/first runner.max_updates=40",
        "test:    omnirl test runs/first",
        "plot:    omnirl runs plot runs/first",
    ]


def test_a_run_as_json_has_the_same_facts(place: Path, output: Callable[..., str]) -> None:
    data = json.loads(output(["runs", "show", "runs/first", "--json"]))
    assert (data["status"], data["updates"], data["env_steps"], data["wall_time"]) == (
        "finished",
        20,
        200,
        3720.0,
    )
    assert data["config"]["modules"]["learner"] == {"lr": 0.1, "clip": None}
    assert data["evaluations"] == [
        {"updates": 10, "env_steps": 100, "return_mean": 2.5, "return_std": 0.5, "episodes": 4.0}
    ]
    assert data["last_rows"][1]["loss"] == 8.123456
    assert data["last_rows"][1]["eval_return_mean"] is None
    assert data["files"]["checkpoint.ckpt"] == (place / "runs/first/checkpoint.ckpt").stat().st_size
    assert data["commands"]["resume"] == "omnirl resume runs/first runner.max_updates=40"


def test_a_run_that_has_only_begun_is_shown(place: Path, output: Callable[..., str]) -> None:
    lines = output(["runs", "show", "second"]).splitlines()
    assert "status:     no checkpoint, last written 60 min ago" in lines
    assert not {"evaluations", "last rows"} & set(lines)
    assert lines[-3] == "resume:  omnirl resume runs/second"


def test_the_best_agent_and_many_evaluations(
    place: Path, make_run: MakeRun, output: Callable[..., str]
) -> None:
    rows = [f"1,{n},{n * 10},5,1.0,{n}.0,0.5,4.0,9" for n in range(1, 15)]
    folder = make_run(place / "runs" / "third", HEADER, rows)
    (folder / "best.json").write_text('{"updates": 14, "return_mean": 14.0}')
    lines = output(["runs", "show", "third"]).splitlines()
    assert "best:       agent_14, return 14" in lines
    start = lines.index("evaluations")
    assert lines[start + 1] == "  4 earlier"
    assert lines[start + 2].startswith("  update 5 ")
    assert lines[start + 11].startswith("  update 14 ")


def test_a_damaged_run_is_shown_with_its_problem(place: Path, output: Callable[..., str]) -> None:
    (place / "runs/first/checkpoint.ckpt").write_bytes(b"x")
    lines = output(["runs", "show", "first"]).splitlines()
    assert any(line.startswith("problem:") and "checkpoint.ckpt" in line for line in lines)


@pytest.mark.parametrize("command", ["show", "plot"])
def test_a_run_that_is_not_there_ends_with_3_and_the_nearest(
    place: Path, command: str, refusal: Callable[..., list[str]]
) -> None:
    (line,) = refusal(["runs", command, "runs/frist"], 3)
    assert line == "runs/frist: no such run (did you mean 'runs/first'?)"


# ------------------------------------------------------------------ plot


@pytest.mark.skipif(not INSTALLED, reason="matplotlib is an extra")
def test_one_runs_picture_goes_into_its_folder(place: Path, output: Callable[..., str]) -> None:
    assert output(["runs", "plot", "first"]) == "runs/first/plot.png\n"
    assert (place / "runs/first/plot.png").read_bytes().startswith(b"\x89PNG")
    assert output(["runs", "plot", "first", "-o", "a.svg", "--x", "time", "--metric", "loss"]) == ("a.svg\n")
    assert (place / "a.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.skipif(not INSTALLED, reason="matplotlib is an extra")
def test_several_runs_as_json(place: Path, make_run: MakeRun, output: Callable[..., str]) -> None:
    other = [row.replace("3.0", "5.0") for row in ROWS]
    make_run(place / "runs" / "third", HEADER, other, seed=6, lr=0.1, clip=None)
    arguments = ["runs", "plot", "first", "runs/third", "runs/first", "--json", "--x", "updates"]
    data = json.loads(output(arguments))
    assert (data["file"], data["x"]) == ("plot.png", "updates")
    (curve,) = data["curves"]
    assert curve["runs"] == ["runs/first", "runs/third"]  # one named twice is drawn once
    assert curve == {
        **curve,
        "label": "TOY (2 seeds)",
        "metric": "train_return",
        "seeds": [4, 6],
        "x": [10.0, 20.0],
        "mean": [1.0, 4.0],
        "low": [1.0, 3.0],
        "high": [1.0, 5.0],
    }
    assert (place / "plot.png").exists()


@pytest.mark.skipif(not INSTALLED, reason="matplotlib is an extra")
def test_runs_that_cannot_be_drawn_are_told_beside_the_picture(place: Path, capsys: Capture) -> None:
    assert run(["runs", "plot", "first", "second"]) == 0
    out, err = capsys.readouterr()
    assert out == "plot.png\n"
    assert err == "runs/second: not drawn: log.csv has no row yet\n"


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["second"], 3, "runs/second: nothing to plot: log.csv has no row yet"),
        (
            ["first", "--metric", "train_retrun"],
            2,
            "--metric train_retrun: no such column (did you mean 'train_return'?); there are: "
            + HEADER.replace(",", ", "),
        ),
        (["first", "-o", "a.gif"], 2, "--output a.gif: must end with .png, .svg or .pdf"),
        (["first", "-o", "plot"], 2, "--output plot: must end with .png, .svg or .pdf"),
        pytest.param(
            ["first", "-o", "none/a.png"],
            23,
            "none/a.png cannot be written: No such file or directory",
            marks=pytest.mark.skipif(not INSTALLED, reason="matplotlib is an extra"),
        ),
    ],
)
def test_a_mistake_is_one_line(
    place: Path, arguments: list[str], code: int, line: str, refusal: Callable[..., list[str]]
) -> None:
    assert refusal(["runs", "plot", *arguments], code) == [line]


def test_without_matplotlib_one_line_says_how_to_get_it(
    place: Path, monkeypatch: pytest.MonkeyPatch, refusal: Callable[..., list[str]]
) -> None:
    monkeypatch.setattr(picture, "is_available", lambda: False)
    (line,) = refusal(["runs", "plot", "first"], 4)
    assert 'pip install "omnirl-core[plot]"' in line


# ------------------------------------------------------------------ commands, ages, sizes


@pytest.mark.parametrize(
    ("runner", "last", "updates", "resume"),
    [
        ({"max_updates": 100}, 9.0, 100, "runner.max_updates=200"),
        ({"max_updates": 100, "stop_return": 9.0}, 9.0, 40, "runner.stop_return=null"),
        (
            {"max_updates": 100, "stop_return": 9.0},
            9.5,
            100,
            "runner.stop_return=null runner.max_updates=200",
        ),
        ({"max_updates": 100, "stop_return": 9.0}, 8.5, 100, "runner.max_updates=200"),
        ({"max_updates": 100, "stop_return": 9.0}, None, 100, "runner.max_updates=200"),
    ],
)
def test_what_ended_a_run_is_lifted_to_go_on(
    runner: dict[str, Any], last: float | None, updates: int, resume: str
) -> None:
    found = run_commands(
        "my runs/a", finished=True, updates=updates, runner=runner, last_return=last, total_updates=100
    )
    assert found == {
        "resume": f"omnirl resume 'my runs/a' {resume}",
        "test": "omnirl test 'my runs/a'",
        "plot": "omnirl runs plot 'my runs/a'",
    }


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h"), (172_800, "2 d")],
)
def test_ages(seconds: float, text: str) -> None:
    assert age(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (14_200, "14.2 kB"),
        (999_600, "1 MB"),
        (123_400_000, "123 MB"),
    ],
)
def test_sizes(number: int, text: str) -> None:
    assert size(number) == text


def test_the_commands_that_are_shown_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, output: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "count.yaml").write_text(
        "runner: {max_updates: 4, num_samplers: 1, num_envs_per_sampler: 2, num_episodes: 2, log_interval: 0}\n"
        "env: {module: omnirl.testing.environments, id: count, length: 10}\n"
        "agent: {module: omnirl.testing.algorithm}\n"
    )
    assert run(["train", "count.yaml", "--local", "--quiet"]) == 0
    (folder,) = (path for path in (tmp_path / "runs").iterdir())
    data = json.loads(output(["runs", "show", folder.name, "--json"]))
    assert (data["status"], data["updates"], data["last_return"]) == ("finished", 4, 10.0)
    for name in ("resume", "test", *(["plot"] if INSTALLED else [])):
        program, *arguments = shlex.split(data["commands"][name])
        assert program == "omnirl"
        local = [] if name == "plot" else ["--local"]
        assert run([*arguments, *local]) == 0
    capsys.readouterr()
    assert json.loads(output(["runs", "list", "--json"]))[0]["updates"] == 8


@pytest.mark.parametrize("arguments", [["list"], ["show", "first"]])
def test_looking_at_runs_imports_nothing_heavy(place: Path, arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from omnirl.cli.app import run\n"
        f"code = run(['runs', *{arguments!r}])\n"
        "print([m for m in ('torch', 'ray', 'gymnasium', 'matplotlib', 'rich') if m in sys.modules])\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
