"""Prioritized replay: what is drawn how often, with which weight, and what feedback may change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnirl.api import ArraySpec, Clock, Constant, DiscreteAction, EnvSpec, Feedback, Linear
from omnirl.buffers import frame_store
from omnirl.buffers.prioritized import PrioritizedReplay
from omnirl.buffers.replay import ReplaySettings
from omnirl.buffers.shards import ALONE
from omnirl.loops.collection import collect_loop
from omnirl.testing import trees
from omnirl.testing.fakes import FakePolicy, FakeStreams
from omnirl.testing.noise import Noise, NoiseEnvironment
from omnirl.testing.rollouts import make_rollout

TINY = 1e-300  # as good as no epsilon


def clock(seed=0, progress=0.0):
    return Clock(update=0, env_steps=0, progress=progress, seed=seed)


def replay(capacity, batch_size=1, context=ALONE, *, alpha=0.5, beta=0.5, epsilon=TINY):
    return PrioritizedReplay(
        ArraySpec((1,)),
        DiscreteAction(2),
        ReplaySettings(capacity, batch_size),
        context,
        alpha=alpha,
        beta=Constant(value=beta) if isinstance(beta, float) else beta,
        epsilon=epsilon,
    )


def filled(errors, **options):
    """A replay of one transition per error, with that error told; transition i observes i."""
    memory = replay(len(errors), len(errors), **options)
    memory.add(make_rollout([0.0] * len(errors)), due=0)
    memory.feedback(Feedback(np.arange(len(errors)), np.array(errors, np.float32)))
    return memory


def frequencies(memory, batches=2000):
    drawn = np.concatenate([memory.next_batch(clock(seed)).obs[:, 0] for seed in range(batches)])
    return np.bincount(drawn.astype(int), minlength=len(memory)) / len(drawn)


def test_k09_a_new_transition_has_the_greatest_priority_once_to_the_exponent():
    """|error| 16 and alpha 0.5 are a mass of 4, and the new one's is the same: each is drawn half the time."""
    memory = replay(2, 1, alpha=0.5)
    memory.add(make_rollout([0.0]), due=0)
    memory.feedback(Feedback(np.array([0]), np.array([16.0], np.float32)))
    memory.add(make_rollout([0.0], start=1, number=1), due=0)
    assert memory._tree.get(np.array([0, 1])).tolist() == [4.0, 4.0]
    np.testing.assert_allclose(frequencies(memory), [0.5, 0.5], atol=0.03)


def test_k10_probabilities_and_weights():
    memory = filled([4.0, 1.0, 1.0, 2.0], alpha=0.5, beta=0.5)
    np.testing.assert_allclose(frequencies(memory), [0.369398, 0.184699, 0.184699, 0.261204], atol=0.01)
    weights = {0: 0.707107, 1: 1.0, 2: 1.0, 3: 0.840896}
    seen = set()
    for seed in range(50):
        batch = memory.next_batch(clock(seed))
        drawn = batch.obs[:, 0].astype(int).tolist()
        greatest = max(weights[i] for i in drawn)
        np.testing.assert_allclose(batch.weight, [weights[i] / greatest for i in drawn], atol=1e-6)
        assert batch.weight.dtype == np.float32
        seen |= set(drawn)
    assert seen == {0, 1, 2, 3}


def test_k10_alpha_0_is_uniform_and_weighs_nothing():
    memory = filled([4.0, 1.0, 1.0, 2.0], alpha=0.0)
    np.testing.assert_allclose(frequencies(memory), [0.25] * 4, atol=0.01)
    assert memory.next_batch(clock()).weight.tolist() == [1.0] * 4


def test_k10_an_error_of_zero_can_be_drawn_and_has_a_finite_weight():
    memory = filled([0.0, 1.0], alpha=0.6, beta=1.0, epsilon=1e-6)
    rare = [b for b in (memory.next_batch(clock(s)) for s in range(20_000)) if (b.obs[:, 0] == 0).any()]
    assert 0 < len(rare) < 50  # its share is 2.5e-4
    for batch in rare:
        assert np.isfinite(batch.weight).all()
        assert batch.weight.max() == 1.0


