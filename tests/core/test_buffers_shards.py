"""A replay in parts: what each of several learners draws, and that together it is what one memory would draw."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnirl.api import ArraySpec, Clock, Constant, DiscreteAction, Feedback, MemoryContext
from omnirl.buffers.draws import uniform_draws
from omnirl.buffers.prioritized import PrioritizedReplay
from omnirl.buffers.replay import ReplayMemory, ReplaySettings
from omnirl.buffers.shards import ALONE, parts_of_batch
from omnirl.testing.rollouts import make_rollout

OBSERVATION, ACTION = ArraySpec((1,)), DiscreteAction(2)


def clock(seed=0):
    return Clock(update=0, env_steps=0, progress=0.0, seed=seed)


class Ranks:
    """Learners in threads, which reduce over a barrier; ``calls`` counts the reductions of each."""

    def __init__(self, size):
        self._barrier = threading.Barrier(size, timeout=10)
        self._arrays = [None] * size
        self.calls = [0] * size
        self.contexts = [MemoryContext(rank, size, self._reduction(rank)) for rank in range(size)]

    def _reduction(self, rank):
        def reduce(array, op):
            self.calls[rank] += 1
            self._arrays[rank] = array
            self._barrier.wait()
            result = {"sum": np.add, "max": np.maximum}[op].reduce(self._arrays)
            self._barrier.wait()
            return result

        return reduce

    def run(self, task):
        """What ``task(rank)`` gives on each."""
        with ThreadPoolExecutor(len(self.contexts)) as threads:
            futures = [threads.submit(task, rank) for rank in range(len(self.contexts))]
        return [future.result() for future in futures]


def uniform(capacity, batch_size, context=ALONE):
    return ReplayMemory(OBSERVATION, ACTION, ReplaySettings(capacity, batch_size), context)


def prioritized(capacity, batch_size, context=ALONE):
    return PrioritizedReplay(
        OBSERVATION,
        ACTION,
        ReplaySettings(capacity, batch_size),
        context,
        alpha=0.5,
        beta=Constant(value=0.5),
        epsilon=1e-300,
    )


def add(memory, observations, number=0):
    for start in observations:  # a transition from each observation
        memory.add(make_rollout([0.0], start=start, number=number), due=0)


def parts(held, batch_size, seed=0):
    return parts_of_batch(np.array(held, np.float64), batch_size, seed).tolist()


def test_parts_that_are_whole_need_no_luck():
    for seed in range(20):
        assert parts([6, 0, 2], 4, seed) == [3, 0, 1]
        assert parts([5, 5], 64, seed) == [32, 32]
        assert parts([7], 3, seed) == [3]
        assert parts([0, 1000], 32, seed) == [0, 32]


def test_parts_are_rounded_by_one_number():
    """Of (3, 1) 1.5 and 0.5 are due: below 1/2 the first gets both. Of (1, 1, 1) each gets 2/3, so one gets none."""
    seen = set()
    for seed in range(40):
        number = uniform_draws(seed, 2, 1)[0]
        assert parts([3, 1], 2, seed) == ([2, 0] if number < 0.5 else [1, 1])
        number = uniform_draws(seed, 3, 1)[0]
        expected = [1, 1, 0] if number < 1 / 3 else [1, 0, 1] if number < 2 / 3 else [0, 1, 1]
        assert parts([1, 1, 1], 2, seed) == expected
        seen.add(tuple(expected))
    assert len(seen) == 3


def test_a_small_part_is_drawn_from_as_often_as_it_is_large():
    """A batch of 1 over 1 and 9 transitions: rounded to the nearest, the first would never be seen."""
    drawn = np.array([parts([1, 9], 1, seed) for seed in range(4000)])
    assert drawn.sum(1).tolist() == [1] * 4000
    assert drawn[:, 0].mean() == pytest.approx(0.1, abs=0.02)


@settings(max_examples=200, deadline=None)
@given(
    held=st.lists(st.integers(0, 10**7), min_size=1, max_size=9).filter(any),
    batch_size=st.integers(1, 5000),
    seed=st.integers(0, 2**63 - 1),
)
def test_parts_add_up_and_are_proportional_to_less_than_1(held, batch_size, seed):
    found = parts(held, batch_size, seed)
    assert sum(found) == batch_size
    for count, size in zip(found, held, strict=True):
        assert abs(count - batch_size * size / sum(held)) < 1.0 + 1e-6
        assert count == 0 or size > 0


def test_every_transition_of_the_union_is_as_likely():
    """8, none and 4 transitions on three ranks, batches of 6."""
    ranks = Ranks(3)
    shards = [range(8), (), range(8, 12)]

    def draw(rank):
        memory = uniform(30, 6, ranks.contexts[rank])
        add(memory, shards[rank])
        return [memory.next_batch(clock(seed)) for seed in range(500)]

    drawn = ranks.run(draw)
    assert [len(batch.index) for batch in drawn[1]] == [0] * 500
    assert drawn[1][0].obs.shape == (0, 1)
    counts = np.zeros(12)
    for batches in zip(*drawn, strict=True):
        assert sum(len(batch.index) for batch in batches) == 6
        assert all(batch.weight.tolist() == [1.0] * len(batch.index) for batch in batches)
        for batch in batches:
            np.add.at(counts, batch.obs[:, 0].astype(int), 1)
    # 3,000 draws in twelve cells: chi-square with 11 degrees of freedom is below 31.3 but once in a thousand.
    assert ((counts - 250) ** 2 / 250).sum() < 31.3
    assert ranks.calls == [500] * 3


def test_the_capacity_is_that_of_all_together():
    ranks = Ranks(2)
    memories = [uniform(11, 2, context) for context in ranks.contexts]
    for memory in memories:
        add(memory, range(9))
    assert [len(memory) for memory in memories] == [5, 5]


def test_too_few_transitions_are_an_error_on_every_rank():
    ranks = Ranks(2)
    memories = [uniform(100, 4, context) for context in ranks.contexts]
    add(memories[1], range(3))

    def draw(rank):
        with pytest.raises(RuntimeError, match=r"holds 3 transitions, a batch is 4: raise warmup_steps"):
            memories[rank].next_batch(clock())
        return True

    assert ranks.run(draw) == [True, True]


def test_a_full_part_is_enough_though_another_is_empty():
    """All rollouts came from samplers of one rank: its half of the capacity is less than a batch, and all there is."""
    ranks = Ranks(2)
    memories = [uniform(10, 8, context) for context in ranks.contexts]
    add(memories[0], range(10))
    batches = ranks.run(lambda rank: memories[rank].next_batch(clock()))
    assert [len(batch.index) for batch in batches] == [8, 0]


ERRORS = [[4.0, 1.0], [], [1.0, 2.0]]


def test_priorities_in_parts_are_drawn_and_weighed_as_in_one_memory():
    """The parts of 0.369, 0.185, 0.185, 0.261 over three ranks, one of them empty: the same transitions, the same
    weights, though the greatest of a batch is on another rank."""
    whole = prioritized(12, 4)
    add(whole, range(4))
    whole.feedback(Feedback(np.arange(4), np.array([4.0, 1.0, 1.0, 2.0], np.float32)))
    ranks = Ranks(3)

    def draw(rank):
        memory = prioritized(12, 4, ranks.contexts[rank])
        add(memory, [(0, 1), (), (2, 3)][rank])
        memory.feedback(Feedback(np.arange(len(ERRORS[rank])), np.array(ERRORS[rank], np.float32)))
        return [memory.next_batch(clock(seed)) for seed in range(100)]

    for seed, batches in enumerate(zip(*ranks.run(draw), strict=True)):
        expected = whole.next_batch(clock(seed))
        np.testing.assert_array_equal(np.concatenate([batch.obs for batch in batches]), expected.obs)
        weights = np.concatenate([batch.weight for batch in batches])
        np.testing.assert_allclose(weights, expected.weight, rtol=1e-6)
        assert weights.max() == 1.0
    assert ranks.calls == [201] * 3  # one with the feedback, two with every batch


def test_a_new_transition_has_the_greatest_priority_of_all_ranks():
    """|error| 16 on the first rank, alpha 0.5: a mass of 4 for what comes to the second."""
    ranks = Ranks(2)

    def greatest(rank):
        memory = prioritized(4, 1, ranks.contexts[rank])
        add(memory, [0] if rank == 0 else [])
        told = Feedback(np.arange(1 - rank), np.full(1 - rank, 16.0, np.float32))
        memory.feedback(told)
        add(memory, [1], number=1)
        return memory._tree.get(np.array([0, 1])).tolist()

    assert ranks.run(greatest) == [[4.0, 4.0], [4.0, 0.0]]


def test_feedback_reaches_the_part_that_gave_the_transition():
    """What one memory and three parts are told of the same transitions leaves them with the same priorities."""
    rng = np.random.default_rng(3)
    errors = rng.random(30).astype(np.float32) * 5
    whole = prioritized(300, 8)
    add(whole, range(30))
    ranks = Ranks(3)
    memories = [prioritized(300, 8, context) for context in ranks.contexts]
    for rank, memory in enumerate(memories):
        add(memory, range(10 * rank, 10 * rank + 10))

    def learn(memory, seed):
        batch = memory.next_batch(clock(seed))
        memory.feedback(Feedback(batch.index, errors[batch.obs[:, 0].astype(int)] / (1 + seed)))

    for seed in range(10):
        learn(whole, seed)
        ranks.run(lambda rank, seed=seed: learn(memories[rank], seed))
        masses = [memory._tree.get(np.arange(10)) for memory in memories]
        np.testing.assert_array_equal(np.concatenate(masses), whole._tree.get(np.arange(30)))
