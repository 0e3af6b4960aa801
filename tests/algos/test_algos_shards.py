"""Whose samples are whose: numbers as one learner would give them, and the minibatches that follow from them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from omnirl.algorithms.shared.on_policy.shards import shard_of
from omnirl.algorithms.shared.training.process_group import process_group


@pytest.fixture
def on_shards(on_every_rank, make_rollout):
    """``on_shards(size, held, task)``: ``held[rank]`` are pairs (request, width) of rollouts of two steps. Samplers and
    their own numbers run the other way, as after a restart: what counts is when a rollout was requested."""

    def run(size, held, task):
        def alone(context):
            rollouts = [
                dataclasses.replace(
                    make_rollout(2, width), env_steps=request, sampler=90 - request, number=80 - request
                )
                for request, width in held[context.rank]
            ]
            group = process_group(context, patience_s=20.0)
            result = task(shard_of(group, rollouts), context.rank)
            group.reduce(np.zeros(1), "sum")  # nobody leaves before all are done
            return result

        return on_every_rank(size, alone)

    return run


HELD = (((0, 2), (8, 2)), ((4, 1),), ())
"""Side by side in the order of requests: two environments of rank 0, one of rank 1, two of rank 0; rank 2 has none."""
NUMBERS = ([0, 1, 3, 4, 5, 6, 8, 9], [2, 7], [])


def test_samples_are_numbered_in_the_order_of_requests(on_shards):
    found = on_shards(3, HELD, lambda shard, rank: (shard.count, shard.places.tolist()))
    assert found == [(10, numbers) for numbers in NUMBERS]


def test_a_later_request_that_is_held_first(on_shards):
    """A rank holds its samples in the order of its rollouts, whatever their numbers."""
    found = on_shards(2, (((4, 1), (0, 1)), ((2, 1),)), lambda shard, rank: shard.places.tolist())
    assert found == [[2, 0, 5, 3], [1, 4]]


def test_minibatches_are_the_same_sets_for_all(on_shards):
    """Ten samples in threes: rank 1 holds numbers 2 and 7, which are its samples 0 and 1."""
    order = np.array([7, 0, 1, 3, 4, 5, 6, 8, 9, 2])

    def take(shard, rank):
        taken = shard.take(order, 3)
        return taken.places.tolist(), taken.own.tolist(), list(taken.edges)

    first, second, third = on_shards(3, HELD, take)
    assert first == ([1, 2, 3, 4, 5, 6, 7, 8], [0, 1, 2, 3, 4, 5, 6, 7], [0, 2, 5, 8, 8])
    assert second == ([0, 9], [1, 0], [0, 1, 1, 1, 2])
    assert third == ([], [], [0, 0, 0, 0, 0])


def test_figures_are_gathered_by_number(on_shards):
    def gather(shard, rank):
        own = np.array(NUMBERS[rank], np.float32)
        return [figure.tolist() for figure in shard.gathered(own, 10 * own)]

    expected = [list(map(float, range(10))), [10.0 * i for i in range(10)]]
    assert on_shards(3, HELD, gather) == [expected] * 3


def test_nobody_holds_anything(on_shards):
    assert on_shards(2, ((), ()), lambda shard, rank: shard.count) == [0, 0]


def test_one_learner_holds_all(on_shards):
    def look(shard, rank):
        order, figures = np.array([2, 0, 1, 3]), np.arange(4.0)
        taken = shard.take(order, 3)
        assert taken.own is order
        assert shard.gathered(figures)[0] is figures
        return shard.count, list(taken.edges), figures[shard.places].tolist()

    assert on_shards(1, (((0, 1), (1, 1)),), look) == [(4, [0, 3, 4], [0.0, 1.0, 2.0, 3.0])]
