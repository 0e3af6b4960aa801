"""What the console observer shows in each of its modes."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from omnirl.api.observer import Progress, RunInfo, RunSummary
from omnirl.observers import live
from omnirl.observers.console import ConsoleObserver

RUN = RunInfo(
    run_dir="runs/cartpole-ppo-seed0",
    title="PPO CartPole-v1 seed 0",
    algorithm="ppo",
    env_id="CartPole-v1",
    seed=0,
    columns=("updates", "env_steps"),
    total_updates=100,
    total_steps=0,
    num_samplers=2,
    num_evaluators=1,
    transport="ray",
    resumed_from=None,
    notices=("one sampler in lock-step is faster with --local",),
)
PROGRESS = Progress(
    updates=64,
    env_steps=131072,
    seconds=8.4,
    steps_per_s=16210.4,
    updates_per_s=8.63,
    train_return=412.25,
    train_return_std=38.2,
    eval_return=None,
    lag_p50=1.0,
    lag_max=3,
    samplers_alive=1,
    checkpoint_age=12.4,
    eta_s=4.0,
)
SUMMARY = RunSummary(
    status="finished",
    run_dir="runs/cartpole-ppo-seed0",
    updates=100,
    env_steps=204800,
    stored_steps=204800,
    seconds=12.34,
    steps_per_s=16596.0,
    updates_per_s=8.1,
    evaluation={"return_mean": 498.2},
    exact=True,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(mode, *events, stream=None, **options) -> str:
    """What is on the stream after ``(method, argument...)`` events."""
    stream = io.StringIO() if stream is None else stream
    console = ConsoleObserver(mode, stream, **options)
    for method, *arguments in events:
        getattr(console, method)(*arguments)
    return stream.getvalue()


def at(seconds: float):
    return ("progress", replace(PROGRESS, seconds=seconds))


def test_the_first_line_says_what_runs_where():
    assert told("plain", ("run_started", RUN)) == (
        "PPO CartPole-v1 seed 0: 100 updates, 2 samplers, ray, runs/cartpole-ppo-seed0\n"
        "one sampler in lock-step is faster with --local\n"
    )


def test_the_first_line_says_where_a_run_goes_on():
    run = replace(RUN, resumed_from=50, total_steps=1000, num_samplers=1, notices=())
    assert told("plain", ("run_started", run)) == (
        "PPO CartPole-v1 seed 0: 100 updates (1,000 env steps), 1 sampler, ray, runs/cartpole-ppo-seed0, "
        "resumed at update 50\n"
    )


def test_the_first_line_counts_several_learners():
    told_first = told("plain", ("run_started", replace(RUN, num_learners=3))).partition("\n")[0]
    assert ": 100 updates, 3 learners, 2 samplers, ray, " in told_first


def test_plain_prints_one_line_every_ten_seconds():
    text = told("plain", ("run_started", replace(RUN, notices=())), *(at(t / 4) for t in range(0, 121)))
    lines = text.splitlines()[1:]
    assert [line.split()[2] for line in lines] == ["seconds=10", "seconds=20", "seconds=30"]


def test_a_plain_line_holds_keys_and_values():
    assert told("plain", ("run_started", RUN), at(10.0)).splitlines()[-1] == (
        "updates=64/100 env_steps=131072 seconds=10 eta=4 steps_per_s=16210 updates_per_s=8.6 return=412.25 "
        "return_std=38.2 lag_p50=1 lag_max=3 samplers=1/2 checkpoint_age=12"
    )


def test_what_is_not_known_yet_is_left_out_of_a_plain_line():
    progress = replace(
        PROGRESS, seconds=10.0, train_return=None, train_return_std=None, checkpoint_age=None, eta_s=None
    )
    line = told("plain", ("run_started", RUN), ("progress", progress)).splitlines()[-1]
    assert "None" not in line
    assert "return" not in line
    assert all(part.count("=") == 1 for part in line.split())


def test_without_a_terminal_there_are_no_control_characters():
    text = told(
        None, ("run_started", RUN), at(10.0), ("event", "sampler 1 restarted"), ("run_finished", SUMMARY)
    )
    assert "\x1b" not in text
    assert "\r" not in text
    assert "sampler 1 restarted\n" in text


def test_in_a_terminal_the_display_is_live(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = told(
        None,
        ("run_started", RUN),
        at(8.4),
        ("event", "sampler 1 restarted"),
        ("run_finished", SUMMARY),
        stream=Terminal(),
    )
    assert "64/100 updates" in text
    assert "\x1b[" in text
    assert "sampler 1 restarted" in text
    assert text.rstrip().endswith("omnirl runs plot runs/cartpole-ppo-seed0")
    assert "\x1b[?25h" in text  # the cursor is shown again


def test_a_dumb_terminal_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in told(
        None, ("run_started", RUN), at(8.4), ("run_finished", SUMMARY), stream=Terminal()
    )


def test_closing_gives_the_terminal_back_without_a_result(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    console = ConsoleObserver("live", stream)
    console.run_started(RUN)
    console.close()
    console.close()
    assert stream.getvalue().count("\x1b[?25h") == 1


def test_the_live_display_shows_the_documented_figures():
    stream = io.StringIO()
    Console(file=stream, width=115, color_system=None).print(live.view(RUN, PROGRESS))
    first, second = stream.getvalue().splitlines()
    assert first.startswith("PPO CartPole-v1 seed 0 ━")
    assert first.rstrip().endswith("64/100 updates 0:00:08 eta 0:00:04")
    assert second.rstrip() == (
        " env steps 131,072  16,210/s │ updates 8.6/s │ return 412 ±38.2 │ lag p50 1 max 3 │ samplers 1/2"
        " │ ckpt 12 s ago"
    )


def test_the_display_counts_in_one_unit():
    both = replace(RUN, total_updates=100, total_steps=200_000)
    assert live.stop_target(both, PROGRESS) == (64, 100, "updates")
    steps = replace(RUN, total_updates=0, total_steps=200_000)
    assert live.stop_target(steps, PROGRESS) == (131072, 200_000, "steps")


def test_no_progress_leaves_start_events_and_result():
    text = told(
        "plain",
        ("run_started", RUN),
        at(10.0),
        at(20.0),
        ("event", "hello"),
        ("run_finished", SUMMARY),
        show_progress=False,
    )
    assert "seconds=" not in text
    assert text.startswith("PPO CartPole-v1 seed 0: 100 updates")
    assert "\nhello\n" in text
    assert "498.2" in text


def test_quiet_says_nothing():
    assert (
        told(
            "quiet",
            ("run_started", RUN),
            at(10.0),
            at(20.0),
            ("event", "hello"),
            ("rewound", 3),
            ("metrics", {"updates": 1}),
            ("checkpoint_saved", 1, "x"),
            ("run_finished", SUMMARY),
        )
        == ""
    )


def test_json_writes_one_object_a_line():
    text = told(
        "json",
        ("run_started", RUN),
        at(10.0),
        at(20.0),
        ("metrics", {"updates": 1, "loss": math.nan, "train_return": None}),
        ("checkpoint_saved", 1, "runs/x/checkpoint.ckpt"),
        ("event", "hello"),
        ("rewound", 0),
        ("run_finished", SUMMARY),
    )
    objects = [json.loads(line) for line in text.splitlines()]
    assert [item["event"] for item in objects] == [
        "started",
        "metrics",
        "checkpoint",
        "event",
        "rewound",
        "finished",
    ]
    assert objects[0]["run_dir"] == "runs/cartpole-ppo-seed0"
    assert objects[1] == {"event": "metrics", "updates": 1, "loss": None, "train_return": None}
    assert objects[2] == {"event": "checkpoint", "updates": 1, "path": "runs/x/checkpoint.ckpt"}
    assert objects[-1]["evaluation"] == {"return_mean": 498.2}
    assert objects[-1]["commands"]["test"] == "omnirl test runs/cartpole-ppo-seed0"


@pytest.mark.parametrize("mode", ["plain", "json"])
def test_a_rewind_is_told(mode):
    assert "7" in told(mode, ("run_started", RUN), ("rewound", 7)).splitlines()[-1]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_display_fits_the_terminal(width):
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None).print(live.view(RUN, PROGRESS))
    lines = stream.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    assert lines[0].startswith("PPO CartPole-v1 seed 0 ━")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12345.6, "12,346"),
        (-1234.5, "-1,234"),
        (99.96, "100"),
        (38.24, "38.2"),
        (0.01234, "0.0123"),
        (0.0, "0"),
    ],
)
def test_a_figure_at_a_glance(value, text):
    assert live.short(value) == text
