"""PPO, A2C and IMPALA on several learners: for one global batch they do what one learner does (K35).

Each rank is a thread with its own learner and its own gloo connections; see ``on_every_rank``.
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest

from omnirl.algorithms.ppo import Config, Policy
from omnirl.api import (
    ArraySpec,
    ContinuousAction,
    DiscreteAction,
    EnvSpec,
    LearnerLostError,
    MultiDiscreteAction,
    PolicyContext,
)
from omnirl.api.plugin import load_object

NAMES = ("ppo", "a2c", "impala")
SPACES = {
    "discrete": EnvSpec(ArraySpec((3,)), DiscreteAction(2)),
    "multi_discrete": EnvSpec(ArraySpec((3,)), MultiDiscreteAction((2, 3))),
    "continuous": EnvSpec(ArraySpec((3,)), ContinuousAction((-2.0, -1.0), (4.0, 1.0))),
}
NORMALIZED = {"normalize_observations": True, "normalize_returns": True}


class FlatSGD:
    """The parameters minus lr times the gradient."""

    def __init__(self, parameters):
        self._parameters = parameters

    def step(self, lr, finite):
        self._parameters.values.sub_(lr * finite * self._parameters.gradient)

    def tensors(self):
        return ()

    def state_dict(self):
        return {}


@dataclasses.dataclass
class Outcome:
    """What is to be the same on every rank and on one learner alone."""

    weights: dict
    metrics: list
    steps: float
    statistics: dict = dataclasses.field(
        default_factory=dict
    )  # what was observed, of which nothing is rounded


@pytest.fixture
def learn(specs, on_every_rank, clock):
    """``learn(name, size, updates, spec=..., sgd=False, **keys)`` -> an Outcome per rank.

    ``updates`` holds the rollouts of each update; those of sampler n go to rank n mod size.
    """

    def run(name, size, updates, spec=SPACES["discrete"], *, sgd=False, network=None, **keys):
        config = load_object(specs[name].config).model_validate(
            {"learner": keys, "network": network or {"hidden_sizes": [8]}}
        )

        def task(context):
            learner = load_object(specs[name].learner)(config, spec, context)
            if sgd:
                learner.optimizer = FlatSGD(learner.parameters)
            metrics = []
            for update, rollouts in enumerate(updates):
                own = tuple(r for r in rollouts if r.sampler % size == context.rank)
                for rollout in own:
                    learner.observe(rollout)
                learner.learn(own, clock(update))
                metrics.append(learner.metrics())
            state = learner.state_dict()
            weights = {**state["parameters"], **learner.get_weights(), "scale": np.array(0.0)}
            if keys.get("normalize_returns"):
                weights["scale"] = np.array(state["returns"]["scale"])
            statistics = {
                (kind, name): np.array(state[kind]["pending"][name])
                for kind in ("observations", "returns")
                for name in ("count", "mean", "var")
                if state[kind]
            }
            return Outcome(weights, metrics, float(state["optimizer"].get("steps", 0.0)), statistics)

        return on_every_rank(size, task)

    return run


@pytest.fixture
def rollouts_of(make_rollout):
    """``rollouts_of(sizes, steps=8, seed=0)`` -> a rollout [steps, size] of each sampler, in the order of requests."""

    def make(sizes, steps=8, seed=0, number=0, spec=SPACES["discrete"]):
        rng = np.random.default_rng(seed + 100)
        result = []
        for sampler, envs in enumerate(sizes):
            action = actions_for(spec, rng, (steps, envs))
            rollout = make_rollout(steps, envs, seed=seed * 10 + sampler, number=number, action=action)
            rollout.extras["log_prob"][:] += 0.3 * rng.standard_normal((steps, envs)).astype(np.float32)
            result.append(dataclasses.replace(rollout, sampler=sampler, env_steps=100 * seed + sampler))
        return result

    return make


def actions_for(spec, rng, shape):
    if isinstance(spec.action, ContinuousAction):
        return rng.standard_normal((*shape, 2)).astype(np.float32)
    if isinstance(spec.action, MultiDiscreteAction):
        return np.stack([rng.integers(0, n, shape) for n in spec.action.nvec], -1)
    return rng.integers(0, spec.action.n, shape)


def assert_alike(outcomes, alone, tolerance=1e-6):
    """Every rank has the very same weights and figures; one learner's differ by rounding alone."""
    first = outcomes[0]
    for other in outcomes[1:]:
        assert all(np.array_equal(other.weights[name], first.weights[name]) for name in first.weights)
        assert other.metrics == first.metrics
        assert other.steps == first.steps
    assert first.steps == alone.steps
    assert first.statistics.keys() == alone.statistics.keys()
    assert all(np.array_equal(first.statistics[key], alone.statistics[key]) for key in alone.statistics)
    for name, expected in alone.weights.items():
        np.testing.assert_allclose(first.weights[name], expected, rtol=1e-6, atol=tolerance, err_msg=name)
    for found, expected in zip(first.metrics, alone.metrics, strict=True):
        assert found == pytest.approx(expected, rel=2e-4, abs=2e-5)
    return first


