"""PPO's policy and learner: what an update does, leaves alone, and can go on from."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch

from omnirl.algorithms.ppo import Config, Learner, Memory, Policy
from omnirl.algorithms.ppo.config import data_flow
from omnirl.api import (
    ActContext,
    ArraySpec,
    ConfigError,
    ContinuousAction,
    DictSpec,
    DiscreteAction,
    EnvSpec,
    FlowContext,
    MemoryContext,
    MultiDiscreteAction,
    PolicyContext,
)

BOX = EnvSpec(ArraySpec((3,)), ContinuousAction((-2.0, -float("inf")), (4.0, float("inf"))))
MULTI = EnvSpec(ArraySpec((3,)), MultiDiscreteAction((2, 3)))
IMAGES = EnvSpec(ArraySpec((1, 36, 36), "uint8", "image"), DiscreteAction(2))
NORMALIZED = {"normalize_observations": True, "normalize_returns": True}


def config(**learner):
    return Config.model_validate({"learner": {"epochs": 2, "minibatch_size": 8, **learner}})


def policy_for(spec, learner_config=None, envs=2):
    return Policy(learner_config or config(), spec, PolicyContext("sampler", 0, 1, envs))


def act(seed=0, envs=2):
    return ActContext(np.random.default_rng(seed), 0, 0.0, np.zeros(envs, bool))


def trees_equal(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(trees_equal(a[key], b[key]) for key in a)
    return np.array_equal(a, b, equal_nan=True)


def acted_rollout(policy, make_rollout, steps=8, envs=2, seed=0, number=0):
    """A rollout whose actions and log-probabilities are really the policy's."""
    rollout = make_rollout(steps, envs, seed=seed, number=number)
    samples = [policy.sample_action(row, act(seed + 1)) for row in rollout.obs[:-1]]
    rows = {"action": np.stack([sample.action for sample in samples])}
    rows["outputs"] = np.stack([sample.extras["outputs"] for sample in samples])
    return dataclasses.replace(rollout, action=rows["action"], extras=policy.finish(rows))


@pytest.mark.parametrize("learner", [{}, NORMALIZED])
@pytest.mark.parametrize("spec", [EnvSpec(ArraySpec((3,)), DiscreteAction(2)), MULTI, BOX])
def test_probability_ratio_begins_at_one(spec, learner, make_rollout, learner_context, clock):
    """In lock-step the acting and the learning network agree, normaliser included, at every update.

    With learning rate 0 the log ratios of the last epoch are those of the beginning.
    """
    setup = config(lr=0.0, **learner)
    ppo, policy = Learner(setup, spec, learner_context), policy_for(spec, setup)
    for update in range(3):
        policy.set_weights(ppo.get_weights())
        rollout = acted_rollout(policy, make_rollout, seed=update, number=update)
        ppo.observe(rollout)
        ppo.learn((rollout,), clock(update))
        metrics = ppo.metrics()
        assert metrics["approx_kl"] == pytest.approx(0.0, abs=1e-10)
        assert metrics["clip_fraction"] == 0.0
        samples = ppo._samples((dataclasses.replace(rollout),))
        assert len(samples) == 16


def test_ratio_is_one_within_1e5_sample_by_sample(vector_spec, make_rollout, learner_context):
    ppo, policy = Learner(config(), vector_spec, learner_context), policy_for(vector_spec)
    policy.set_weights(ppo.get_weights())
    samples = ppo._samples((acted_rollout(policy, make_rollout),))
    outputs, _ = ppo.network(samples.observations)
    log_prob, _ = ppo._distribution(outputs, samples.action)
    ratio = (log_prob - samples.log_prob).exp().detach().numpy()
    np.testing.assert_allclose(ratio, 1.0, atol=1e-5)


