"""Named random streams: every part of a name counts, and nothing else does."""

from __future__ import annotations

import hashlib
from itertools import combinations

import numpy as np

from omnirl.runtime.seeding import EvaluatorStreams, SamplerStreams, generator, integer

SAMPLERS = [
    SamplerStreams(seed, sampler, incarnation, 100)
    for seed, sampler, incarnation in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
]
EVALUATORS = [
    EvaluatorStreams(seed, version, evaluator)
    for seed, version, evaluator in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
]


def test_a_policy_draws_other_numbers_with_any_other_part_of_its_name() -> None:
    drawn = [streams.policy(number).random(4).tolist() for streams in SAMPLERS for number in (0, 1)]
    drawn += [streams.policy(0).random(4).tolist() for streams in EVALUATORS]
    assert all(one != other for one, other in combinations(drawn, 2))


def test_an_episode_has_a_seed_that_no_other_one_has() -> None:
    seeds = [
        streams.episode_seed(index, episode)
        for streams in [*SAMPLERS, *EVALUATORS]
        for index in (0, 1)
        for episode in (0, 1)
    ]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_the_same_name_is_the_same_stream_whatever_was_drawn_before() -> None:
    first = SAMPLERS[0].policy(3).random(8)
    SAMPLERS[1].policy(3).random(100)
    np.testing.assert_array_equal(SAMPLERS[0].policy(3).random(8), first)


def test_streams_are_what_their_description_says() -> None:
    """A seed is 31 bits of the name's SHA-256, a generator is seeded by all of it, as eight words."""
    digest = hashlib.sha256(b"episode/5/2").digest()
    assert integer("episode", 5, 2) == int.from_bytes(digest[:4], "little") >> 1
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 32, 4)]
    expected = np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))
    np.testing.assert_array_equal(generator("episode", 5, 2).random(3), expected.random(3))


def test_progress_ends_at_one() -> None:
    streams = SAMPLERS[0]
    assert [streams.progress(steps) for steps in (0, 25, 100, 250)] == [0.0, 0.25, 1.0, 1.0]
    assert EVALUATORS[0].progress(0) == 1.0
