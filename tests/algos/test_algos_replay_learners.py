"""Replay algorithms with several learners: given the parts of a batch, they learn what one learns from the whole."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from omnirl.algorithms.shared.off_policy.batch_part import BatchPart
from omnirl.api import (
    ArraySpec,
    ContinuousAction,
    DiscreteAction,
    EnvSpec,
    MemoryContext,
    Transitions,
)
from omnirl.api.plugin import load_object
from omnirl.testing.rollouts import make_rollout

DISCRETE = EnvSpec(ArraySpec((3,)), DiscreteAction(4))
CONTINUOUS = EnvSpec(ArraySpec((3,)), ContinuousAction((-1.0, -2.0), (1.0, 3.0)))
IMAGES = EnvSpec(ArraySpec((4, 10, 10), "uint8", "image"), DiscreteAction(3))
CLIP = 0.01
SMALL = {"hidden_sizes": [16, 16]}
# A clip that bites, and a target that follows within the test; Adam's epsilon keeps it from making a whole step of what
# is but the rounding of a gradient of 0.
VALUE = {"max_grad_norm": CLIP, "target_update_interval": 3, "tau": 0.5, "lr": 1e-3, "adam_epsilon": 1e-4}
CRITIC = {"max_grad_norm": CLIP, "lr": 1e-3, "adam_epsilon": 1e-4}
CASES = {
    "dqn": ("dqn", DISCRETE, VALUE, SMALL),
    "ddqn": ("ddqn", DISCRETE, VALUE, SMALL),
    "dueling_dqn": ("dueling_dqn", DISCRETE, VALUE, SMALL),
    "per_dqn": ("per_dqn", DISCRETE, VALUE, SMALL),
    "c51": ("c51", DISCRETE, {**VALUE, "num_atoms": 11}, SMALL),
    "qr_dqn": ("qr_dqn", DISCRETE, {**VALUE, "num_quantiles": 7}, SMALL),
    "dqn on images": ("dqn", IMAGES, VALUE, {"kind": "minatar", "hidden_sizes": [16]}),
    "ddpg": ("ddpg", CONTINUOUS, CRITIC, SMALL),
    "td3": ("td3", CONTINUOUS, CRITIC, SMALL),
    "sac": ("sac", CONTINUOUS, CRITIC, SMALL),
    "sac, discrete": ("sac", DISCRETE, CRITIC, SMALL),
    "sac, fixed temperature": ("sac", CONTINUOUS, {**CRITIC, "temperature": 0.2}, SMALL),
    "tqc": ("tqc", CONTINUOUS, CRITIC, {**SMALL, "num_quantiles": 5, "num_critics": 3}),
}


def batch_of(spec, seed, count=16):
    rng = np.random.default_rng(seed)

    def observations():
        if spec.observation.dtype == "uint8":
            return rng.integers(0, 2, (count, *spec.observation.shape), np.uint8)
        return rng.standard_normal((count, *spec.observation.shape)).astype(np.float32)

    if isinstance(spec.action, DiscreteAction):
        action = rng.integers(0, spec.action.n, count)
    else:
        low, high = np.array(spec.action.low), np.array(spec.action.high)
        action = rng.uniform(low, high, (count, len(low))).astype(np.float32)
    return Transitions(
        obs=observations(),
        action=action,
        reward=rng.standard_normal(count).astype(np.float32),
        next_obs=observations(),
        discount=np.where(rng.random(count) < 0.2, 0.0, 0.99).astype(np.float32),
        index=np.arange(count),
        weight=rng.uniform(0.2, 1.0, count).astype(np.float32),
    )


def part_of(batch, begin, end):
    return Transitions(**{name: value[begin:end] for name, value in vars(batch).items()})


def borders(ranks, seed):
    """Where the parts of a batch of 16 end; uneven, some are empty: in turn all on one rank, and at random."""
    if seed % 4 == 1:
        return [0] * (seed % ranks + 1) + [16] * (ranks - seed % ranks)
    inner = np.random.default_rng(seed).integers(0, 17, ranks - 1)
    return [0, *sorted(inner.tolist()), 16]


@pytest.fixture
def make_learner(specs):
    def make(case, context):
        name, spec, learner, network = CASES[case]
        row = specs[name]
        config = load_object(row.config).model_validate({"learner": learner, "network": network})
        return load_object(row.learner)(config, spec, context)

    return make


@pytest.fixture
def learnt(make_learner, on_every_rank, clock):
    """``learnt(case, ranks, updates)`` -> for each rank: its state, its metrics and what it told the memory."""

    def run(case, ranks, updates, change=lambda batch, seed: batch):
        spec = CASES[case][1]

        def learn(context):
            learner, told = make_learner(case, context), []
            for seed in range(updates):
                ends = borders(ranks, seed)
                batch = change(batch_of(spec, seed), seed)
                part = part_of(batch, ends[context.rank], ends[context.rank + 1])
                told.append(learner.learn(part, clock(seed)))
            return learner.state_dict(), dict(learner.metrics()), told

        return on_every_rank(ranks, learn)

    return run


def leaves(tree, path=""):
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from leaves(value, f"{path}/{name}")
    else:
        yield path, np.asarray(tree, np.float64)


def assert_as_one(one, several):
    """All of the state within 1e-6 of one learner's, which has moved; the same to the last bit on all ranks."""
    state, metrics, _ = one[0]
    for other, figures, _ in several:
        for (path, expected), (_, found) in zip(leaves(state), leaves(other), strict=True):
            if "metrics" not in path:
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6, err_msg=path)
        for (path, expected), (_, found) in zip(leaves(several[0][0]), leaves(other), strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=path)
        assert figures == pytest.approx(metrics, rel=2e-5, abs=1e-6)
        assert figures == several[0][1]
    assert metrics["grad_norm"] > CLIP  # the clip had something to do


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("case", ["dqn", "sac"])
def test_twenty_batches_move_several_learners_as_they_move_one(case, ranks, learnt):
    assert_as_one(learnt(case, 1, 20), learnt(case, ranks, 20))


