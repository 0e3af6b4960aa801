"""What several learners tell each other: sums, weighted means, tables; and what happens when one is gone (K35)."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from omnirl.algorithms.shared.training.process_group import OneLearner, process_group
from omnirl.api import LearnerContext, LearnerLostError


@pytest.fixture
def with_groups(on_every_rank):
    """``with_groups(size, task)`` -> what ``task(group)`` gives on each rank."""

    def run(size, task):
        def alone(context):
            group = process_group(context, patience_s=20.0)
            result = task(group)
            group.reduce(np.zeros(1), "sum")  # nobody leaves before all are done
            group.close()
            return result

        return on_every_rank(size, alone)

    return run


def test_k35_a_gradient_is_the_mean_over_all_samples(with_groups):
    """Shards of 3 and 1 samples with mean gradients 1 and 5: (3 * 1 + 1 * 5) / 4 = 2, not the naive 3."""
    counts, gradients = (3, 1), (1.0, 5.0)

    def average(group):
        gradient = torch.full((4,), gradients[group.rank])
        total = group.average_(gradient, counts[group.rank])
        return gradient.tolist(), total

    assert with_groups(2, average) == [([2.0] * 4, 4)] * 2


def test_a_rank_without_samples_takes_part_and_adds_nothing(with_groups):
    """Not even what its buffer held, which may be anything."""

    def average(group):
        gradient = torch.full((2, 2), 7.0 if group.rank == 1 else float("nan"), dtype=torch.float64)
        total = group.average_(gradient, 5 if group.rank == 1 else 0)
        return gradient.tolist(), total

    assert with_groups(3, average) == [([[7.0, 7.0], [7.0, 7.0]], 5)] * 3


def test_without_any_sample_the_mean_is_zero(with_groups):
    def average(group):
        gradient = torch.full((3,), 9.0)
        return group.average_(gradient, 0), gradient.tolist()

    assert with_groups(2, average) == [(0, [0.0, 0.0, 0.0])] * 2


def test_what_is_not_finite_on_one_rank_is_so_on_all(with_groups):
    def average(group):
        gradient = torch.tensor(
            [1.0, float("inf") if group.rank else 1.0, float("nan") if group.rank else 1.0]
        )
        group.average_(gradient, 2)
        return torch.isfinite(gradient).tolist()

    assert with_groups(2, average) == [[True, False, False]] * 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_sums_and_maxima_of_arrays(with_groups, dtype):
    def reduce(group):
        array = np.array([[1, 5], [-2, group.rank]], dtype) * (group.rank + 1)
        before = array.copy()
        total, most = group.reduce(array, "sum"), group.reduce(array, "max")
        assert np.array_equal(array, before)
        assert total.dtype == most.dtype == dtype
        return total.tolist(), most.tolist()

    assert with_groups(3, reduce) == [([[6, 30], [-12, 8]], [[3, 15], [-2, 6]])] * 3


def test_zero_dimensional_arrays_are_reduced(with_groups):
    assert with_groups(2, lambda group: float(group.reduce(np.array(2.5), "sum"))) == [5.0, 5.0]


def test_numbers_that_cannot_be_added_are_refused_on_every_rank(with_groups):
    def refused(group):
        with pytest.raises(TypeError, match="bool"):
            group.reduce(np.array([True]), "sum")
        with pytest.raises(KeyError):
            group.reduce(np.zeros(1), "mean")

    with_groups(2, refused)


def test_a_tensor_is_summed_where_it_lies(with_groups):
    def add(group):
        tensor = torch.arange(3, dtype=torch.float32) + group.rank
        view = tensor.numpy()
        group.sum_(tensor)
        return view.tolist()

    assert with_groups(2, add) == [[1.0, 3.0, 5.0]] * 2


def test_all_take_over_what_the_first_has(with_groups):
    def take_over(group):
        tensor = torch.tensor([[1.5, -2.0], [float(group.rank), float("nan") if group.rank else 3.0]])
        group.as_first_(tensor)
        return tensor.tolist()

    assert with_groups(3, take_over) == [[[1.5, -2.0], [0.0, 3.0]]] * 3


def test_tables_come_in_rank_order(with_groups):
    def gather(group):
        own = np.array([[group.rank, 10 * group.rank]], np.int16)
        flags = group.all_gather(np.array([group.rank == 1, True]))
        tables = group.all_gather(own)
        assert tables[0].dtype == np.int16
        assert flags[0].dtype == bool
        return [table.tolist() for table in tables], [flag.tolist() for flag in flags]

    expected = ([[[0, 0]], [[1, 10]], [[2, 20]]], [[False, True], [True, True], [False, True]])
    assert with_groups(3, gather) == [expected] * 3


@pytest.mark.parametrize("counts", [(2, 0, 1), (0, 0, 0)])
def test_rows_of_any_number_are_gathered(with_groups, counts):
    def gather(group):
        rows = np.full((counts[group.rank], 2), float(group.rank), np.float32)
        parts = group.all_gather_rows(rows)
        assert all(part.dtype == np.float32 for part in parts)
        return [part.tolist() for part in parts]

    expected = [[[float(rank)] * 2] * count for rank, count in enumerate(counts)]
    assert with_groups(3, gather) == [expected] * 3


def test_one_learner_gives_back_what_it_was_given(learner_context):
    group = process_group(learner_context)
    assert isinstance(group, OneLearner)
    array, tensor = np.arange(3.0), torch.tensor([2.0, float("nan")])
    assert group.reduce(array, "sum") is array
    assert group.all_gather(array)[0] is array
    assert group.all_gather_rows(array)[0] is array
    assert group.average_(tensor, 4) == 4
    group.sum_(tensor)
    group.as_first_(tensor)
    assert tensor[0] == 2.0
    assert (group.rank, group.size) == (0, 1)
    group.close()


def test_several_learners_need_a_rendezvous():
    with pytest.raises(ValueError, match="2 learners need a rendezvous"):
        process_group(LearnerContext(0, 2, None, "cpu", 1, 0))


def test_a_learner_that_never_comes_is_told_after_the_patience(free_port):
    began = time.monotonic()
    with pytest.raises(LearnerLostError, match="learner 0 of 2 lost another learner") as caught:
        process_group(LearnerContext(0, 2, f"127.0.0.1:{free_port()}", "cpu", 1, 0), patience_s=1.0)
    assert time.monotonic() - began < 10
    assert caught.value.exit_code == 20


DIES = """
import os, sys
import numpy as np
from omnirl.algorithms.shared.training.process_group import process_group
from omnirl.api import LearnerContext
print("ready", flush=True)
group = process_group(LearnerContext(1, 2, sys.argv[1], "cpu", 1, 0), patience_s=60.0)
group.reduce(np.ones(1), "sum")
os._exit(9) if sys.argv[2] == "dies" else sys.stdin.read()
"""


@pytest.mark.parametrize(("fate", "patience_s"), [("dies", 60.0), ("hangs", 3.0)])
def test_k35_a_lost_learner_is_an_error_in_bounded_time(free_port, fate, patience_s):
    """One that died long before the patience ends, since its connection is closed; one that hangs after it."""
    rendezvous = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-c", DIES, rendezvous, fate]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "ready\n"
        group = process_group(LearnerContext(0, 2, rendezvous, "cpu", 1, 0), patience_s)
        assert group.reduce(np.ones(1), "sum").tolist() == [2.0]
        began = time.monotonic()
        with pytest.raises(LearnerLostError, match="learner 0 of 2 lost another learner"):
            group.average_(torch.zeros(3), 1)
        assert time.monotonic() - began < 10.0
        other.kill()


def test_a_port_that_is_taken_is_told_as_such():
    """The runtime looks for these words, and tries another port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        context = LearnerContext(0, 2, f"127.0.0.1:{taken.getsockname()[1]}", "cpu", 1, 0)
        with pytest.raises(LearnerLostError, match=r"(?i)EADDRINUSE|address already in use"):
            process_group(context, patience_s=5.0)
