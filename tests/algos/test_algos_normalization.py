"""Running statistics, and when they become active."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from omnirl.algorithms.shared.acting.normalization import (
    ObservationNormalizer,
    ReturnNormalizer,
    RunningMeanStd,
    normalize,
)


@pytest.mark.parametrize("name", ["running_stats/chan_exact", "running_stats/chan_epsilon1e-4"])
def test_merged_statistics(golden, name):
    case = golden(name)
    stats = RunningMeanStd((2,), case["inputs"]["initial_count"])
    for batch, expected in zip(case["inputs"]["batches"], case["expected"]["after_each"], strict=True):
        stats.update(np.array(batch))
        np.testing.assert_allclose(stats.mean, expected["mean"], rtol=1e-9)
        np.testing.assert_allclose(stats.var, expected["var"], rtol=1e-9)
        assert stats.count == pytest.approx(expected["count"], rel=1e-12)
    result = normalize(np.array(case["inputs"]["obs"], np.float32), stats.mean, stats.scale())
    np.testing.assert_allclose(result, case["expected"]["normalised"], rtol=1e-5)


def test_k26_two_samplers_merged_equal_the_pooled_data():
    """{0, 2} and {4}: count 3, mean 2, variance 8/3."""
    stats = RunningMeanStd(())
    stats.update(np.array([0.0, 2.0]))
    other = RunningMeanStd(())
    other.update(np.array([4.0]))
    stats.merge(other.mean, other.var, other.count)
    assert (stats.count, float(stats.mean)) == (3.0, 2.0)
    assert float(stats.var) == pytest.approx(8 / 3)


def test_no_rows_and_rows_that_are_not_finite_change_nothing():
    stats = RunningMeanStd((1,))
    stats.update(np.array([[1.0], [3.0]]))
    stats.update(np.empty((0, 1)))
    stats.update(np.array([[np.nan], [1.0]]))
    stats.update(np.array([[np.inf]]))
    assert (stats.count, float(stats.mean[0]), float(stats.var[0])) == (2.0, 2.0, 1.0)


def test_observations_pass_unchanged_until_statistics_are_active():
    normalizer = ObservationNormalizer(1)
    rows = np.array([[3.0], [20.0]], np.float32)
    normalizer.observe(np.array([[2.0], [4.0]], np.float32))
    assert normalizer(rows).tolist() == [[3.0], [10.0]]  # the clip alone
    normalizer.activate()
    np.testing.assert_allclose(normalizer(rows), [[0.0], [10.0]], atol=1e-6)  # mean 3, deviation 1
    assert rows.tolist() == [[3.0], [20.0]]  # the input is left alone
    weights = normalizer.weights()
    assert set(weights) == set(ObservationNormalizer.NAMES)
    assert (float(weights["normalizer.mean"][0]), float(weights["normalizer.scale"][0])) == pytest.approx(
        (3, 1)
    )


def test_activation_without_observations_changes_nothing():
    normalizer = ObservationNormalizer(1)
    normalizer.activate()
    assert normalizer(np.array([[3.0]], np.float32)).tolist() == [[3.0]]


def test_reward_normalisation_step_by_step(golden, make_rollout):
    """One step per rollout, made active at once, gives VecNormalize's numbers."""
    case = golden("running_stats/reward_normalisation")
    normalizer = ReturnNormalizer(case["inputs"]["gamma"], count=1e-4)
    steps = zip(case["inputs"]["rewards"], case["inputs"]["dones"], case["expected"]["steps"], strict=True)
    for number, (reward, done, expected) in enumerate(steps):
        rewards = np.array([[reward]], np.float32)
        rollout = make_rollout(1, 1, rewards=rewards, number=number, every_step_ends=bool(done))
        normalizer.observe(rollout)
        normalizer.activate()
        assert float(normalizer.pending.var) == pytest.approx(expected["var"], rel=1e-6)
        assert float(normalizer(rewards)[0, 0]) == pytest.approx(expected["reward"], rel=1e-5, abs=1e-9)


def test_k26_returns_of_two_episodes_of_three_steps(make_rollout):
    """gamma 1, rewards 1: 1, 2, 3, 1, 2, 3 has mean 2, variance 2/3, count 6; across three rollouts of two
    steps."""
    normalizer = ReturnNormalizer(1.0)
    for number in range(3):
        rollout = make_rollout(2, 1, rewards=np.ones((2, 1), np.float32), number=number)
        ends = np.array([[2 * number + t in (2, 5)] for t in range(2)])
        normalizer.observe(dataclasses.replace(rollout, truncated=ends))
    assert normalizer.pending.count == 6
    assert float(normalizer.pending.mean) == pytest.approx(2.0)
    assert float(normalizer.pending.var) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("changes", "second"),
    [
        ({"number": 1}, 2.0),  # the next of the same stream goes on
        ({"number": 2}, 1.0),  # one was lost
        ({"number": 1, "incarnation": 1}, 1.0),  # the sampler was restarted
        ({"number": 1, "sampler": 1}, 1.0),  # another sampler's
    ],
)
def test_a_return_goes_on_only_in_its_own_stream(make_rollout, changes, second):
    normalizer = ReturnNormalizer(1.0)
    first = make_rollout(1, 1, rewards=np.ones((1, 1), np.float32))
    normalizer.observe(first)
    normalizer.observe(dataclasses.replace(first, **changes))
    assert float(normalizer.pending.mean) == pytest.approx((1.0 + second) / 2)


def test_a_return_starts_anew_with_an_episode_that_took_the_place_of_another(make_rollout):
    """Of two sub-environments one goes on after a restart, the other had to begin a new episode."""
    normalizer = ReturnNormalizer(1.0)
    first = make_rollout(1, 2, rewards=np.ones((1, 2), np.float32))
    normalizer.observe(first)
    begins = first.first.copy()
    begins[0, 1] = True
    normalizer.observe(dataclasses.replace(first, number=1, first=begins))
    assert float(normalizer.pending.mean) == pytest.approx((1 + 1 + 2 + 1) / 4)


def test_reward_scale_is_frozen_between_activations_but_there_at_the_first_update(make_rollout):
    normalizer = ReturnNormalizer(0.0)
    normalizer.observe(make_rollout(2, 1, rewards=np.array([[0.0], [4.0]], np.float32)))
    assert float(normalizer(np.ones(1))[0]) == 1.0
    normalizer.activate_first()
    assert float(normalizer(np.ones(1))[0]) == pytest.approx(0.5)  # returns 0 and 4 deviate by 2
    normalizer.observe(make_rollout(1, 1, rewards=np.array([[100.0]], np.float32), number=1))
    normalizer.activate_first()
    assert float(normalizer(np.ones(1))[0]) == pytest.approx(0.5)
    assert float(normalizer(np.array([-1e6]))[0]) == -10.0


def test_state_goes_on_where_it_was(make_rollout):
    original = ReturnNormalizer(0.9)
    original.observe(make_rollout(5, 2))
    original.activate()
    copy = ReturnNormalizer(0.9)
    copy.load_state_dict(original.state_dict())
    for normalizer in (original, copy):
        normalizer.observe(make_rollout(5, 2, seed=1, number=1))
    assert copy.scale == original.scale
    assert float(copy.pending.var) == float(original.pending.var)
    with pytest.raises(ValueError, match="shape"):
        ObservationNormalizer(2).load_state_dict(ObservationNormalizer(3).state_dict())
