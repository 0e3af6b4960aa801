"""Means of training figures: finite updates alone count, however often somebody looked in between."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from omnirl.algorithms.shared.training import metric_sums
from omnirl.algorithms.shared.training.metric_sums import MetricSums

CPU = torch.device("cpu")


def add(sums, loss, norm=0.0, lr=1.0, finite=True):
    sums.add((torch.tensor(loss), torch.tensor(norm)), torch.tensor(float(finite)), {"lr": lr})


def test_floats_do_as_well():
    sums = make()
    sums.add((1.0, np.float32(4.0)), 1.0, {})
    sums.add((np.float32("nan"), 0.0), 0.0, {})
    assert sums.nonfinite_in_row == 1
    taken = sums.take()
    assert (taken["loss"], taken["norm"], taken["nonfinite_updates"]) == (1.0, 4.0, 1.0)


def test_floats_summed_one_by_one_are_those_summed_at_once():
    often, once, in_row = make(), make(), 0
    for value in np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32):
        finite = value[0] > -0.5
        for sums in (often, once):
            sums.add(tuple(value), float(finite), {})
        in_row = 0 if finite else in_row + 1
        assert often.nonfinite_in_row == in_row
    assert often.take() == once.take()


def make():
    return MetricSums(("loss", "norm"), CPU)


def test_means_since_the_last_look():
    sums = make()
    add(sums, 1.0, 10.0, lr=0.5)
    add(sums, 2.0, 20.0, lr=0.25)
    assert sums.take() == {
        "loss": 1.5,
        "norm": 15.0,
        "lr": 0.375,
        "nonfinite_updates": 0.0,
        "nonfinite_in_row": 0.0,
    }
    assert sums.take() == {"nonfinite_updates": 0.0, "nonfinite_in_row": 0.0}


def test_updates_that_are_not_finite_count_apart():
    sums = make()
    add(sums, 4.0)
    add(sums, float("nan"), finite=False)
    add(sums, float("inf"), finite=False)
    assert sums.nonfinite_in_row == 2
    assert sums.take()["loss"] == 4.0
    add(sums, float("nan"), lr=float("nan"), finite=False)
    assert sums.nonfinite_in_row == 3  # of all, not since the last look
    taken = sums.take()
    assert (taken["nonfinite_updates"], taken["nonfinite_in_row"]) == (3.0, 3.0)
    assert "loss" not in taken
    assert "lr" not in taken
    add(sums, 1.0)
    assert sums.nonfinite_in_row == 0


@pytest.mark.parametrize("most", [1, 3, 2048])
def test_looking_changes_no_sum(most, monkeypatch):
    """Sums in double precision, update by update, bit for bit: whoever looked, saved, or let the list fill."""
    values = np.random.default_rng(0).standard_normal(50).astype(np.float32)
    total = 0.0
    for value in values:
        total += float(value)
    monkeypatch.setattr(metric_sums, "_MOST_WAITING", most)
    sums = make()
    for i, value in enumerate(values):
        add(sums, float(value))
        if i % 7 == 3:
            sums.state_dict()
        if i % 5 == 2:
            assert sums.nonfinite_in_row == 0
        if i == 20:
            restored = make()
            add(restored, 99.0)  # forgotten by the restore
            restored.load_state_dict(sums.state_dict())
            sums = restored
    assert sums.take()["loss"] == total / 50


def test_a_full_list_is_summed_at_once(monkeypatch):
    monkeypatch.setattr(metric_sums, "_MOST_WAITING", 4)
    sums = make()
    for _ in range(11):
        add(sums, 1.0)
        assert len(sums._waiting) < 4 * 3
    assert sums.take()["loss"] == 1.0


def test_sums_of_other_figures_are_refused():
    with pytest.raises(ValueError, match=r"shape \(3,\) does not fit \(2,\)"):
        MetricSums(("loss",), CPU).load_state_dict(make().state_dict())
