"""Draws of a batch: a fraction of the hash's output, the same for the same key."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from omnirl.buffers.draws import uniform_draws


def test_a_draw_is_the_leading_bits_of_the_hash():
    digest = hashlib.shake_128(b"12/3").digest(24)
    expected = [(int.from_bytes(digest[i : i + 8], "little") >> 11) / 2**53 for i in (0, 8, 16)]
    draws = uniform_draws(12, 3, 3)
    assert draws.dtype == np.float64
    assert draws.tolist() == expected


def test_the_key_is_the_seed_and_the_rank():
    assert uniform_draws(12, 3, 4).tolist() != uniform_draws(123, 0, 4).tolist()
    assert uniform_draws(12, 3, 4).tolist() == uniform_draws(12, 3, 9)[:4].tolist()


def test_draws_are_below_one_uniform_and_independent_between_seeds():
    draws = np.stack([uniform_draws(seed, 0, 64) for seed in range(2000)])
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    counts = np.bincount((draws * 16).astype(int).reshape(-1), minlength=16)
    assert ((counts - 8000) ** 2 / 8000).sum() < 37.7  # chi-square, 15 degrees of freedom: once in a thousand
    assert np.corrcoef(draws[:-1, 0], draws[1:, 0])[0, 1] == pytest.approx(0, abs=0.08)


@pytest.mark.parametrize("size", [1, 3, 1000, 2**20, 10**6 + 1])
def test_the_greatest_draw_stays_below_any_size(size):
    assert int((1.0 - 2.0**-53) * size) == size - 1
