"""omnirl test: which agent is evaluated, what is printed, and the threshold."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import omnirl.run
from omnirl.cli.app import run
from omnirl.runtime.evaluate import Evaluation

FIGURES = {
    "return_mean": 498.2,
    "return_std": 3.1,
    "return_min": 489.0,
    "return_max": 500.0,
    "episodes": 50.0,
}


class Recorder:
    """Stands for omnirl.run: takes what the real functions take and remembers it."""

    def __init__(self, stands_for) -> None:
        self.configured: tuple = ()
        self.overrides: list[str] = []
        self.asked: dict = {}
        self.figures = dict(FIGURES)
        stands_for(omnirl.run, self, "configure", "evaluate")

    def configure(self, *sources, overrides=()):
        self.configured, self.overrides = sources, list(overrides)
        return "the configuration"

    def evaluate(self, source, *, overrides=(), model=None, episodes=None, local=False):
        self.asked = {
            "source": source,
            "overrides": list(overrides),
            "model": model,
            "episodes": episodes,
            "local": local,
        }
        return Evaluation("agent_100", "runs/cartpole", 50, self.figures, ())


@pytest.fixture
def recorder(stands_for):
    return Recorder(stands_for)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "runs" / "first"
    path.mkdir(parents=True)
    (path / "run_config.yaml").write_text("seed: 0\n")
    monkeypatch.chdir(tmp_path)
    return Path("runs/first")


@pytest.mark.parametrize("command", ["test", "eval"])
def test_the_result_in_one_line(recorder, command, capsys):
    assert run([command, "cartpole-ppo"]) == 0
    out, err = capsys.readouterr()
    assert out == "agent_100 of runs/cartpole: return 498.2 ± 3.1 over 50 episodes (min 489, max 500)\n"
    assert err == ""
    assert recorder.configured == ("cartpole-ppo",)
    assert recorder.asked == {
        "source": "the configuration",
        "overrides": [],
        "model": None,
        "episodes": None,
        "local": False,
    }


def test_options_are_handed_over(recorder):
    assert run(["test", "cartpole-ppo", "--model", "agent_50", "--episodes", "7", "--local", "seed=3"]) == 0
    assert recorder.overrides == ["seed=3"]
    assert (recorder.asked["model"], recorder.asked["episodes"], recorder.asked["local"]) == (
        "agent_50",
        7,
        True,
    )


@pytest.mark.parametrize("name", ["runs/first", "first"])
def test_a_run_is_evaluated_by_its_folder(recorder, folder, name):
    assert run(["test", name, "env.kwargs.size=3"]) == 0
    assert recorder.configured == ()
    assert recorder.asked["source"] == folder
    assert recorder.asked["overrides"] == ["env.kwargs.size=3"]


def test_a_folder_that_is_no_run_ends_with_3(recorder, folder, capsys):
    assert run(["test", "runs"]) == 3
    assert "not the folder of a run" in capsys.readouterr().err


def test_the_two_file_form(recorder, tmp_path):
    (tmp_path / "test.yaml").write_text("runner: {eval_model: agent_100}\n")
    (tmp_path / "ppo.yaml").write_text("modules: {}\nagent: {module: ppo}\n")
    code = run(["test", f"--runner-config={tmp_path}/test.yaml", f"--agent-config={tmp_path}/ppo.yaml"])
    assert code == 0
    (tree,) = recorder.configured
    assert tree.data["runner"] == {"eval_model": "agent_100"}
    assert tree.data["agent"] == {"module": "ppo"}


def test_json(recorder, capsys):
    recorder.figures["return_std"] = math.nan
    assert run(["test", "cartpole-ppo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "model": "agent_100",
        "run_dir": "runs/cartpole",
        "episodes": 50,
        "metrics": {**FIGURES, "return_std": None},
    }


@pytest.mark.parametrize(
    ("mean", "least", "code"), [(498.2, "490", 0), (490.0, "490", 0), (489.9, "490", 30), (math.nan, "0", 30)]
)
def test_the_threshold(recorder, mean, least, code, capsys):
    recorder.figures["return_mean"] = mean
    assert run(["test", "cartpole-ppo", "--min-return", least]) == code
    out, err = capsys.readouterr()
    assert out.startswith("agent_100")
    assert ("below --min-return" in err) == (code == 30)


def test_a_negative_threshold(recorder):
    recorder.figures["return_mean"] = -150.0
    assert run(["test", "cartpole-ppo", "--min-return=-200"]) == 0
    assert run(["test", "cartpole-ppo", "--min-return", "-100"]) == 30


def test_a_threshold_needs_a_mean_return(recorder, capsys):
    recorder.figures = {"wins": 3.0}
    assert run(["test", "cartpole-ppo", "--min-return", "1"]) == 2
    assert "reports no return_mean" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", [["--episodes", "0"], ["--min-return", "high"], ["--min-return", "nan"], ["--seeds", "1"]]
)
def test_a_wrong_option_is_a_usage_error(recorder, options):
    assert run(["test", "cartpole-ppo", *options]) == 2
    assert recorder.asked == {}


def test_a_runs_file_that_lacks_keys_is_the_place_of_the_mistakes(folder, capsys):
    assert run(["test", str(folder)]) == 2
    lines = capsys.readouterr().err.splitlines()
    places = [line.partition(": ")[0] for line in lines]
    assert places == [f"{folder}/run_config.yaml {key}" for key in ("agent.module", "env.module")]


@pytest.mark.parametrize("command", ["test", "record", "enjoy"])
def test_an_empty_name_of_a_model_is_not_the_newest(folder, command, capsys):
    assert run([command, str(folder), "--model", ""]) == 2
    assert "'--model': names no agent" in capsys.readouterr().err
