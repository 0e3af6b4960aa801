"""The environment that a worker counts is, for a backend's own loops, the backend's environment."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.runtime.vital_signs import CountedEnvironment
from omnirl.testing.chains import Count
from omnirl.testing.inline import InlineEnvironment


def test_loops_of_a_backend_find_what_only_its_environment_has():
    inner = InlineEnvironment([Count(), Count()])
    counted = CountedEnvironment(inner)
    assert (counted.num_envs, counted.seedable) == (2, True)
    assert counted.singles is inner.singles
    counted.note = "for the loop"
    assert inner.note == "for the loop"
    with pytest.raises(AttributeError, match="walkers"):
        counted.walkers  # noqa: B018


def test_it_counts_resets_and_steps():
    counted = CountedEnvironment(InlineEnvironment([Count(), Count()]))
    for index in (0, 1):
        counted.reset(index, 0)
    assert counted.count == 2
    assert counted.step(np.zeros(2, np.int64)).obs.tolist() == [[1.0], [1.0]]
    assert counted.count == 3
    counted.close()
    assert counted.closed