@pytest.mark.parametrize("case", [case for case in CASES if case != "dqn"])
def test_a_few_batches_with_every_algorithm(case, learnt):
    """Four updates, so that delayed parts and targets move; the second batch is all on one rank."""
    assert borders(2, 1) == [0, 0, 16]
    assert_as_one(learnt(case, 1, 4), learnt(case, 2, 4))


@pytest.mark.parametrize("case", ["dqn", "td3"])
def test_all_begin_with_the_weights_of_the_first(case, make_learner, on_every_rank, learner_context):
    """Targets too, though each rank draws other initial values."""

    def begin(context):
        return make_learner(case, dataclasses.replace(context, seed=10 + context.rank)).state_dict()

    expected = dict(leaves(make_learner(case, dataclasses.replace(learner_context, seed=10)).state_dict()))
    for state in on_every_rank(3, begin):
        for path, value in leaves(state):
            np.testing.assert_array_equal(value, expected[path], err_msg=path)


@pytest.mark.parametrize("case", ["dqn", "td3", "sac"])
def test_what_is_not_finite_on_one_rank_leaves_all_as_they_were(case, learnt, make_learner, learner_context):
    """A reward that is no number, in the part of one of three."""

    def spoilt(batch, seed):
        return dataclasses.replace(batch, reward=np.where(np.arange(16) == 3, np.nan, batch.reward))

    before = dict(leaves(make_learner(case, learner_context).state_dict()))
    for state, metrics, _ in learnt(case, 3, 2, spoilt):
        assert (metrics["nonfinite_updates"], metrics["nonfinite_in_row"]) == (2.0, 2.0)
        for path, value in leaves(state):
            if "metrics" not in path:
                np.testing.assert_array_equal(value, before[path], err_msg=path)


def test_each_rank_tells_its_memory_of_its_own_transitions(learnt):
    (_, _, expected), *_ = learnt("per_dqn", 1, 3)
    several = [told for _, _, told in learnt("per_dqn", 3, 3)]
    for update, whole in enumerate(expected):
        parts = [told[update] for told in several]
        np.testing.assert_array_equal(np.concatenate([part.index for part in parts]), whole.index)
        found = np.concatenate([part.priority for part in parts])
        np.testing.assert_allclose(found, whole.priority, rtol=1e-5, atol=1e-6)


def test_noise_is_that_of_the_whole_batch():
    """The parts of 2, 0 and 3 samples have together the noise of 5, each sample its own."""
    import torch

    def drawn(begin, count):
        return BatchPart(begin, count, 5).normal(2, 3, torch.Generator().manual_seed(7))

    whole = drawn(0, 5)
    assert whole.shape == (2, 5, 3)
    assert torch.equal(torch.cat((drawn(0, 2), drawn(2, 0), drawn(2, 3)), 1), whole)
    assert len(whole.unique()) == 30


def test_the_mean_over_a_batch_is_the_sum_of_its_parts_shares():
    """Values 1, 2 | 3, 4, 8 of two critics each: (2 * 1.5 + 3 * 5) / 5 = 3.6."""
    import torch

    values = torch.tensor([1.0, 2.0, 3.0, 4.0, 8.0]).expand(2, 5)
    shares = [
        float(BatchPart(begin, count, 5).mean(values[:, begin : begin + count]))
        for begin, count in ((0, 2), (2, 3))
    ]
    assert shares == pytest.approx([0.6, 3.0])
    assert float(BatchPart(0, 5, 5).mean(values)) == pytest.approx(3.6)
    assert BatchPart(2, 3, 5).share == 0.6


@pytest.mark.parametrize("name", ["dqn", "per_dqn", "sac"])
def test_memories_and_learners_go_on_together(name, specs, on_every_rank, clock):
    """Thirty updates on three ranks, the last of which never gets a rollout, and the first twice as many as the
    second: nobody waits for ever, and all end with the same weights."""
    spec = EnvSpec(ArraySpec((1,)), DiscreteAction(2))
    row = specs[name]
    config = load_object(row.config).model_validate(
        {"memory": {"capacity": 90, "batch_size": 12}, "network": {"hidden_sizes": [8]}}
    )

    def run(context):
        learner = load_object(row.learner)(config, spec, context)
        memory = load_object(row.memory)(
            config, spec, MemoryContext(context.rank, context.world_size, learner.reduce)
        )
        sizes = []
        for update in range(30):
            if context.rank == 0 or (context.rank == 1 and update % 2 == 0):
                rewards = np.sin(np.arange(4.0) + update).tolist()
                rollout = make_rollout(rewards, start=4 * update, number=update, sampler=context.rank)
                memory.add(dataclasses.replace(rollout, action=rollout.action % 2), due=0)
            if update < 3:
                continue  # the warm-up
            batch = memory.next_batch(clock(update))
            sizes.append(len(batch.reward))
            feedback = learner.learn(batch, clock(update))
            if feedback is not None:
                memory.feedback(feedback)
        return learner.state_dict(), sizes, len(memory)

    ranks = on_every_rank(3, run)
    sizes = np.array([sizes for _, sizes, _ in ranks])
    assert (sizes.sum(0) == 12).all()
    assert (sizes[:2].sum(1) > 0).all()
    assert not sizes[2].any()
    assert [held for *_, held in ranks] == [30, 30, 0]  # a third of the capacity each
    for state, *_ in ranks[1:]:
        for (path, expected), (_, found) in zip(leaves(ranks[0][0]), leaves(state), strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=path)
