"""What a picture of runs shows, what its data are, and what is said where there is nothing to draw."""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from omnirl.api.errors import ConfigError, NotFoundError
from omnirl.runs.curves import Line, points, scaled
from omnirl.runs.folder import read_run
from omnirl.runs.picture import Picture, draw
from omnirl.runs.plot import plot

HEADER = "wall_time,updates,env_steps,train_return,eval_return_mean,eval_return_std,loss"
EVALUATED = ["60,10,100,1.0,2.0,0.5,9", "120,20,200,3.0,4.0,0.5,8", "180,30,300,5.0,6.0,0.5,7"]
TRAINED = ["60,10,100,1.0,,,9", "120,20,200,3.0,,,8", "180,30,300,5.0,6.0,0.5,7"]
MakeRun = Callable[..., Path]
needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib is an extra"
)


def test_one_run_shows_both_its_curves(tmp_path: Path, make_run: MakeRun) -> None:
    run = read_run(make_run(tmp_path / "a", HEADER, EVALUATED, seed=3))
    drawn = plot([run], "steps", None)
    assert drawn.picture.title == "TOY on count, seed 3"
    assert drawn.picture.x_label == "environment steps"
    assert [line.label for line in drawn.picture.lines] == ["training, recent episodes", "evaluation, mean"]
    assert drawn.curves[1] == {
        "label": "evaluation, mean",
        "metric": "eval_return_mean",
        "runs": [str(tmp_path / "a")],
        "seeds": [3],
        "x": [100.0, 200.0, 300.0],
        "mean": [2.0, 4.0, 6.0],
        "low": [1.5, 3.5, 5.5],
        "high": [2.5, 4.5, 6.5],
    }
    assert drawn.curves[0]["mean"] == [1.0, 3.0, 5.0]


def test_several_runs_show_their_evaluations_mean_and_band(tmp_path: Path, make_run: MakeRun) -> None:
    other = [line.replace("4.0,0.5", "8.0,0.5") for line in EVALUATED]
    runs = [
        read_run(make_run(tmp_path / "a", HEADER, EVALUATED, seed=0)),
        read_run(make_run(tmp_path / "b", HEADER, other, seed=1)),
    ]
    drawn = plot(runs, "updates", None)
    (data,) = drawn.curves
    assert (data["metric"], data["seeds"], data["x"]) == ("eval_return_mean", [0, 1], [10.0, 20.0, 30.0])
    assert (data["mean"], data["low"], data["high"]) == ([2.0, 6.0, 6.0], [2.0, 4.0, 6.0], [2.0, 8.0, 6.0])
    assert drawn.picture.title == "TOY on count"
    assert drawn.picture.note == "evaluations; line: mean over runs; band: lowest to highest run"
    assert drawn.picture.lines[0].marked


def test_where_a_run_has_a_single_evaluation_training_is_compared(tmp_path: Path, make_run: MakeRun) -> None:
    runs = [
        read_run(make_run(tmp_path / "a", HEADER, EVALUATED, lr=1)),
        read_run(make_run(tmp_path / "b", HEADER, TRAINED, lr=2)),
    ]
    drawn = plot(runs, "steps", None)
    assert {data["metric"] for data in drawn.curves} == {"train_return"}
    assert [line.label for line in drawn.picture.lines] == ["TOY, lr 1", "TOY, lr 2"]
    assert len({line.color for line in drawn.picture.lines}) == 2
    assert not drawn.picture.lines[0].marked


def test_any_column_can_be_drawn(tmp_path: Path, make_run: MakeRun) -> None:
    run = read_run(make_run(tmp_path / "a", HEADER, EVALUATED))
    drawn = plot([run], "steps", "loss")
    assert drawn.picture.y_label == "loss"
    assert (drawn.curves[0]["mean"], drawn.curves[0]["low"]) == ([9.0, 8.0, 7.0], [])


def test_an_unknown_column_gets_the_nearest_name(tmp_path: Path, make_run: MakeRun) -> None:
    runs = [read_run(make_run(tmp_path / name, HEADER, EVALUATED)) for name in ("a", "b")]
    with pytest.raises(ConfigError, match="--metric los: no such column") as caught:
        plot(runs, "steps", "los")
    assert len(caught.value.lines) == 1
    assert "(did you mean 'loss'?)" in caught.value.lines[0]