def test_values_bootstrap_from_the_final_observation(vector_spec, make_rollout, learner_context):
    """With lambda 0 the return is r + gamma V(s'): V of the final observation at a truncation, nothing at a
    termination, V of the next row elsewhere."""
    ppo = Learner(config(gae_lambda=0.0, gamma=0.9), vector_spec, learner_context)
    rollout = make_rollout(8, 2)
    returns = ppo._samples((rollout,)).returns.numpy().reshape(8, 2)

    def value(obs):
        with torch.no_grad():
            return float(ppo.network.values(torch.tensor(obs[None])))

    for t in range(8):
        for b in range(2):
            expected = rollout.reward[t, b]
            if (t, b) == (4, 1):
                expected += 0.9 * value(rollout.final_obs[1])
            elif (t, b) != (2, 0):
                expected += 0.9 * value(rollout.obs[t + 1, b])
            assert returns[t, b] == pytest.approx(expected, abs=1e-5)


def test_rollouts_of_several_samplers_are_the_same_as_one_wide_one(
    vector_spec, make_rollout, learner_context
):
    ppo = Learner(config(), vector_spec, learner_context)
    first, second = make_rollout(8, 2, seed=0), make_rollout(8, 2, seed=1)
    wide = dataclasses.replace(
        first,
        **{
            name: np.concatenate((getattr(first, name), getattr(second, name)), axis=1)
            for name in ("obs", "action", "reward", "terminated", "truncated")
        },
        extras={"log_prob": np.full((8, 4), -1.0, np.float32)},
        final_obs=np.concatenate((first.final_obs, second.final_obs)),
        final_at=np.concatenate((first.final_at, second.final_at + [0, 2])),
    )
    for joined, expected in zip(
        ppo._samples((first, second)).tensors(), ppo._samples((wide,)).tensors(), strict=True
    ):
        torch.testing.assert_close(joined, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("steps", "size"), [(13, 64), (13, 12), (5, 4), (1, 1), (3, 100)])