def moved(outcome, earlier):
    return max(
        np.abs(outcome.weights[name] - earlier.weights[name]).max()
        for name in earlier.weights
        if name != "scale"
    )


@pytest.mark.parametrize("sgd", [True, False], ids=["sgd", "own optimizer"])
@pytest.mark.parametrize("shards", [(4, 3), (1, 0), (0, 1)], ids=["7 samples", "1 sample", "1 on rank 1"])
@pytest.mark.parametrize("name", NAMES)
def test_k35_uneven_and_empty_shards_move_as_one_learner_does(name, shards, sgd, learn, make_rollout):
    """7 samples over two learners, and 1: minibatches of 2 that one of them has nothing of."""
    rollouts = []
    for sampler, envs in enumerate(shards):
        if envs:
            made = make_rollout(1, envs, seed=sampler)
            rollouts.append(dataclasses.replace(made, sampler=sampler, env_steps=sampler))
    keys = {"lr": 0.01, "gamma": 0.9} | ({"minibatch_size": 2, "epochs": 2} if name == "ppo" else {})
    begin = time.monotonic()
    updates = [rollouts, rollouts]
    alone = learn(name, 1, updates, sgd=sgd, **keys)[0]
    together = learn(name, 2, updates, sgd=sgd, **keys)
    assert time.monotonic() - begin < 20
    assert moved(assert_alike(together, alone), learn(name, 1, [], **keys)[0]) > 1e-4


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_k35_several_updates_with_running_statistics(name, size, space, learn, rollouts_of):
    """Three samplers, so that of two learners one has twice as much as the other."""
    spec = SPACES[space]
    updates = [rollouts_of((2, 2, 2), seed=n, number=n, spec=spec) for n in range(3)]
    keys = {"lr": 1e-3, "ent_coef": 0.01, **NORMALIZED}
    keys |= {"minibatch_size": 20, "epochs": 2} if name == "ppo" else {}
    keys |= {"normalize_advantages": True} if name == "a2c" else {}
    alone = learn(name, 1, updates, spec, **keys)[0]
    first = assert_alike(learn(name, size, updates, spec, **keys), alone)
    assert len(first.statistics) == 6
    assert first.weights["scale"] != 1.0
    assert first.weights["normalizer.scale"].std() > 0.0
    assert moved(first, learn(name, 1, [], spec, **keys)[0]) > 1e-4


@pytest.mark.parametrize("size", [2, 3])
def test_k35_a_short_run_of_ppo_is_one_learners(size, on_every_rank, acted_rollout, clock):
    """Six updates of three samplers that act with the newest weights: what they do, and what is learned from it."""
    config = Config.model_validate(
        {
            "learner": {"minibatch_size": 10, "epochs": 3, "lr": {"kind": "linear", "start": 1e-3, "end": 0}}
            | {"clip": 0.1, "target_kl": 0.05, **NORMALIZED}
        }
    )
    spec = SPACES["discrete"]
    learner_class = load_object("omnirl.algorithms.ppo:Learner")

    def updates_of(context):
        learner = learner_class(config, spec, context)
        policies = [Policy(config, spec, PolicyContext("sampler", n, 3, 2)) for n in range(3)]
        for update in range(6):
            own = []
            for sampler, policy in enumerate(policies):
                policy.set_weights(learner.get_weights())
                if sampler % context.world_size == context.rank:
                    rollout = acted_rollout(policy, seed=10 * update + sampler, number=update)
                    asked = 48 * update + 16 * sampler
                    own.append(dataclasses.replace(rollout, sampler=sampler, env_steps=asked))
            for rollout in own:
                learner.observe(rollout)
            learner.learn(tuple(own), clock(update))
        state = learner.state_dict()
        weights = {
            **state["parameters"],
            **learner.get_weights(),
            "scale": np.array(state["returns"]["scale"]),
        }
        return Outcome(weights, [learner.metrics()], float(state["optimizer"]["steps"]))

    assert_alike(on_every_rank(size, updates_of), on_every_rank(1, updates_of)[0])