def test_k10_all_errors_zero():
    memory = filled([0.0] * 3, alpha=0.6, epsilon=1e-6)
    assert memory.next_batch(clock()).weight.tolist() == [1.0] * 3


def test_k10_beta_is_a_schedule_that_ends_at_1():
    beta = Linear(kind="linear", start=0.4, end=1.0)
    memory = filled([4.0, 1.0], alpha=0.5, beta=beta)  # P is 2/3 and 1/3
    for progress, value in ((0.0, 0.4), (0.25, 0.55), (0.5, 0.7), (1.0, 1.0), (2.0, 1.0)):
        batches = (memory.next_batch(clock(seed, progress)) for seed in range(100))
        batch = next(b for b in batches if set(b.obs[:, 0].tolist()) == {0.0, 1.0})
        assert batch.weight.min() == pytest.approx(0.5**value, rel=1e-5)


def test_each_of_equal_parts_of_the_mass_gives_one():
    """Ten equal priorities and a batch of ten: every transition once, whatever the draws."""
    memory = filled([1.0] * 10)
    for seed in range(20):
        assert memory.next_batch(clock(seed)).obs[:, 0].tolist() == list(range(10))


def test_feedback_for_a_slot_that_was_written_over_changes_nothing():
    memory = filled([1.0, 1.0, 1.0])
    batch = memory.next_batch(clock())
    assert sorted(batch.index.tolist()) == [0, 1, 2]
    memory.add(make_rollout([0.0, 0.0], start=10, number=1), due=0)  # into the slots of 0 and 1
    memory.feedback(Feedback(batch.index, np.full(3, 100.0, np.float32)))
    assert memory._tree.get(np.arange(3)).tolist() == [1.0, 1.0, 10.0]
    later = memory.next_batch(clock())
    assert set(later.index.tolist()) <= {2, 3, 4}
    assert (
        dict(zip(later.index.tolist(), later.obs[:, 0].tolist(), strict=True)).items()
        <= {
            2: 2.0,
            3: 10.0,
            4: 11.0,
        }.items()
    )


def test_errors_that_are_not_finite_change_nothing():
    memory = filled([4.0, 4.0, 4.0])
    memory.feedback(Feedback(np.arange(3), np.array([np.nan, np.inf, 9.0], np.float32)))
    assert memory._tree.get(np.arange(3)).tolist() == [2.0, 2.0, 3.0]
    memory.add(make_rollout([0.0], start=3, number=1), due=0)
    assert memory._tree.get(np.array([0])).tolist() == [3.0]


def test_the_greatest_priority_is_that_of_all_time():
    memory = filled([9.0, 1.0])
    memory.feedback(Feedback(np.array([0]), np.array([1.0], np.float32)))
    memory.add(make_rollout([0.0], start=2, number=1), due=0)
    assert memory._tree.get(np.arange(2)).tolist() == [3.0, 1.0]


@settings(max_examples=50, deadline=None)
@given(
    capacity=st.integers(1, 12),
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    reload=st.integers(0, 5),
)
def test_every_transition_keeps_its_own_priority_round_the_ring(capacity, lengths, reload):
    """Each is told an error of its own number + 1 as it comes; a save and a load in between."""
    memory, written, start = replay(capacity, alpha=1.0), [None] * capacity, 0
    total = 0
    for number, length in enumerate(lengths):
        memory.add(make_rollout([0.0] * length, start=start, number=number), due=0)
        for value in range(start, start + length):
            written[total % capacity] = value
            total += 1
        start += length
        held = np.array([value for value in written if value is not None])
        numbers = memory._total - 1 - (memory._total - 1 - np.arange(len(held))) % capacity
        memory.feedback(Feedback(numbers, (held + 1).astype(np.float32)))
        if number == reload:
            fresh = replay(capacity, alpha=1.0)
            fresh.load_state_dict(memory.state_dict())
            memory = fresh
        np.testing.assert_array_equal(memory._tree.get(np.arange(len(held))), held + 1.0)
        assert memory._tree.total == (held + 1.0).sum()


