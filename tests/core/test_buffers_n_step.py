"""n-step windows against hand-computed numbers and a slow version written from the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnirl.buffers.n_step import NStep
from omnirl.testing.rollouts import final_observation_at, make_rollout, observation_at

REWARD = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def rows(blocks):
    """Every window as (obs, action, reward, next_obs, discount), in order."""
    return [
        row
        for w in blocks
        for row in zip(
            w.obs[:, 0].tolist(),
            w.action.tolist(),
            w.reward.tolist(),
            w.next_obs[:, 0].tolist(),
            w.discount.tolist(),
            strict=True,
        )
    ]


def approx(expected):
    return [pytest.approx(row, rel=1e-6) for row in expected]


def test_golden_n3_terminated_at_2_truncated_at_5():
    rollout = make_rollout(REWARD, terminated=[(2, 0)], truncated=[(5, 0)])
    assert rows(NStep(3, 0.9).add(rollout)) == approx(
        [
            (0, 0, 5.23, 3.5, 0.0),
            (1, 1, 4.7, 3.5, 0.0),
            (2, 2, 3.0, 3.5, 0.0),
            (3, 3, 13.36, 6.5, 0.729),
            (4, 4, 10.4, 6.5, 0.81),  # two steps before the truncation: gamma^2, not gamma^3
            (5, 5, 6.0, 6.5, 0.9),
        ]  # 6 and 7 wait: their windows are not complete
    )


def test_golden_n1():
    rollout = make_rollout(REWARD, terminated=[(2, 0)], truncated=[(5, 0)])
    next_obs = [1, 2, 3.5, 4, 5, 6.5, 7, 8]
    discount = [0.9, 0.9, 0.0, 0.9, 0.9, 0.9, 0.9, 0.9]
    expected = [(t, t, REWARD[t], next_obs[t], discount[t]) for t in range(8)]
    assert rows(NStep(1, 0.9).add(rollout)) == approx(expected)


def test_k07_the_reward_of_the_terminal_step_counts_and_nothing_after_it():
    rollout = make_rollout([1.0, 2.0, 4.0, 8.0], terminated=[(1, 0)])
    first = rows(NStep(3, 0.9).add(rollout))[0]
    assert first == pytest.approx((0, 0, 2.8, 2.5, 0.0))  # not 1.0, not 6.04


def test_an_end_in_both_flags_is_a_termination():
    rollout = make_rollout([1.0, 1.0], terminated=[(1, 0)], truncated=[(1, 0)])
    assert [row[-1] for row in rows(NStep(2, 0.9).add(rollout))] == [0.0, 0.0]


def test_windows_go_on_in_the_samplers_next_rollout():
    n_step = NStep(3, 0.9)
    assert rows(n_step.add(make_rollout([1.0, 2.0]))) == []
    got = rows(n_step.add(make_rollout([3.0, 4.0], start=2, number=1)))
    # 1 + 0.9 * 2 + 0.81 * 3 and 2 + 0.9 * 3 + 0.81 * 4, both gamma^3 away from the end of the window
    assert got == approx([(0, 0, 5.23, 3, 0.729), (1, 1, 7.94, 4, 0.729)])
    got = rows(n_step.add(make_rollout([5.0], start=4, number=2, truncated=[(0, 0)])))
    assert got == approx([(2, 2, 10.65, 5.5, 0.729), (3, 3, 8.5, 5.5, 0.81), (4, 4, 5.0, 5.5, 0.9)])


@pytest.mark.parametrize("other", [{"number": 2}, {"number": 0}, {"number": 1, "incarnation": 1}])
def test_windows_end_where_the_stream_breaks_off(other):
    n_step = NStep(3, 0.9)
    n_step.add(make_rollout([1.0, 2.0]))
    blocks = n_step.add(make_rollout([3.0, 4.0, 5.0], start=50, **other))
    assert len(blocks) == 2
    # Bootstrapped from the last observation known, with the steps really in the window.
    assert rows(blocks[:1]) == approx([(0, 0, 2.8, 2, 0.81), (1, 1, 2.0, 2, 0.9)])
    assert rows(blocks[1:]) == approx([(50, 50, 3.0 + 3.6 + 4.05, 53, 0.729)])


def test_windows_end_where_a_new_episode_took_the_place_of_one_that_could_not_be_repeated():
    """After a restart one of two sub-environments goes on, the other had to begin anew: nothing of the new episode gets
    into the old one's windows, which bootstrap from the last observation known."""
    n_step = NStep(3, 0.9)
    n_step.add(make_rollout([[1.0, 1.0], [2.0, 2.0]]))
    after = make_rollout([[3.0, 30.0], [4.0, 40.0]], start=2, number=1)
    after.first[0, 1] = True
    assert rows(n_step.add(after)) == approx(
        [
            (0, 0, 5.23, 3, 0.729),
            (1000, 0, 2.8, 1002, 0.81),  # not 1 + 0.9 * 2 + 0.81 * 30
            (1, 1, 7.94, 4, 0.729),
            (1001, 1, 2.0, 1002, 0.9),
        ]
    )
    after = make_rollout([[5.0, 50.0]], start=4, number=2)
    assert rows(n_step.add(after)) == approx([(2, 2, 10.65, 5, 0.729), (1002, 2, 106.5, 1005, 0.729)])