def test_k35_advantages_are_standardized_over_all_learners(specs, on_every_rank, rollouts_of, clock):
    """Rewards of 0 on one rank and of 100 on the other: brought to mean 0 per shard they would say nothing."""
    rollouts = rollouts_of((2, 2), steps=1)
    for rollout, reward in zip(rollouts, (0.0, 100.0), strict=True):
        rollout.reward[:] = reward
        rollout.terminated[:] = True
    config = load_object(specs["ppo"].config).model_validate({"learner": {"minibatch_size": 4, "epochs": 1}})

    def advantages(context):
        learner = load_object(specs["ppo"].learner)(config, SPACES["discrete"], context)
        seen, step = [], learner._step
        learner._step = lambda minibatch, **rest: seen.append(minibatch[1].copy()) or step(minibatch, **rest)
        learner.learn((rollouts[context.rank],), clock(0))
        return np.concatenate(seen)

    low, high = on_every_rank(2, advantages)
    both = np.concatenate((low, high))
    assert both.mean() == pytest.approx(0.0, abs=1e-6)
    assert both.std(ddof=1) == pytest.approx(1.0, abs=1e-5)
    # Two of 0 and two of 100 lie 50 beside their mean, and their unbiased variance is 4/3 50^2; values are small.
    np.testing.assert_allclose(low, -(0.75**0.5), atol=0.02)
    np.testing.assert_allclose(high, 0.75**0.5, atol=0.02)


