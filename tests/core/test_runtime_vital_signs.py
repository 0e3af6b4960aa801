"""The environment that a worker counts is, for a backend's own loops, the backend's environment."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from omnirl.runtime.vital_signs import CountedEnvironment, nonfinite_value
from omnirl.testing.chains import Count
from omnirl.testing.inline import InlineEnvironment
from omnirl.testing.rollouts import make_rollout


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


@pytest.mark.parametrize("lead_in", [0, 3])
def test_the_step_that_gave_a_nan_is_counted_from_one(lead_in):
    """Row 0 is from before the rollout's first step; of stacked frames older rows stand before that."""
    rollout = make_rollout(np.zeros((4, 2)))
    obs = np.concatenate([np.repeat(rollout.obs[:1], lead_in, axis=0), rollout.obs])
    assert nonfinite_value(dataclasses.replace(rollout, obs=obs), 100) == ""
    obs[lead_in + 3, 1] = np.inf
    assert nonfinite_value(dataclasses.replace(rollout, obs=obs), 100) == "env step 103, observation is inf"


def test_a_final_observation_is_that_of_its_step():
    rollout = make_rollout(np.zeros((4, 2)), terminated=[(2, 0)])
    final = np.full_like(rollout.final_obs, np.nan)
    found = nonfinite_value(dataclasses.replace(rollout, final_obs=final), 100)
    assert found == "env step 103, final observation is nan"
