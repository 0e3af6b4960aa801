"""Statistics over runs, against numbers made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.runs.statistics import bootstrap_interval, interquartile_mean


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end() -> None:
    # sorted 1 2 3 4 5 7 8 9: the middle four are 3 4 5 7
    assert interquartile_mean([1.0, 5.0, 3.0, 9.0, 2.0, 7.0, 4.0, 8.0]) == 4.75
    assert interquartile_mean([1.0, 2.0, 9.0]) == 4.0, "a quarter of three is no whole score"
    assert interquartile_mean([100.0, 2.0, 4.0, -50.0]) == 3.0
    assert interquartile_mean([7.0]) == 7.0


def test_no_scores_have_no_mean() -> None:
    with pytest.raises(ValueError, match="no scores"):
        interquartile_mean([])


def test_the_interval_of_equal_scores_is_one_number() -> None:
    assert bootstrap_interval([3.0, 3.0, 3.0], interquartile_mean) == (3.0, 3.0)


def test_the_interval_lies_within_the_scores_and_repeats() -> None:
    scores = [1.0, 2.0, 3.0, 4.0, 5.0]
    low, high = bootstrap_interval(scores, interquartile_mean)
    assert 1.0 <= low < interquartile_mean(scores) < high <= 5.0
    assert bootstrap_interval(scores, interquartile_mean) == (low, high)


def test_the_interval_of_a_mean_has_its_known_width() -> None:
    scores = np.random.default_rng(1).normal(size=400)
    low, high = bootstrap_interval(scores, lambda sample: float(sample.mean()))
    # the normal interval of a mean: 2 x 1.96 x sigma / sqrt(n)
    assert high - low == pytest.approx(2 * 1.96 * scores.std() / 20, rel=0.1)