def test_every_sample_is_used_once_per_epoch(steps, size, vector_spec, make_rollout, learner_context, clock):
    """Also 65 samples in minibatches of 64: the last one of a single sample does not spoil the weights."""
    envs = 5
    ppo = Learner(config(minibatch_size=size, epochs=3), vector_spec, learner_context)
    seen = []
    step = ppo._step
    ppo._step = lambda minibatch, **rest: seen.append(minibatch[0].clone()) or step(minibatch, **rest)
    rollout = make_rollout(steps, envs, every_step_ends=steps == 1)
    before = ppo.parameters.values.clone()
    ppo.learn((rollout,), clock(0))
    per_epoch = -(-steps * envs // size)
    assert len(seen) == 3 * per_epoch
    expected = np.sort(rollout.obs[:-1].reshape(-1, 3), axis=0)
    orders = []
    for epoch in range(3):
        rows = torch.cat(seen[epoch * per_epoch : (epoch + 1) * per_epoch]).numpy()
        np.testing.assert_array_equal(np.sort(rows, axis=0), expected)
        orders.append(rows.tobytes())
    assert len(set(orders)) == 3  # shuffled anew in every epoch
    assert torch.isfinite(ppo.parameters.values).all()
    assert not torch.equal(ppo.parameters.values, before)
    assert ppo.metrics()["nonfinite_updates"] == 0.0


def test_rollout_of_one_step_episodes_trains(vector_spec, make_rollout, learner_context, clock):
    ppo = Learner(config(**NORMALIZED), vector_spec, learner_context)
    for update in range(3):
        rollout = make_rollout(8, 2, seed=update, number=update, every_step_ends=True)
        ppo.observe(rollout)
        ppo.learn((rollout,), clock(update))
    assert all(np.isfinite(array).all() for array in ppo.get_weights().values())


@pytest.mark.parametrize("field", ["reward", "log_prob"])
def test_a_nonfinite_update_changes_nothing_but_counts(
    field, vector_spec, make_rollout, learner_context, clock
):
    ppo = Learner(config(), vector_spec, learner_context)
    good, bad = make_rollout(8, 2), make_rollout(8, 2)
    bad = copy.deepcopy(bad)
    (bad.reward if field == "reward" else bad.extras["log_prob"])[5, 0] = np.nan
    ppo.learn((good,), clock(0))
    assert ppo.metrics()["nonfinite_in_row"] == 0.0
    before = copy.deepcopy(ppo.state_dict())
    ppo.learn((bad,), clock(1))
    ppo.learn((bad,), clock(2))
    after = ppo.state_dict()
    for part in ("parameters", "optimizer"):
        assert trees_equal(after[part], before[part])
    metrics = ppo.metrics()
    assert (metrics["nonfinite_updates"], metrics["nonfinite_in_row"], ppo.nonfinite_in_row) == (2.0, 2.0, 2)
    assert "policy_loss" not in metrics
    ppo.learn((good,), clock(3))
    metrics = ppo.metrics()
    assert (metrics["nonfinite_updates"], metrics["nonfinite_in_row"]) == (2.0, 0.0)
    assert np.isfinite(list(metrics.values())).all()


def test_an_absurd_learning_rate_leaves_finite_weights(vector_spec, make_rollout, learner_context, clock):
    ppo = Learner(config(lr=1e30), vector_spec, learner_context)
    for update in range(4):
        ppo.learn((make_rollout(8, 2, seed=update),), clock(update))
    assert all(np.isfinite(array).all() for array in ppo.get_weights().values())


def test_an_empty_batch_changes_nothing(vector_spec, make_rollout, learner_context, clock):
    ppo = Learner(config(), vector_spec, learner_context)
    before = copy.deepcopy(ppo.state_dict())
    assert ppo.learn((), clock(0)) is None
    assert trees_equal(ppo.state_dict(), before)


@pytest.mark.parametrize("spec", [EnvSpec(ArraySpec((3,)), DiscreteAction(2)), BOX])
def test_a_restored_learner_goes_on_bit_for_bit(spec, make_rollout, learner_context, clock):
    setup = config(lr={"kind": "linear", "start": 1e-2, "end": 0}, ent_coef=0.01, **NORMALIZED)
    policy = policy_for(spec, setup)
    original = Learner(setup, spec, learner_context)
    policy.set_weights(original.get_weights())
    rollouts = [acted_rollout(policy, make_rollout, seed=n, number=n) for n in range(6)]

    def go_on(learner, updates):
        for update in updates:
            learner.observe(rollouts[update])
            learner.learn((rollouts[update],), clock(update))

    go_on(original, range(3))
    state = copy.deepcopy(original.state_dict())
    restored = Learner(setup, spec, dataclasses.replace(learner_context, seed=99))
    restored.load_state_dict(state)
    go_on(original, range(3, 6))
    go_on(restored, range(3, 6))
    assert trees_equal(restored.state_dict(), original.state_dict())
    assert trees_equal(dict(restored.get_weights()), dict(original.get_weights()))
    assert restored.metrics() == original.metrics()


def test_a_state_of_another_network_is_refused(vector_spec, learner_context):
    small = Config.model_validate({"network": {"hidden_sizes": [8]}})
    deep = Config.model_validate({"network": {"hidden_sizes": [8, 8]}})
    wide = Config.model_validate({"network": {"hidden_sizes": [9]}})
    state = Learner(small, vector_spec, learner_context).state_dict()
    with pytest.raises(KeyError, match="missing"):
        Learner(deep, vector_spec, learner_context).load_state_dict(state)
    with pytest.raises(ValueError, match="shape"):
        Learner(wide, vector_spec, learner_context).load_state_dict(state)


@pytest.mark.parametrize("spec", [EnvSpec(ArraySpec((3,)), DiscreteAction(2)), MULTI, BOX])
def test_policy_is_strict_about_names(spec, learner_context):
    setup = config(normalize_observations=True)
    weights = dict(Learner(setup, spec, learner_context).get_weights())
    policy = policy_for(spec, setup)
    policy.set_weights(weights)
    renamed = {name.replace("layers.0.weight", "layers.0.wait"): array for name, array in weights.items()}
    with pytest.raises(KeyError, match="layers.0.wait"):
        policy.set_weights(renamed)
    with pytest.raises(KeyError, match="normalizer.mean"):
        policy.set_weights({name: array for name, array in weights.items() if name != "normalizer.mean"})
    with pytest.raises(ValueError, match="shape"):
        policy.set_weights({**weights, "policy.layers.0.bias": np.zeros(1, np.float32)})


def test_policy_acts_with_the_statistics_of_its_version(vector_spec, make_rollout, learner_context, clock):
    setup = config(normalize_observations=True)
    ppo, policy = Learner(setup, vector_spec, learner_context), policy_for(vector_spec, setup)
    rollout = make_rollout(8, 2)
    rollout = dataclasses.replace(rollout, obs=rollout.obs * 5 + 100)
    ppo.observe(rollout)
    assert ppo.get_weights()["normalizer.mean"].tolist() == [0.0, 0.0, 0.0]  # pending until the update
    ppo.learn((rollout,), clock(0))
    rows = rollout.obs[:-1].reshape(-1, 3).astype(np.float64)  # the last row belongs to the next rollout
    np.testing.assert_allclose(ppo.get_weights()["normalizer.mean"], rows.mean(0), rtol=1e-5)
    np.testing.assert_allclose(ppo.get_weights()["normalizer.scale"], 1 / rows.std(0), rtol=1e-4)
    policy.set_weights(ppo.get_weights())
    shown = policy.sample_action(rollout.obs[0], act()).extras["outputs"]
    with torch.no_grad():
        expected = ppo.network.policy(torch.tensor((rollout.obs[0] - rows.mean(0)) / rows.std(0)).float())
    np.testing.assert_allclose(shown, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("spec", [EnvSpec(ArraySpec((3,)), DiscreteAction(2)), MULTI, BOX])
def test_actions_have_the_specs_shape_and_dtype_and_repeat(spec, learner_context):
    policy = policy_for(spec)
    policy.set_weights(Learner(config(), spec, learner_context).get_weights())
    obs = np.ones((2, 3), np.float32)
    first, again = policy.sample_action(obs, act(4)).action, policy.sample_action(obs, act(4)).action
    greedy = policy.choose_action(obs, act(5))
    for action in (first, greedy):
        assert action.shape == (2, *spec.action.shape)
        assert action.dtype == np.dtype(spec.action.dtype)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(greedy, policy.choose_action(obs, act(6)))
    assert policy.state_dict() == {}


def test_other_observation_dtypes_and_shapes_are_flattened(learner_context, make_rollout):
    spec = EnvSpec(ArraySpec((2, 3), "float64"), DiscreteAction(2))
    policy = policy_for(spec)
    policy.set_weights(Learner(config(), spec, learner_context).get_weights())
    assert policy.choose_action(np.zeros((2, 2, 3)), act()).shape == (2,)


def test_images_train_and_act(learner_context, clock, make_rollout):
    setup = Config.model_validate(
        {"network": {"kind": "cnn", "hidden_sizes": [16]}, "learner": {"epochs": 1}}
    )
    ppo, policy = Learner(setup, IMAGES, learner_context), policy_for(IMAGES, setup)
    policy.set_weights(ppo.get_weights())
    images = np.random.default_rng(0).integers(0, 256, (5, 2, 1, 36, 36), np.uint8)
    samples = [policy.sample_action(row, act()) for row in images[:-1]]
    rows = {
        "action": np.stack([s.action for s in samples]),
        "outputs": np.stack([s.extras["outputs"] for s in samples]),
    }
    rollout = dataclasses.replace(
        make_rollout(4, 2),
        obs=images,
        action=rows["action"],
        extras=policy.finish(rows),
        final_obs=np.empty((0, 1, 36, 36), np.uint8),
    )
    ppo.learn((rollout,), clock(0))
    metrics = ppo.metrics()
    assert np.isfinite(metrics["policy_loss"])
    assert metrics["nonfinite_updates"] == 0.0


@pytest.mark.parametrize(
    ("spec", "modules", "line"),
    [
        (IMAGES, {}, "modules.network.kind: mlp takes vectors"),
        (
            EnvSpec(ArraySpec((3,)), DiscreteAction(2)),
            {"network": {"kind": "cnn"}},
            "modules.network.kind: cnn takes",
        ),
        (
            IMAGES,
            {"network": {"kind": "cnn"}, "learner": {"normalize_observations": True}},
            "modules.learner.normalize_observations",
        ),
        (
            EnvSpec(DictSpec((("a", ArraySpec((3,))),)), DiscreteAction(2)),
            {},
            "modules.network: takes one array",
        ),
    ],
)
def test_a_network_that_does_not_fit_is_refused_in_one_line(spec, modules, line, learner_context):
    with pytest.raises(ConfigError) as raised:
        Learner(Config.model_validate(modules), spec, learner_context)
    assert len(raised.value.lines) == 1
    assert raised.value.lines[0].startswith(line)


def test_learning_rate_falls_to_its_last_step(golden, vector_spec, make_rollout, learner_context, clock):
    """lr (1 - (k - 1) / K) at update k = 1 ... K."""
    case = golden("ppo/lr_anneal")
    total = case["inputs"]["K"]
    setup = config(lr={"kind": "linear", "start": case["inputs"]["lr"], "end": 0})
    ppo, rates = Learner(setup, vector_spec, learner_context), []
    for update in range(total):
        ppo.learn((make_rollout(8, 2),), dataclasses.replace(clock(update), progress=update / total))
        rates.append(ppo.metrics()["lr"])
    np.testing.assert_allclose(rates, case["expected"]["lrs"], rtol=1e-9)


@pytest.mark.parametrize(("target_kl", "epochs"), [(None, 4), (1e-9, 1), (1e9, 4)])
def test_target_kl_stops_after_the_epoch_that_went_too_far(
    target_kl, epochs, vector_spec, make_rollout, learner_context, clock
):
    ppo = Learner(
        config(target_kl=target_kl, epochs=4, minibatch_size=16, lr=1e-2), vector_spec, learner_context
    )
    ppo.learn((make_rollout(8, 2),), clock(0))
    assert int(ppo.optimizer.state_dict()["steps"]) == epochs


def test_value_clip_and_entropy_coefficient_reach_the_update(
    vector_spec, make_rollout, learner_context, clock
):
    results = []
    for learner in (
        {},
        {"value_clip": 1e-3},
        {"ent_coef": 0.5},
        {"normalize_advantages": False},
        {"vf_coef": 0.1},
    ):
        ppo = Learner(config(lr=1e-2, **learner), vector_spec, learner_context)
        ppo.learn((make_rollout(8, 2),), clock(0))
        results.append(ppo.parameters.values.numpy().tobytes())
    assert len(set(results)) == 5


def test_metrics_are_means_since_the_last_call(vector_spec, make_rollout, learner_context, clock, specs):
    ppo = Learner(config(), vector_spec, learner_context)
    singles = []
    for update in range(2):
        ppo.learn((make_rollout(8, 2, seed=update),), clock(update))
        singles.append(ppo.metrics())
    assert set(singles[0]) == set(specs["ppo"].metric_names)
    again = Learner(config(), vector_spec, learner_context)
    for update in range(2):
        again.learn((make_rollout(8, 2, seed=update),), clock(update))
    both = again.metrics()
    for name in ("policy_loss", "value_loss", "entropy", "approx_kl", "grad_norm", "explained_variance"):
        assert both[name] == pytest.approx((singles[0][name] + singles[1][name]) / 2, rel=1e-5)
    assert set(again.metrics()) == {"nonfinite_updates", "nonfinite_in_row"}


def test_pacing_is_lock_step():
    setup = Config.model_validate({"memory": {"unroll_length": 32}})
    flow = data_flow(setup, FlowContext(num_envs=8, num_samplers=3))
    assert (flow.unroll_length, flow.steps_per_update, flow.warmup_steps, flow.max_lead) == (32, 768, 0, 0)


def test_versions_of_consumed_batches_are_those_of_the_learner(
    vector_spec, make_rollout, learner_context, clock
):
    """One sampler in lock-step, five updates: versions 0, 1, 2, 3, 4."""
    ppo = Learner(config(), vector_spec, learner_context)
    memory = Memory(config(), vector_spec, MemoryContext(0, 1, ppo.reduce))
    versions = []
    for update in range(5):
        memory.add(dataclasses.replace(make_rollout(8, 2), version=update), due=update)
        batch = memory.next_batch(clock(update))
        versions += [rollout.version for rollout in batch]
        ppo.learn(batch, clock(update))
    assert versions == [0, 1, 2, 3, 4]
