"""The sum tree against plain sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnirl.buffers.sum_tree import SumTree


def tree_of(values):
    tree = SumTree(len(values))
    tree.set(np.arange(len(values)), np.asarray(values, np.float64))
    return tree


def test_a_mass_finds_the_value_in_whose_share_it_lies():
    tree = tree_of([2.0, 0.0, 1.0, 3.0])
    assert tree.total == 6.0
    masses = np.array([0.0, 1.999, 2.0, 2.999, 3.0, 5.999])
    assert tree.find(masses).tolist() == [0, 0, 2, 2, 3, 3]


@pytest.mark.parametrize("size", [1, 15, 16, 17, 256, 257, 5000])
def test_trees_of_any_size_agree_with_plain_sums(size):
    rng = np.random.default_rng(size)
    values = np.zeros(size)
    tree = SumTree(size)
    for _ in range(5):
        index = rng.integers(0, size, 7)
        new = rng.random(7)
        tree.set(index, new)
        for i, value in zip(index, new, strict=True):
            values[i] = value
    assert tree.total == pytest.approx(values.sum(), rel=1e-12)
    np.testing.assert_array_equal(tree.get(np.arange(size)), values)
    masses = rng.random(200) * tree.total * (1 - 1e-9)
    np.testing.assert_array_equal(tree.find(masses), np.searchsorted(values.cumsum(), masses, side="right"))


def test_the_last_of_equal_indices_counts():
    tree = SumTree(20)
    tree.set(np.array([3, 3, 3]), np.array([1.0, 2.0, 5.0]))
    assert tree.total == 5.0


def test_one_value_for_all():
    tree = SumTree(40)
    tree.set(np.arange(10, 40), 0.5)
    assert tree.total == 15.0


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(0, 1e12, allow_subnormal=False), min_size=1, max_size=300).filter(any),
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
)
def test_a_value_of_zero_is_never_found(values, shares):
    """However the sums of the levels are rounded, up to and beyond the whole mass."""
    tree = tree_of(values)
    found = tree.find(np.array(shares) * tree.total)
    assert (found < len(values)).all()
    assert (tree.get(found) > 0).all()


def test_nothing_drifts():
    """After many changes the sums are those of a tree that was filled once, bit for bit."""
    rng = np.random.default_rng(0)
    tree = SumTree(1000)
    for _ in range(2000):
        tree.set(rng.integers(0, 1000, 32), rng.random(32) * 10.0 ** rng.integers(-9, 9))
    fresh = tree_of(tree.get(np.arange(1000)))
    assert tree.total == fresh.total
    masses = rng.random(500) * tree.total
    np.testing.assert_array_equal(tree.find(masses), fresh.find(masses))


def test_an_empty_tree_says_so():
    with pytest.raises(ValueError, match="all values of the sum tree are 0"):
        SumTree(9).find(np.array([0.0]))
    with pytest.raises(ValueError, match="at least 1 value, not 0"):
        SumTree(0)
