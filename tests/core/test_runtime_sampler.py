"""What a sampler tells of the episodes it finished."""

from __future__ import annotations

from omnirl.runtime.sampler import EpisodeTotals
from omnirl.testing.rollouts import make_rollout


def test_an_episode_is_summed_over_the_rollouts_that_it_spans():
    totals = EpisodeTotals(2)
    assert totals.add(make_rollout([[1.0, 10.0], [2.0, 20.0]], truncated=[(0, 1)])) == [(10.0, 1)]
    after = make_rollout([[3.0, 30.0], [4.0, 40.0]], start=2, number=1, terminated=[(0, 0), (1, 1)])
    assert totals.add(after) == [(6.0, 3), (90.0, 3)]


def test_an_episode_that_took_the_place_of_one_that_could_not_be_repeated_counts_from_its_own_start():
    """After a restart the first sub-environment goes on, the second had to begin anew."""
    totals = EpisodeTotals(2)
    totals.add(make_rollout([[1.0, 100.0], [2.0, 200.0]]))
    after = make_rollout([[3.0, 30.0], [4.0, 40.0]], start=2, number=1, terminated=[(1, 0), (1, 1)])
    after.first[0, 1] = True
    assert totals.add(after) == [(10.0, 4), (70.0, 2)]