@pytest.mark.parametrize("bad_rank", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_a_nonfinite_number_on_one_rank_is_skipped_on_all(name, bad_rank, learn, rollouts_of):
    good, bad, again = (rollouts_of((1, 2), seed=n, number=n) for n in range(3))
    bad[bad_rank].reward[3, 0] = np.nan
    keys = {"minibatch_size": 8} if name == "ppo" else {}
    before = learn(name, 2, [good], **keys)
    skipped = learn(name, 2, [good, bad], **keys)
    alone = learn(name, 1, [good, bad, again], **keys)[0]
    for rank in range(2):
        parameters = before[rank].weights
        assert all(np.array_equal(skipped[rank].weights[key], parameters[key]) for key in parameters)
        assert skipped[rank].metrics[1]["nonfinite_in_row"] == 1.0
        assert "policy_loss" not in skipped[rank].metrics[1]
    went_on = assert_alike(learn(name, 2, [good, bad, again], **keys), alone)
    assert went_on.metrics[2]["nonfinite_updates"] == 1.0


def test_no_further_epoch_is_decided_by_all_together(learn, rollouts_of):
    """One rank has moved far, another hardly: what stops is the mean over all samples, on both after the same epoch."""
    updates = [rollouts_of((1, 3), seed=n, number=n) for n in range(2)]
    for rollouts in updates:
        rollouts[0].extras["log_prob"][:] = -3.0  # the ratio is 10
    keys = {"epochs": 5, "minibatch_size": 16, "lr": 1e-2, "normalize_advantages": False}
    kls = [
        learn("ppo", 1, updates, **keys, target_kl=limit)[0].metrics[0]["approx_kl"] for limit in (1e-9, 1e9)
    ]
    assert kls[0] != kls[1]
    epochs = set()
    for limit in (1e-9, kls[0] * 1.0001, 1e9):
        alone = learn("ppo", 1, updates, **keys, target_kl=limit)[0]
        epochs.add(assert_alike(learn("ppo", 2, updates, **keys, target_kl=limit), alone).steps)
    assert len(epochs) > 1


@pytest.mark.parametrize("name", NAMES)
def test_pictures_through_autograd(name, learn, rollouts_of):
    spec = EnvSpec(ArraySpec((1, 36, 36), "uint8", "image"), DiscreteAction(2))
    rollouts = []
    for seed, rollout in enumerate(rollouts_of((1, 2), steps=5)):
        rng = np.random.default_rng(seed)
        shapes = {"obs": rollout.obs.shape[:2], "final_obs": rollout.final_obs.shape[:1]}
        pictures = {key: rng.integers(0, 256, (*lead, 1, 36, 36), np.uint8) for key, lead in shapes.items()}
        rollouts.append(dataclasses.replace(rollout, **pictures))
    keys = {"lr": 1e-4} | ({"minibatch_size": 4, "epochs": 1} if name == "ppo" else {})
    alone = learn(name, 1, [rollouts], spec, sgd=True, **keys)[0]
    first = assert_alike(learn(name, 2, [rollouts], spec, sgd=True, **keys), alone)
    assert moved(first, learn(name, 1, [], spec, sgd=True, **keys)[0]) > 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_an_update_without_any_rollout_changes_nothing(name, learn, rollouts_of):
    rollouts = rollouts_of((1, 1))
    once, twice = (learn(name, 2, updates) for updates in ([rollouts], [rollouts, []]))
    for a, b in zip(once, twice, strict=True):
        assert all(np.array_equal(a.weights[key], b.weights[key]) for key in a.weights)
    assert twice[0].metrics[1] == {"nonfinite_updates": 0.0, "nonfinite_in_row": 0.0}


@pytest.mark.parametrize("name", ["ppo", "impala"])
def test_restored_learners_go_on_bit_for_bit(name, specs, on_every_rank, rollouts_of, clock, trees_equal):
    """Every rank from its own state; what it observed and has not learned from yet is in it."""
    updates = [rollouts_of((2, 2, 2), seed=n, number=n) for n in range(4)]
    config = load_object(specs[name].config).model_validate({"learner": NORMALIZED})

    def task(context):
        def make():
            return load_object(specs[name].learner)(config, SPACES["discrete"], dataclasses.replace(context))

        def go_on(learner, numbers, ahead):
            for n in numbers:
                if n != ahead:
                    observe(learner, n)
                learner.learn(own(n), clock(n))

        def own(n):
            return tuple(r for r in updates[n] if r.sampler % 2 == context.rank)

        def observe(learner, n):
            for rollout in own(n):
                learner.observe(rollout)

        original = make()
        go_on(original, (0, 1), None)
        observe(original, 2)
        state = original.state_dict()
        assert len(state["waiting"]["observed"]) == len(own(2)) > 0
        go_on(original, (2, 3), 2)
        return original.state_dict(), state

    ends = on_every_rank(2, task)

    def restored(context):
        learner = load_object(specs[name].learner)(config, SPACES["discrete"], context)
        learner.load_state_dict(ends[context.rank][1])
        for n in (2, 3):
            own = tuple(r for r in updates[n] if r.sampler % 2 == context.rank)
            if n == 3:
                for rollout in own:
                    learner.observe(rollout)
            learner.learn(own, clock(n))
        return learner.state_dict()

    for (end, _), again in zip(ends, on_every_rank(2, restored, seed=9), strict=True):
        assert trees_equal(end, again)
        assert set(again["returns"]["streams"]) == {"0", "1", "2"}  # those of all samplers, on every rank


@pytest.mark.parametrize("name", NAMES)
def test_a_learner_that_leaves_is_an_error_for_the_other(name, specs, on_every_rank, rollouts_of, clock):
    rollouts = rollouts_of((1, 1))
    config = load_object(specs[name].config)()

    def task(context):
        learner = load_object(specs[name].learner)(config, SPACES["discrete"], context)
        learner.learn((rollouts[context.rank],), clock(0))
        began = time.monotonic()
        if context.rank == 1:
            learner.group.close()
        else:
            with pytest.raises(LearnerLostError, match="learner 0 of 2 lost another learner"):
                learner.learn((rollouts[0],), clock(1))
        return time.monotonic() - began

    assert max(on_every_rank(2, task)) < 10


@pytest.mark.parametrize("name", NAMES)
def test_all_begin_with_the_weights_of_the_first(name, specs, on_every_rank):
    """Even where they are not drawn from the common seed alone."""

    def begin(context):
        own = dataclasses.replace(context, seed=context.rank)
        learner = load_object(specs[name].learner)(load_object(specs[name].config)(), SPACES["discrete"], own)
        return learner.parameters.arrays()

    (alone,) = on_every_rank(1, begin)
    for weights in on_every_rank(2, begin):
        assert all(np.array_equal(weights[key], alone[key]) for key in alone)


def test_the_learners_reduce_for_their_memories(specs, on_every_rank):
    def total(context):
        learner = load_object(specs["ppo"].learner)(Config(), SPACES["discrete"], context)
        return learner.reduce(np.array([1.0, context.rank]), "sum").tolist()

    assert on_every_rank(2, total) == [[2.0, 1.0]] * 2