def test_a_run_without_anything_to_draw_says_why(tmp_path: Path, make_run: MakeRun) -> None:
    fresh = read_run(make_run(tmp_path / "fresh"))
    started = read_run(make_run(tmp_path / "started", HEADER, ["60,10,100,,,,9"], lr=1))
    whole = read_run(make_run(tmp_path / "whole", HEADER, EVALUATED))
    with pytest.raises(NotFoundError, match=r"fresh: nothing to plot: log\.csv has no row yet"):
        plot([fresh], "steps", None)
    with pytest.raises(
        NotFoundError, match=r"started: nothing to plot: log\.csv has no figure in the column train_return"
    ):
        plot([started], "steps", None)
    with pytest.raises(NotFoundError) as caught:
        plot([fresh, started], "steps", None)
    assert len(caught.value.lines) == 2
    drawn = plot([fresh, started, whole], "steps", None)
    assert [data["runs"] for data in drawn.curves] == [[str(tmp_path / "whole")]]
    assert [line.split(": ")[1] for line in drawn.left_out] == ["not drawn", "not drawn"]


def test_seeds_with_no_stretch_in_common_are_drawn_one_by_one(tmp_path: Path, make_run: MakeRun) -> None:
    runs = [
        read_run(make_run(tmp_path / "a", HEADER, EVALUATED[:1], seed=0)),
        read_run(make_run(tmp_path / "b", HEADER, EVALUATED[1:], seed=1)),
    ]
    drawn = plot(runs, "steps", "loss")
    assert [data["label"] for data in drawn.curves] == ["TOY, a", "TOY, b"]
    assert drawn.picture.note == ""


def test_more_groups_than_colours_stay_apart(tmp_path: Path, make_run: MakeRun) -> None:
    runs = [read_run(make_run(tmp_path / f"{n}", HEADER, EVALUATED, lr=n)) for n in range(10)]
    lines = plot(runs, "steps", None).picture.lines
    assert len({(line.color, line.dashed) for line in lines}) == 10


def test_points_need_both_coordinates() -> None:
    rows = [
        {"env_steps": "1", "wall_time": "0.5", "loss": "3"},
        {"env_steps": "2", "wall_time": "", "loss": "nan"},
        {"env_steps": "3", "wall_time": "1.5", "loss": "5"},
        {"loss": "7"},
    ]
    assert points(rows, "steps", "loss") == [(1.0, 3.0), (3.0, 5.0)]
    assert points(rows, "time", "loss") == [(0.5, 3.0), (1.5, 5.0)]
    assert points(rows, "updates", "loss") == []


@pytest.mark.parametrize(
    ("seconds", "x", "label"),
    [(300.0, 300.0, "wall time (s)"), (360.0, 6.0, "wall time (min)"), (36_000.0, 10.0, "wall time (h)")],
)
def test_time_has_a_unit_that_reads_well(seconds: float, x: float, label: str) -> None:
    lines, text = scaled([Line("a", [0.0, seconds], [1.0, 2.0], "#000000")], "time")
    assert (list(lines[0].x), text) == ([0.0, x], label)


@needs_matplotlib
@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_picture_is_written_in_the_format_of_its_name(tmp_path: Path, kind: str, start: bytes) -> None:
    lines = [Line("a", [1, 2], [3, 4], "#1f5fb4", [2, 3], [4, 5]), Line("b", [1], [2], "#e08214", [1], [3])]
    path = tmp_path / f"here.{kind}"
    draw(Picture("a title", "x", "y", lines, note="small print"), path)
    content = path.read_bytes()
    assert content.startswith(start)
    if kind == "png":
        assert struct.unpack(">II", content[16:24]) == (1200, 675)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@needs_matplotlib
def test_a_picture_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    lines = [Line("a", [1, 2], [3, 4], "#1f5fb4")]
    with pytest.raises(OSError, match="No such file"):
        draw(Picture("", "x", "y", lines), tmp_path / "none" / "a.png")
    (tmp_path / "a.png").mkdir()
    with pytest.raises(OSError, match="directory"):
        draw(Picture("", "x", "y", lines), tmp_path / "a.png")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.png"]


@needs_matplotlib
def test_lines_bands_and_small_print_are_in_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    drawn: list[Figure] = []

    def keep(figure: Figure, path: Path, **_: object) -> None:
        drawn.append(figure)
        path.write_bytes(b"")

    monkeypatch.setattr(Figure, "savefig", keep)
    lines = [
        Line(f"run {n}", [1, 2], [n, n], "#1f5fb4", [n - 1, n - 1], [n + 1, n + 1], dashed=n == 1)
        for n in range(8)
    ]
    draw(Picture("a title", "steps", "loss", lines, note="small print"), tmp_path / "a.png")
    axes = drawn[0].axes[0]
    assert [line.get_linestyle() for line in axes.get_lines()][:3] == ["-", "--", "-"]
    assert len(axes.collections) == 8
    assert axes.get_legend() is None  # eight names would cover the curves
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == [f"run {n}" for n in range(8)]
    assert drawn[0].get_supxlabel() == "small print"
