"""Going on exactly: restored into fresh environments, a collector continues bit for bit or says so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnirl.api import CheckpointError, DiscreteAction, EnvContext
from omnirl.loops import observations
from omnirl.loops.collection import collect_loop
from omnirl.loops.history import ActionHistory
from omnirl.testing.chains import Chain, Count
from omnirl.testing.environments import PropConfig, build_env, get_env_spec
from omnirl.testing.fakes import FakePolicy, FakeStreams, RecordingEnvironment, vector_spec
from omnirl.testing.inline import InlineEnvironment
from omnirl.testing.probes import OneStep

CHAIN = vector_spec(5, DiscreteAction(2))
COUNT = vector_spec(1, DiscreteAction(2))
FIELDS = (
    "obs",
    "first",
    "action",
    "reward",
    "terminated",
    "truncated",
    "final_obs",
    "final_at",
    "number",
    "version",
    "env_steps",
)


def assert_equal(left, right):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name, strict=True)
    assert set(left.extras) == set(right.extras)
    for name, value in left.extras.items():
        np.testing.assert_array_equal(value, right.extras[name], err_msg=name, strict=True)


def build(singles, spec, length):
    environment = RecordingEnvironment(InlineEnvironment(singles), spec)
    return collect_loop(environment, FakePolicy(spec, len(singles)), length, FakeStreams()), environment


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_three_rollouts_equal_some_then_save_restore_and_the_rest(cut):
    whole, _ = build([Chain() for _ in range(3)], CHAIN, 7)
    expected = [whole.collect(n, 21 * n) for n in range(3)]

    before, _ = build([Chain() for _ in range(3)], CHAIN, 7)
    got = [before.collect(n, 21 * n) for n in range(cut)]
    state = before.state_dict()
    after, _ = build([Chain() for _ in range(3)], CHAIN, 7)
    assert after.load_state_dict(state) is True
    got += [after.collect(n, 21 * n) for n in range(cut, 3)]
    for left, right in zip(expected, got, strict=True):
        assert_equal(left, right)


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    unroll=st.integers(1, 6),
    cuts=st.lists(st.integers(0, 4), min_size=1, max_size=3),
)
def test_any_staggering_of_episodes_is_repeated(lengths, unroll, cuts):
    """Restored again and again, also right after a restore, with episodes that began at different steps."""

    def singles():
        return [Count(length, terminate=length % 2 == 0) for length in lengths]

    whole, _ = build(singles(), COUNT, unroll)
    current, _ = build(singles(), COUNT, unroll)
    for cut in cuts:
        for _ in range(cut):
            assert_equal(whole.collect(0, 0), current.collect(0, 0))
        restored, _ = build(singles(), COUNT, unroll)
        assert restored.load_state_dict(current.state_dict())
        current = restored
    assert_equal(whole.collect(0, 0), current.collect(0, 0))


def test_continuous_actions_are_replayed_in_their_own_bits():
    config = PropConfig(id="box", low=-2.0, high=4.0)
    spec = get_env_spec(config)

    def fresh():
        environment = build_env(config, EnvContext("sampler", 0, 2))
        return collect_loop(environment, FakePolicy(spec, 2), 4, FakeStreams()), environment

    loop, _ = fresh()
    rollout = loop.collect(0, 0)
    restored, environment = fresh()
    assert restored.load_state_dict(loop.state_dict())
    assert [a.tobytes() for a in environment.singles[1].actions] == [
        a.tobytes() for a in rollout.action[:, 1]
    ]
    assert_equal(loop.collect(0, 8), restored.collect(0, 8))


def test_saving_has_no_side_effect_and_shares_no_memory():
    saved, _ = build([Chain(), Chain()], CHAIN, 5)
    plain, _ = build([Chain(), Chain()], CHAIN, 5)
    for _ in range(3):
        assert_equal(saved.collect(0, 0), plain.collect(0, 0))
        for value in saved.state_dict().values():
            if isinstance(value, np.ndarray):
                value[...] = 0
    rollout = saved.collect(0, 0)
    # Whoever got the rollout may do with it as they like.
    rollout.action[:] = 1 - rollout.action
    rollout.obs[:] = -1
    plain.collect(0, 0)
    for name, value in plain.state_dict().items():
        np.testing.assert_array_equal(saved.state_dict()[name], value, err_msg=name)
    restored, _ = build([Chain(), Chain()], CHAIN, 5)
    assert restored.load_state_dict(saved.state_dict())
    assert restored.state_dict()["policy"] == {"calls": 20}
    assert_equal(plain.collect(0, 0), restored.collect(0, 0))


def test_the_state_is_the_actions_of_the_unfinished_episodes_and_no_more():
    loop, _ = build([Count(3), Count(4)], COUNT, 4)
    rollouts = [loop.collect(0, 0) for _ in range(2)]
    state = loop.state_dict()
    # After 8 steps: 0 is in its third episode, begun at step 6; 1 has just begun its third.
    assert state["episodes"].tolist() == [2, 2]
    assert state["starts"].tolist() == [0, 2]
    np.testing.assert_array_equal(state["actions"], rollouts[1].action[2:])
    assert state["policy"] == {"calls": 8}
    assert (state["number"], state["begun"], state["digests"].shape) == (2, True, (2, 32))


def test_history_stays_as_short_as_the_oldest_episode():
    history = ActionHistory(2)
    for n in range(100):
        history.begin(0, ahead=1)
        history.begin(1, ahead=2)
        history.extend(np.full((3, 2), n))
        assert history.since_oldest()[0].tolist() == [[n, n], [n, n]]
        assert history.since_oldest()[1].tolist() == [0, 1]
        assert len(history._blocks) == 1
    for i in range(2):
        history.begin(i, ahead=3)
    history.extend(np.zeros((3, 2)))
    assert len(history._blocks) == 0  # all episodes ended with the block
    assert history.since_oldest()[1].tolist() == [0, 0]


class Drifting(Count):
    """Observes a number that no seed decides, as a simulator with hidden state does."""

    lives = 0

    def reset(self, seed):
        Drifting.lives += 1
        self.offset = 100 * Drifting.lives
        self.seeds = [*getattr(self, "seeds", []), seed]
        return super().reset(seed) + self.offset

    def step(self, action):
        obs, *rest = super().step(action)
        return (obs + self.offset, *rest)


def test_a_sub_environment_that_differs_begins_its_next_episode():
    loop, _ = build([Drifting(8), Count(8)], COUNT, 3)
    loop.collect(0, 0)
    restored, environment = build([Drifting(8), Count(8)], COUNT, 3)
    assert restored.load_state_dict(loop.state_dict()) is False
    assert environment.resets == [(0, 0), (1, 1000), (0, 1)]
    rollout = restored.collect(0, 6)
    assert rollout.first.T.tolist() == [[True, False, False, False], [False] * 4]
    assert rollout.obs[:, 1, 0].tolist() == [3, 4, 5, 6]  # the other one goes on
    assert rollout.number == 1
    # The state after a mismatch is sound again for the one that repeats, whatever the other does.
    assert restored.state_dict()["episodes"].tolist() == [1, 0]
    assert restored.state_dict()["starts"].tolist() == [3, 0]


def test_an_episode_that_ends_while_it_is_repeated_counts_as_different():
    loop, _ = build([Count(8)], COUNT, 3)
    loop.collect(0, 0)
    # 3 = 0 + 3 steps of an episode that now ends after 2: the last observation alone would not tell.
    restored, environment = build([Count(2)], COUNT, 3)
    state = dict(loop.state_dict())
    probe, _ = build([Count(2)], COUNT, 3)
    probe.collect(0, 0)
    state["digests"] = probe.state_dict()["digests"]
    assert restored.load_state_dict(state) is False
    assert environment.resets[-1] == (0, 1)


def test_an_environment_that_takes_no_seeds_begins_anew_without_a_replay():
    loop, _ = build([Count(8)], COUNT, 3)
    loop.collect(0, 0)
    inner = InlineEnvironment([Count(8)])
    inner.seedable = False
    environment = RecordingEnvironment(inner, COUNT)
    restored = collect_loop(environment, FakePolicy(COUNT, 1), 3, FakeStreams())
    assert restored.load_state_dict(loop.state_dict()) is False
    assert environment.actions == []
    assert restored.collect(0, 3).first[:, 0].tolist() == [True, False, False, False]


def test_an_environment_that_takes_no_seeds_is_never_exact_though_it_looks_the_same():
    """Saved where an episode has just begun: a fresh one shows the same first observation."""
    loop, _ = build([Count(3)], COUNT, 3)
    loop.collect(0, 0)
    inner = InlineEnvironment([Count(3)])
    inner.seedable = False
    restored = collect_loop(inner, FakePolicy(COUNT, 1), 3, FakeStreams())
    assert restored.load_state_dict(loop.state_dict()) is False


def test_a_digest_tells_types_shapes_and_names_apart():
    """All of these are the same sixteen bytes."""
    zeros = np.zeros(4, np.float32)
    same = [zeros, zeros.view(np.int32), zeros.reshape(2, 2), zeros.view(np.float64)]
    mappings = [{"a": zeros}, {"b": zeros}, {"a": zeros[:2], "b": zeros[2:]}]
    digests = {observations.digest(obs).tobytes() for obs in [*same, *mappings]}
    assert len(digests) == 7
    one, two = {"a": zeros, "b": zeros[:1]}, {"b": zeros[:1], "a": zeros}
    np.testing.assert_array_equal(observations.digest(one), observations.digest(two))


def test_the_state_of_another_number_of_environments_is_refused():
    loop, _ = build([Count(8)] * 2, COUNT, 3)
    restored, _ = build([Count(8)], COUNT, 3)
    with pytest.raises(CheckpointError, match="has 2 environments, this one 1"):
        restored.load_state_dict(loop.state_dict())


def test_signed_first_observations_come_back_from_their_seeds():
    def singles():
        return [OneStep(DiscreteAction(2), lambda obs, action: obs, signed=True) for _ in range(4)]

    loop, _ = build(singles(), COUNT, 5)
    loop.collect(0, 0)
    restored, environment = build(singles(), COUNT, 5)
    assert restored.load_state_dict(loop.state_dict())
    assert environment.actions == []  # every episode has just begun: nothing to replay
    assert_equal(loop.collect(0, 0), restored.collect(0, 0))
