"""The learning curve's picture, and what there is without matplotlib."""

from __future__ import annotations

import importlib.util
import struct
import subprocess
import sys
from types import SimpleNamespace

import pytest

from omnirl.observers.curve import Curve
from omnirl.runs import picture
from omnirl.runs.curves import lines_of_run, title
from omnirl.runs.log import read_rows

HEADER = "updates,env_steps,train_return,eval_return_mean,eval_return_std\n"
INSTALLED = importlib.util.find_spec("matplotlib") is not None


@pytest.fixture
def finished(run_info):
    """The curve of a run in a folder has been drawn: ``finished(folder)``."""

    def finish(folder) -> None:
        observer = Curve()
        observer.run_started(run_info(folder, seed=3))
        observer.run_finished(SimpleNamespace(run_dir=str(folder)))

    return finish


def test_both_curves_are_read_from_the_log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(HEADER + "1,100,20.5,,\n2,200,30,31.5,2.5\n3,300,,40,\n4,400,nan,inf,1\n5,,1,1,1\n")
    training, evaluation = lines_of_run(list(read_rows(path)), "steps")
    assert list(zip(training.x, training.y, strict=True)) == [(100.0, 20.5), (200.0, 30.0)]
    assert list(zip(evaluation.x, evaluation.y, strict=True)) == [(200.0, 31.5), (300.0, 40.0)]
    assert list(zip(evaluation.low, evaluation.high, strict=True)) == [(29.0, 34.0), (40.0, 40.0)]


def test_the_title_names_algorithm_environment_and_seed():
    assert title("ppo", "CartPole-v1", 3) == "PPO on CartPole-v1, seed 3"
    assert title("ppo", "CartPole-v1") == "PPO on CartPole-v1"


@pytest.mark.parametrize(
    "rows",
    [
        "1,100,20.5,,\n2,200,30,31.5,2.5\n3,300,35,40,1\n",
        "1,100,20.5,,\n2,200,30,,\n",  # no evaluation
        "1,100,,31.5,2.5\n",  # a single one
        "1,100,20.5,31.5,2.5\n",
    ],
)
def test_the_picture_is_written_or_is_not_needed(tmp_path, rows, finished):
    (tmp_path / "log.csv").write_text(HEADER + rows)
    finished(tmp_path)
    picture = tmp_path / "curve.png"
    assert picture.exists() == INSTALLED
    assert not list(tmp_path.glob(".*")), "a temporary file was left"
    if INSTALLED:
        content = picture.read_bytes()
        assert content.startswith(b"\x89PNG\r\n")
        assert struct.unpack(">II", content[16:24]) == (1200, 675)


def test_nothing_to_draw_gives_no_picture(tmp_path, finished):
    (tmp_path / "log.csv").write_text(HEADER + "1,100,,,\n")
    finished(tmp_path)
    assert not (tmp_path / "curve.png").exists()


def test_without_matplotlib_nothing_fails_and_nothing_is_written(tmp_path, monkeypatch, finished):
    (tmp_path / "log.csv").write_text(HEADER + "1,100,20.5,,\n")
    monkeypatch.setattr(picture.importlib.util, "find_spec", lambda name: None)
    finished(tmp_path)
    assert not (tmp_path / "curve.png").exists()


def test_the_axes_are_labelled_and_the_curves_named(tmp_path, monkeypatch, finished):
    if not INSTALLED:
        assert picture.HINT.endswith('(pip install "omnirl-core[plot]")')
        return
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(
        Figure, "savefig", lambda self, path, **_: (drawn.append(self), path.write_bytes(b""))
    )
    (tmp_path / "log.csv").write_text(HEADER + "1,100,20.5,,\n2,200,30,31.5,2.5\n3,300,35,40,1\n")
    finished(tmp_path)
    axes = drawn[0].axes[0]
    assert axes.get_xlabel() == "environment steps"
    assert axes.get_ylabel() == "undiscounted return per episode"
    assert axes.get_title("left") == "PPO on CartPole-v1, seed 3"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "training, recent episodes",
        "evaluation, mean",
        "± 1 std",
    ]
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert list(lines["evaluation, mean"].get_xdata()) == [200.0, 300.0]
    assert list(lines["evaluation, mean"].get_ydata()) == [31.5, 40.0]
    assert list(lines["training, recent episodes"].get_ydata()) == [20.5, 30.0, 35.0]


def test_matplotlib_is_imported_only_to_draw():
    code = (
        "import sys, omnirl.observers.plugin, omnirl.observers.curve, omnirl.observers.console, "
        "omnirl.observers.csv_log; print([m for m in ('matplotlib', 'rich', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_plugin_offers_the_three_observers_by_default():
    from omnirl.api.plugin import load_object
    from omnirl.observers import plugin

    specs = list(plugin.omnirl_observers())
    assert plugin.OMNIRL_API == 1
    assert [(spec.name, spec.default) for spec in specs] == [
        ("csv", True),
        ("curve", True),
        ("console", True),
    ]
    assert [load_object(spec.load)().name for spec in specs] == ["csv", "curve", "console"]