def test_a_restored_memory_goes_on_bit_for_bit():
    original = replay(50, 8, alpha=0.6, epsilon=1e-6)

    def go_on(memory, rounds):
        for number in rounds:
            memory.add(make_rollout([1.0] * 9, start=9 * number, number=number), due=0)
            batch = memory.next_batch(clock(number))
            memory.feedback(Feedback(batch.index, 3.0 * np.abs(np.sin(batch.obs[:, 0]))))  # beyond 1

    go_on(original, range(10))
    restored = replay(50, 8, alpha=0.6, epsilon=1e-6)
    restored.load_state_dict(trees.through_a_checkpoint(original.state_dict()))
    for memory in (original, restored):
        go_on(memory, range(10, 20))
    trees.assert_same(restored.state_dict(), original.state_dict(), "the restored memory")
    for seed in range(5):
        ours, theirs = (memory.next_batch(clock(seed)) for memory in (original, restored))
        np.testing.assert_array_equal(ours.obs, theirs.obs)
        np.testing.assert_array_equal(ours.weight, theirs.weight)


@pytest.mark.parametrize(("capacity", "held"), [(2, [2, 3]), (10, [0, 1, 2, 3])])
def test_another_capacity_keeps_the_newest_with_their_priorities(capacity, held):
    memory = filled([1.0, 4.0, 9.0, 16.0])
    other = replay(capacity)
    other.load_state_dict(memory.state_dict())
    masses = {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}
    assert len(other) == len(held)
    assert other._tree.total == sum(masses[i] for i in held)
    np.testing.assert_allclose(
        frequencies(other)[held], np.array([masses[i] for i in held]) / other._tree.total, atol=0.03
    )


def test_images_that_are_gone_before_their_turn_have_no_share(monkeypatch):
    """Short episodes use up the frames: fewer transitions are held than fit, and only those can be drawn."""
    monkeypatch.setattr(frame_store, "frame_slots", lambda transitions: transitions + 15)
    spec = ArraySpec((2, 2, 3), "uint8", "image", frame_stack=3)
    env = EnvSpec(spec, DiscreteAction(2))
    environment = NoiseEnvironment(env, 2, Noise(terminates=0.4, truncates=0.2))
    loop = collect_loop(environment, FakePolicy(env, 2), 5, FakeStreams(0), spec)
    memory = PrioritizedReplay(
        spec, env.action, ReplaySettings(40, 4), alpha=1.0, beta=Constant(value=1.0), epsilon=TINY
    )
    fewest = 40
    for number in range(30):
        memory.add(loop.collect(0, 0), due=0)
        held = sorted(memory._held().tolist())
        assert np.flatnonzero(memory._tree.get(np.arange(40))).tolist() == held
        if len(memory) >= 4:
            batch = memory.next_batch(clock(number))
            assert batch.obs.shape == (4, 6, 2, 3)
            memory.feedback(Feedback(batch.index, np.full(4, 2.0, np.float32)))
            assert np.flatnonzero(memory._tree.get(np.arange(40))).tolist() == held
        if number > 8:
            fewest = min(fewest, len(memory))
    assert fewest < 40


def test_less_than_a_batch_and_impossible_exponents_are_refused():
    with pytest.raises(RuntimeError, match="replay holds 0 transitions"):
        replay(4, 2).next_batch(clock())
    for wrong in ({"alpha": 1.5}, {"alpha": -0.1}, {"epsilon": 0.0}):
        with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\] and epsilon positive"):
            replay(4, **wrong)