def test_a_break_hands_out_only_the_windows_that_were_waiting():
    n_step = NStep(3, 0.9)
    assert len(rows(n_step.add(make_rollout([1.0, 2.0], terminated=[(0, 0)])))) == 1
    flushed = n_step.add(make_rollout([0.0], number=5))[0]
    assert rows([flushed]) == approx([(1, 1, 2.0, 2, 0.9)])


def test_samplers_have_streams_of_their_own():
    n_step = NStep(2, 0.5)
    n_step.add(make_rollout([1.0], sampler=0))
    n_step.add(make_rollout([10.0], sampler=1))
    assert rows(n_step.add(make_rollout([2.0], sampler=0, start=1, number=1))) == [(0, 0, 2.0, 2, 0.25)]
    assert rows(n_step.add(make_rollout([20.0], sampler=1, start=1, number=1))) == [(0, 0, 20.0, 2, 0.25)]


def test_sub_environments_do_not_mix():
    rollout = make_rollout([[1.0, 10.0], [2.0, 20.0]], terminated=[(0, 1)])
    got = rows(NStep(2, 0.5).add(rollout))
    assert got == [(0, 0, 2.0, 2, 0.25), (1000, 0, 10.0, 1001.5, 0.0)]


def slow_windows(reward, terminated, truncated, n, gamma):
    """The definition, step by step: {(t, b): (reward, last step, discount, complete)}."""
    windows = {}
    steps, envs = reward.shape
    for b in range(envs):
        for t in range(steps):
            total, complete, discount, k = 0.0, False, 1.0, 0
            while k < n and t + k < steps:
                total += gamma**k * float(reward[t + k, b])
                k += 1
                discount = gamma**k
                if terminated[t + k - 1, b]:
                    discount = 0.0
                complete = k == n or bool(terminated[t + k - 1, b] or truncated[t + k - 1, b])
                if complete:
                    break
            windows[t, b] = (total, t + k - 1, discount, complete)
    return windows


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 6),
    envs=st.integers(1, 3),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    rate=st.sampled_from([0.0, 0.2, 0.6]),
)
def test_any_cut_into_rollouts_gives_the_windows_of_the_definition(seed, n, envs, lengths, rate):
    rng = np.random.default_rng(seed)
    steps = sum(lengths)
    reward = rng.integers(-5, 6, (steps, envs)).astype(np.float32)
    terminated = rng.random((steps, envs)) < rate / 2
    truncated = rng.random((steps, envs)) < rate / 2
    n_step, start, got = NStep(n, 0.9), 0, []
    for number, length in enumerate(lengths):
        part = slice(start, start + length)
        rollout = make_rollout(
            reward[part],
            terminated=np.argwhere(terminated[part]),
            truncated=np.argwhere(truncated[part]),
            start=start,
            number=number,
        )
        restored = NStep(n, 0.9)
        restored.load_state_dict(n_step.state_dict())
        new = rows(n_step.add(rollout))
        assert rows(restored.add(rollout)) == new  # a restored one goes on the same
        got += new
        start += length
    flushed = rows(n_step.add(make_rollout(np.zeros((1, envs)), start=start, number=99))[:1]) if n > 1 else []

    def expected(complete):
        result = []
        for (t, b), (total, last, discount, done) in slow_windows(
            reward, terminated, truncated, n, 0.9
        ).items():
            if done == complete:
                ended = terminated[last, b] or truncated[last, b]
                at = final_observation_at(last, b) if ended else observation_at(last + 1, b)
                result.append(approx([(observation_at(t, b), t, total, at, discount)])[0])
        return result

    assert sorted(got) == sorted(expected(True), key=lambda row: row.expected[:2])
    assert sorted(flushed) == sorted(expected(False), key=lambda row: row.expected[:2])


def test_a_mapping_of_observations_goes_through_entry_by_entry():
    def mapping(start, number):
        plain = make_rollout([1.0, 1.0], start=start, number=number)
        names = {"x": plain.obs, "a/b": (plain.obs[..., 0] * 10).astype(np.int64)}
        finals = {"x": plain.final_obs, "a/b": np.empty(0, np.int64)}
        return type(plain)(**{**vars(plain), "obs": names, "final_obs": finals})

    n_step = NStep(3, 1.0)
    n_step.add(mapping(0, 0))
    restored = NStep(3, 1.0)
    restored.load_state_dict(n_step.state_dict())
    (windows,) = restored.add(mapping(2, 1))
    assert windows.obs["x"][:, 0].tolist() == [0, 1]
    assert windows.next_obs["a/b"].tolist() == [30, 40]
    assert windows.next_obs["a/b"].dtype == np.int64


def test_the_state_shares_no_memory_and_holds_at_most_n_minus_1_steps():
    n_step = NStep(3, 0.9)
    n_step.add(make_rollout(REWARD))
    state = n_step.state_dict()
    assert state["0"]["reward"].tolist() == [[7.0], [8.0]]
    state["0"]["reward"][:] = 100.0
    assert rows(n_step.add(make_rollout([0.0], start=8, number=1))) == approx([(6, 6, 14.2, 9, 0.729)])


def test_pending_steps_do_not_follow_a_rollout_that_is_changed_afterwards():
    n_step, rollout = NStep(2, 1.0), make_rollout([1.0])
    n_step.add(rollout)
    rollout.obs[:] = -1
    rollout.reward[:] = -1
    assert rows(n_step.add(make_rollout([2.0], start=1, number=1))) == [(0, 0, 3.0, 2, 1.0)]


def test_n_of_zero_is_refused():
    with pytest.raises(ValueError, match="n must be at least 1, not 0"):
        NStep(0, 0.9)
