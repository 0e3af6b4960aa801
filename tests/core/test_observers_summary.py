"""The lines at the end of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnirl.api.observer import RunInfo, RunSummary
from omnirl.observers import summary as summary_module
from omnirl.observers.summary import clock, commands, evaluation_text, summary_data, summary_lines

RUN = RunInfo(
    run_dir="runs/cartpole-ppo-seed0",
    title="PPO CartPole-v1 seed 0",
    algorithm="ppo",
    env_id="CartPole-v1",
    seed=0,
    columns=("updates",),
    total_updates=100,
    total_steps=0,
    num_samplers=1,
    num_evaluators=1,
    transport="ray",
    resumed_from=None,
)
FIGURES = {
    "return_mean": 498.25,
    "return_std": 3.14,
    "return_min": 489.0,
    "return_max": 500.0,
    "length_mean": 498.25,
    "episodes": 50.0,
}
SUMMARY = RunSummary(
    status="finished",
    run_dir="runs/cartpole-ppo-seed0",
    updates=100,
    env_steps=204800,
    stored_steps=204800,
    seconds=12.34,
    steps_per_s=16596.4,
    updates_per_s=8.1,
    evaluation=FIGURES,
    exact=True,
    curve="runs/cartpole-ppo-seed0/curve.png",
)


def test_a_finished_run_tells_result_picture_and_commands():
    assert summary_lines(SUMMARY, RUN) == [
        "finished: 100 updates, 204,800 env steps in 12.3 s (16,596 steps/s, 8.1 updates/s)",
        "result:   return 498.2 ± 3.1 over 50 episodes (min 489, max 500), length 498.25",
        "curve:    runs/cartpole-ppo-seed0/curve.png",
        "resume:   omnirl resume runs/cartpole-ppo-seed0 runner.max_updates=200",
        "test:     omnirl test runs/cartpole-ppo-seed0",
        "plot:     omnirl runs plot runs/cartpole-ppo-seed0",
    ]


def test_an_interrupted_run_goes_on_with_its_own_target():
    summary = replace(SUMMARY, status="interrupted", updates=64, evaluation={}, message="Ctrl-C", restarts=2)
    lines = summary_lines(summary, RUN)
    assert lines[0].startswith("interrupted: 64 updates")
    assert "note:        Ctrl-C" in lines
    assert "restarts:    2 of a worker" in lines
    assert "resume:      omnirl resume runs/cartpole-ppo-seed0" in lines
    assert not any(line.startswith("result") for line in lines)


def test_a_failed_run_leaves_the_reason_to_the_error_and_says_how_to_go_on(tmp_path):
    summary = replace(SUMMARY, status="failed", message="sampler 0 keeps failing", run_dir=str(tmp_path))
    (tmp_path / "run_config.yaml").touch()
    assert summary_lines(summary, RUN) == [
        f"failed; the files of the run are in {tmp_path}",
        f"go on with: omnirl resume {tmp_path}",
    ]
    assert summary_data(summary, RUN)["message"] == "sampler 0 keeps failing"


def test_a_run_that_failed_before_it_wrote_its_configuration_cannot_go_on(tmp_path):
    summary = replace(SUMMARY, status="failed", run_dir=str(tmp_path))
    assert summary_lines(summary, RUN) == ["failed before training began"]


def test_an_inexact_run_says_so():
    assert any(
        line.startswith("exact:    false") for line in summary_lines(replace(SUMMARY, exact=False), RUN)
    )
    assert not any("exact" in line for line in summary_lines(SUMMARY, RUN))


def test_the_picture_is_found_in_the_folder(tmp_path):
    summary = replace(SUMMARY, run_dir=str(tmp_path), curve=None)
    (tmp_path / "curve.png").write_bytes(b"")
    assert f"curve:    {tmp_path}/curve.png" in summary_lines(summary, RUN)


def test_without_matplotlib_one_line_says_how_to_get_the_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(summary_module, "is_available", lambda: False)
    lines = summary_lines(replace(SUMMARY, run_dir=str(tmp_path), curve=None), RUN)
    assert [line for line in lines if line.startswith("curve")] == [
        'curve:    no picture: matplotlib is not installed (pip install "omnirl-core[plot]")'
    ]


def test_with_matplotlib_but_no_picture_there_is_no_line(tmp_path, monkeypatch):
    monkeypatch.setattr(summary_module, "is_available", lambda: True)
    lines = summary_lines(replace(SUMMARY, run_dir=str(tmp_path), curve=None), RUN)
    assert not any(line.startswith("curve") for line in lines)


@pytest.mark.parametrize(
    ("runner", "target"),
    [
        ({"max_updates": 100, "max_steps": None}, " runner.max_updates=200"),
        ({"max_updates": None, "max_steps": 100_000}, " runner.max_steps=200000"),
        ({"max_updates": 500, "max_steps": 1000}, " runner.max_updates=200 runner.max_steps=2000"),
        ({}, " runner.max_updates=200"),
    ],
)
def test_a_finished_run_goes_on_with_a_further_target(runner, target):
    run = replace(RUN, total_steps=102_400, config={"runner": runner})
    assert commands(SUMMARY, run)["resume"] == "omnirl resume runs/cartpole-ppo-seed0" + target
    interrupted = replace(SUMMARY, status="interrupted")
    assert commands(interrupted, run)["resume"] == "omnirl resume runs/cartpole-ppo-seed0"


def test_commands_are_quoted_for_the_shell():
    assert commands(replace(SUMMARY, run_dir="my runs/a"), RUN)["test"] == "omnirl test 'my runs/a'"


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({"return_mean": -12.0}, "return -12.0"),
        ({"return_mean": 1.0, "return_std": 0.5}, "return 1.0 ± 0.5"),
        ({"return_mean": 1.0, "success": 0.75}, "return 1.0, success 0.75"),
        (
            {"return_mean": 1.0, "length_mean": 9.5, "speed_mean": 2.0, "speed": 3.0},
            "return 1.0, length 9.5, speed_mean 2, speed 3",
        ),
        ({"score": 3.0, "wins": 2.0}, "score 3, wins 2"),
    ],
)
def test_an_evaluation_in_words(figures, text):
    assert evaluation_text(figures) == text


def test_durations():
    assert clock(0.4) == "0:00:00"
    assert clock(3725.6) == "1:02:06"
    assert clock(360_000) == "100:00:00"
    assert "in 1:02:05 (" in summary_lines(replace(SUMMARY, seconds=3725.0), RUN)[0]


def test_the_data_for_programs_hold_everything_shown():
    data = summary_data(SUMMARY, RUN)
    assert data["evaluation"] == FIGURES
    assert data["curve"] == "runs/cartpole-ppo-seed0/curve.png"
    assert data["commands"] == {
        "resume": "omnirl resume runs/cartpole-ppo-seed0 runner.max_updates=200",
        "test": "omnirl test runs/cartpole-ppo-seed0",
        "plot": "omnirl runs plot runs/cartpole-ppo-seed0",
    }
