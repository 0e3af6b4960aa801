"""Uniform replay: what is stored, what is overwritten, what is drawn, and an exact state."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnirl.api import (
    ArraySpec,
    CheckpointError,
    Clock,
    ContinuousAction,
    DictSpec,
    DiscreteAction,
    EnvContext,
    Feedback,
    MemoryContext,
    MultiDiscreteAction,
)
from omnirl.buffers.replay import ReplayMemory, ReplaySettings, row_dtype
from omnirl.buffers.shards import ALONE
from omnirl.loops.collection import collect_loop
from omnirl.testing.environments import PropConfig, build_env, get_env_spec
from omnirl.testing.fakes import FakePolicy, FakeStreams
from omnirl.testing.rollouts import make_rollout

OBSERVATION, ACTION = ArraySpec((1,)), DiscreteAction(2)


def clock(seed=0, update=0):
    return Clock(update=update, env_steps=0, progress=0.0, seed=seed)


def replay(capacity, batch_size=1, context=ALONE, **options):
    settings = ReplaySettings(capacity, batch_size, **options)
    return ReplayMemory(OBSERVATION, ACTION, settings, context)


def held(memory):
    """The observations held, oldest first, through nothing but drawn batches."""
    seen = {}
    for seed in range(40 * len(memory)):
        batch = memory.next_batch(clock(seed))
        seen.update(zip(batch.index.tolist(), batch.obs[:, 0].tolist(), strict=True))
    return sorted(seen.values())


def test_a_batch_is_what_was_added():
    memory = replay(100, batch_size=4, gamma=0.9)
    memory.add(make_rollout([1.0, 2.0, 3.0, 4.0], terminated=[(1, 0)], truncated=[(2, 0)]), due=0)
    assert len(memory) == 4
    expected = {  # obs: action, reward, next_obs, discount
        0.0: (0, 1.0, 1.0, np.float32(0.9)),
        1.0: (1, 2.0, 2.5, 0.0),
        2.0: (2, 3.0, 3.5, np.float32(0.9)),
        3.0: (3, 4.0, 4.0, np.float32(0.9)),
    }
    seen = set()
    for seed in range(20):
        batch = memory.next_batch(clock(seed))
        assert batch.index.tolist() == batch.obs[:, 0].astype(int).tolist()
        for i in range(4):
            got = (batch.action[i], batch.reward[i], batch.next_obs[i, 0], batch.discount[i])
            assert got == expected[float(batch.obs[i, 0])]
        seen |= set(batch.index.tolist())
    assert seen == {0, 1, 2, 3}
    assert batch.weight.tolist() == [1.0] * 4
    dtypes = [a.dtype.name for a in (batch.obs, batch.action, batch.reward, batch.discount, batch.weight)]
    assert dtypes == ["float32", "int64", "float32", "float32", "float32"]


def test_a_batch_outlives_what_is_written_later():
    memory = replay(2, batch_size=2)
    memory.add(make_rollout([1.0, 1.0]), due=0)
    batch = memory.next_batch(clock())
    kept = batch.obs.copy()
    memory.add(make_rollout([1.0, 1.0], start=70, number=1), due=0)
    np.testing.assert_array_equal(batch.obs, kept)


def test_k03_an_environment_that_reuses_its_array_is_stored_right():
    config = PropConfig(id="reuse", length=3)
    spec = get_env_spec(config)
    loop = collect_loop(build_env(config, EnvContext("sampler", 0, 1)), FakePolicy(spec, 1), 3, FakeStreams())
    memory = ReplayMemory(spec.observation, spec.action, ReplaySettings(10, 3, gamma=0.9))
    memory.add(loop.collect(0, 0), due=0)
    batch = next(b for b in (memory.next_batch(clock(s)) for s in range(100)) if 2 in b.index)
    i = batch.index.tolist().index(2)
    assert batch.next_obs[i, 0] == 3.0
    value = {3.0: 10.0, 0.0: 0.0}[float(batch.next_obs[i, 0])]
    assert float(batch.reward[i] + batch.discount[i] * value) == pytest.approx(10.0)


def test_k07_a_large_empty_replay_reads_no_row_that_was_never_written():
    memory = replay(10_000, batch_size=8, n_step=3, gamma=0.9)
    memory._rows["reward"] = 1e9  # whatever was in the pages
    memory.add(make_rollout([1.0] * 10, terminated=[(9, 0)]), due=0)
    assert len(memory) == 10
    for seed in range(200):
        batch = memory.next_batch(clock(seed))
        assert batch.index.max() < 10
        for index, reward, discount in zip(batch.index, batch.reward, batch.discount, strict=True):
            steps = min(3, 10 - index)
            assert reward == pytest.approx(sum(0.9**k for k in range(steps)))
            assert discount == (pytest.approx(0.729) if index < 7 else 0.0)


@settings(max_examples=60, deadline=None)
@given(
    capacity=st.integers(1, 12),
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    reload=st.integers(0, 5),
)
def test_the_ring_holds_the_newest_in_the_slots_of_a_slow_one(capacity, lengths, reload):
    memory, slots, written, start = replay(capacity), [None] * capacity, 0, 0
    for number, length in enumerate(lengths):
        memory.add(make_rollout([0.0] * length, start=start, number=number), due=0)
        for value in range(start, start + length):
            slots[written % capacity] = value
            written += 1
        start += length
        if number == reload:
            fresh = replay(capacity)
            fresh.load_state_dict(memory.state_dict())
            memory = fresh
        assert len(memory) == min(capacity, written)
        assert memory._rows["obs"][: len(memory), 0].tolist() == slots[: len(memory)]


def test_indices_come_from_the_clocks_seed_and_the_rank_alone():
    first, second = replay(100, batch_size=32), replay(100, batch_size=32)
    other = replay(100, 32, MemoryContext(1, 2, lambda table, op: table))  # rank 0 holds nothing
    for memory in (first, second, other):
        memory.add(make_rollout([0.0] * 50), due=0)
    first.next_batch(clock(1))
    first.next_batch(clock(2))
    digest = hashlib.shake_128(b"7/0").digest(8 * 32)  # 64 bits a draw: the number as a fraction of 2^64
    expected = [int.from_bytes(digest[8 * i : 8 * i + 8], "little") * 50 >> 64 for i in range(32)]
    np.testing.assert_array_equal(first.next_batch(clock(7)).index, expected)
    np.testing.assert_array_equal(second.next_batch(clock(7)).index, expected)
    assert other.next_batch(clock(7)).index.tolist() != expected


def test_draws_are_uniform():
    memory = replay(10, batch_size=10)
    memory.add(make_rollout([0.0] * 10), due=0)
    counts = sum(np.bincount(memory.next_batch(clock(s)).index, minlength=10) for s in range(2000))
    # 20,000 draws in ten cells: chi-square with 9 degrees of freedom is below 27.9 but once in a thousand.
    assert ((counts - 2000) ** 2 / 2000).sum() < 27.9


def test_too_few_transitions_are_an_error_that_names_the_way_out():
    memory = replay(100, batch_size=4)
    memory.add(make_rollout([0.0] * 3), due=0)
    with pytest.raises(RuntimeError, match=r"holds 3 transitions, a batch is 4: raise warmup_steps"):
        memory.next_batch(clock())
    memory.add(make_rollout([0.0], start=3, number=1), due=0)
    assert len(memory.next_batch(clock()).index) == 4


def test_feedback_changes_nothing():
    memory = replay(4, batch_size=4)
    memory.add(make_rollout([0.0] * 4), due=0)
    before = memory.next_batch(clock(3)).index
    memory.feedback(Feedback(before, np.full(4, 100.0, np.float32)))
    np.testing.assert_array_equal(memory.next_batch(clock(3)).index, before)


@pytest.mark.parametrize(("batch_size", "capacity"), [(0, 10), (11, 10)])
def test_impossible_sizes_are_refused(batch_size, capacity):
    with pytest.raises(ValueError, match=f"between 1 and the capacity 10, not {batch_size}"):
        replay(capacity, batch_size)


def test_a_restored_memory_goes_on_exactly():
    """The same further rollouts and clocks give the same batches: windows waiting, the ring wrapped."""
    memory = replay(16, batch_size=8, n_step=3, gamma=0.9)
    for number in range(5):
        memory.add(make_rollout([float(number)] * 5, start=5 * number, number=number), due=0)
    state = memory.state_dict()
    restored = replay(16, batch_size=8, n_step=3, gamma=0.9)
    restored.load_state_dict(state)
    for number in range(5, 9):
        rollout = make_rollout([float(number)] * 5, start=5 * number, number=number, truncated=[(3, 0)])
        for each in (memory, restored):
            each.add(rollout, due=0)
        left, right = memory.next_batch(clock(number)), restored.next_batch(clock(number))
        for name, value in vars(left).items():
            np.testing.assert_array_equal(value, getattr(right, name), err_msg=name, strict=True)


def test_the_state_is_only_the_filled_rows_and_a_copy():
    memory = replay(1000)
    memory.add(make_rollout([1.0] * 3), due=0)
    state = memory.state_dict()
    assert state["rows"].shape == (3, 24)  # obs 4, next_obs 4, action 8, reward 4, discount 4
    json.dumps({name: value for name, value in state.items() if name not in ("rows", "n_step")})
    state["rows"][:] = 0
    assert memory.next_batch(clock()).reward.tolist() == [1.0]


@pytest.mark.parametrize(
    ("capacity", "expected"), [(3, [7, 8, 9]), (5, [5, 6, 7, 8, 9]), (8, [5, 6, 7, 8, 9])]
)
def test_another_capacity_keeps_the_newest(capacity, expected):
    memory = replay(5)
    memory.add(make_rollout([0.0] * 7), due=0)
    memory.add(make_rollout([0.0] * 3, start=7, number=1), due=0)
    assert held(memory) == [5, 6, 7, 8, 9]
    other = replay(capacity)
    other.load_state_dict(memory.state_dict())
    assert held(other) == expected
    other.add(make_rollout([0.0], start=10, number=2), due=0)  # over the oldest
    assert held(other) == [*expected, 10][-capacity:]


def test_a_state_of_other_shapes_is_refused():
    memory = replay(5)
    other = ReplayMemory(ArraySpec((2,)), ACTION, ReplaySettings(5, 1))
    with pytest.raises(CheckpointError, match="another environment's shapes"):
        other.load_state_dict(memory.state_dict())


def test_every_field_of_a_row_is_aligned():
    observation = DictSpec(
        (
            ("camera", ArraySpec((3, 5), "uint8")),
            ("speed", ArraySpec((), "float64")),
            ("goal", ArraySpec((2,))),
        )
    )
    row = row_dtype(observation, MultiDiscreteAction((3, 3, 3)))
    for name in row.names:
        field, offset = row.fields[name][:2]
        assert offset % field.base.alignment == 0, name
    assert row.itemsize % 8 == 0


def test_images_mappings_and_continuous_actions_are_stored_in_their_own_dtypes():
    observation = DictSpec(
        (("camera", ArraySpec((1, 2, 2), "uint8", "image")), ("a/b", ArraySpec((), "int64")))
    )
    memory = ReplayMemory(observation, ContinuousAction((-1.0, -1.0), (1.0, 1.0)), ReplaySettings(3, 2))
    plain = make_rollout([1.0, 1.0])
    camera = np.arange(12, dtype=np.uint8).reshape(3, 1, 1, 2, 2)
    count = np.array([[5], [6], [7]])
    action = np.array([[[0.25, -0.5]], [[0.75, 1.0]]], np.float32)
    empty = {"camera": np.empty((0, 1, 2, 2), np.uint8), "a/b": np.empty(0, np.int64)}
    values = {**vars(plain), "obs": {"camera": camera, "a/b": count}, "final_obs": empty, "action": action}
    memory.add(type(plain)(**values), due=0)
    batch = next(b for b in (memory.next_batch(clock(s)) for s in range(100)) if b.index.tolist() == [1, 0])
    assert (batch.obs["camera"].dtype, batch.obs["a/b"].dtype, batch.action.dtype) == ("u1", "i8", "f4")
    assert batch.obs["camera"].reshape(2, 4).tolist() == [[4, 5, 6, 7], [0, 1, 2, 3]]
    assert batch.next_obs["a/b"].tolist() == [7, 6]
    assert batch.action.tolist() == [[0.75, 1.0], [0.25, -0.5]]
