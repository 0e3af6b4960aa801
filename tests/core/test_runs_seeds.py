"""Which runs belong together, what they are called, and mean and band over them, against numbers made by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from omnirl.runs.folder import Run, read_run
from omnirl.runs.seeds import band, band_note, curve, grouped

MakeRun = Callable[..., Path]


def labels(runs: Sequence[Run]) -> list[str]:
    return [group.label_with_count for group in grouped(runs)]


def test_seeds_of_one_configuration_belong_together(tmp_path: Path, make_run: MakeRun) -> None:
    runs = [read_run(make_run(tmp_path / f"{seed}", seed=seed, lr=0.1)) for seed in (0, 1, 2)]
    assert labels(runs) == ["TOY (3 seeds)"]
    assert [group.runs for group in grouped(runs)] == [tuple(runs)]
    twice = read_run(make_run(tmp_path / "again", seed=2, lr=0.1))
    assert labels([*runs, twice]) == ["TOY (4 runs)"]


def test_other_configurations_are_called_by_what_differs(tmp_path: Path, make_run: MakeRun) -> None:
    runs = [
        read_run(make_run(tmp_path / "a", lr=0.1 + 0.2, flag=True)),
        read_run(make_run(tmp_path / "b", lr=0.2, flag=True)),
        read_run(make_run(tmp_path / "c", lr=0.2, flag=True, seed=1)),
        read_run(make_run(tmp_path / "d", lr=0.1, flag=False, clip=None)),
    ]
    assert labels(runs) == [
        "TOY, lr 0.3, flag true",
        "TOY, lr 0.2, flag true (2 seeds)",
        "TOY, lr 0.1, flag false",
    ]


def test_other_algorithms_and_environments_are_called_by_their_names(
    tmp_path: Path, make_run: MakeRun
) -> None:
    one = read_run(make_run(tmp_path / "a", lr=0.1))
    other = read_run(make_run(tmp_path / "b", algorithm="acme.algos.ppo", lr=0.3))
    third = read_run(make_run(tmp_path / "c", env_id="walk", lr=0.1))
    assert labels([one, other]) == ["TOY", "PPO"]
    assert labels([one, third]) == ["TOY count", "TOY walk"]


def test_runs_that_differ_in_much_are_called_by_their_folders(tmp_path: Path, make_run: MakeRun) -> None:
    runs = [
        read_run(make_run(tmp_path / "first", a=1, b=1, c=1, d=1)),
        read_run(make_run(tmp_path / "second", a=2, b=2, c=2, d=2)),
    ]
    assert labels(runs) == ["TOY first", "TOY second"]


def test_the_mean_is_taken_where_all_runs_are_interpolated_linearly() -> None:
    found = curve([[(0, 0.0), (10, 10.0), (20, 20.0)], [(5, 1.0), (15, 3.0)]])
    assert found is not None
    assert found.x.tolist() == [5, 10, 15]  # what both have, at every x of either
    assert found.mean.tolist() == [3.0, 6.0, 9.0]  # (5+1)/2, (10+2)/2, (15+3)/2
    assert found.low.tolist() == [1.0, 2.0, 3.0]
    assert found.high.tolist() == [5.0, 10.0, 15.0]


def test_one_run_is_its_own_curve_without_a_band() -> None:
    found = curve([[(1, 5.0), (2, 7.0)]])
    assert found is not None
    assert (found.x.tolist(), found.mean.tolist()) == ([1, 2], [5.0, 7.0])
    assert (found.low.size, found.high.size) == (0, 0)


def test_runs_with_no_stretch_in_common_have_no_curve() -> None:
    assert curve([[(1, 1.0), (2, 1.0)], [(3, 1.0), (4, 1.0)]]) is None
    assert curve([[(1, 1.0)], []]) is None
    assert curve([]) is None
    touching = curve([[(1, 1.0), (3, 5.0)], [(3, 1.0), (4, 1.0)]])
    assert touching is not None
    assert (touching.x.tolist(), touching.mean.tolist()) == ([3], [3.0])


def test_very_many_points_are_thinned_evenly() -> None:
    found = curve([[(x, float(x)) for x in range(1000)], [(x + 0.5, float(x)) for x in range(1000)]])
    assert found is not None
    assert (len(found.x), found.x[0], found.x[-1]) == (500, 0.5, 999.0)


def test_up_to_four_runs_have_a_band_from_the_lowest_to_the_highest() -> None:
    low, high = band(np.array([[1.0, 8.0], [2.0, 7.0], [3.0, 6.0], [9.0, 0.0]]))
    assert (low.tolist(), high.tolist()) == ([1.0, 0.0], [9.0, 8.0])


def test_from_five_runs_on_the_band_is_the_bootstrap_interval_of_the_mean() -> None:
    """All 5^5 resamples give the exact interval, which 2,000 random ones come near."""
    values = np.array([0.0, 1.0, 2.0, 3.0, 10.0])
    every = np.array([np.mean(values[list(draw)]) for draw in product(range(5), repeat=5)])
    exact = np.percentile(every, [2.5, 97.5])
    low, high = band(values[:, None])
    assert (low[0], high[0]) == pytest.approx(tuple(exact), abs=0.25)
    assert low[0] > values.min()
    assert high[0] < values.max()
    again = band(values[:, None])
    assert (again[0][0], again[1][0]) == (low[0], high[0])


def test_the_small_print_says_what_the_band_is(tmp_path: Path, make_run: MakeRun) -> None:
    few = [read_run(make_run(tmp_path / f"few{seed}", seed=seed, lr=1)) for seed in range(2)]
    many = [read_run(make_run(tmp_path / f"many{seed}", seed=seed, lr=2)) for seed in range(5)]
    assert band_note(grouped(few[:1])) == ""
    assert band_note(grouped(few)) == "line: mean over runs; band: lowest to highest run"
    assert band_note(grouped(many)) == "line: mean over runs; band: 95 % bootstrap interval of the mean"
    assert band_note(grouped([*few, *many])) == (
        "line: mean over runs; band: lowest to highest run (fewer than 5 runs) or "
        "95 % bootstrap interval of the mean"
    )
