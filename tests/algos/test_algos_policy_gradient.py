"""A2C's and IMPALA's update: the loss against goldens, its gradient against autograd, and what enters it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from omnirl.algorithms.shared.on_policy import losses
from omnirl.algorithms.shared.on_policy.policy_gradient_learner import loss_of, mean_weight, sum_weight
from omnirl.algorithms.shared.on_policy.returns import gae, vtrace
from omnirl.algorithms.shared.training.likelihoods import categorical
from omnirl.api import (
    ActContext,
    ArraySpec,
    ContinuousAction,
    DiscreteAction,
    EnvSpec,
    FlowContext,
    MultiDiscreteAction,
    PolicyContext,
)
from omnirl.api.plugin import load_object

SPACES = {
    "discrete": EnvSpec(ArraySpec((3,)), DiscreteAction(2)),
    "multi_discrete": EnvSpec(ArraySpec((3,)), MultiDiscreteAction((2, 3))),
    "continuous": EnvSpec(ArraySpec((3,)), ContinuousAction((-2.0, -1.0), (4.0, 1.0))),
}


@pytest.fixture
def make(specs, learner_context, vector_spec):
    """``make(algorithm, spec=two actions, **keys of the learner section)`` -> a Learner."""

    def learner(algorithm, spec=vector_spec, **keys):
        config = load_object(specs[algorithm].config).model_validate(
            {"learner": keys, "network": {"hidden_sizes": [8]}}
        )
        return load_object(specs[algorithm].learner)(config, spec, learner_context)

    return learner


def golden_loss(case, kind, value_loss, weight):
    given = case["inputs"]
    advantages = kind(given.get("advantages", given.get("pg_advantages")))
    likelihood = categorical(kind(given["logits"]), torch.tensor(given["actions"]).unsqueeze(1).numpy())
    count = len(given["values"])
    return likelihood, loss_of(
        likelihood,
        advantages,
        kind(given["values"]),
        kind(given.get("returns", given.get("vs"))),
        value_loss=value_loss,
        vf_coef=given.get("vf_coef", given.get("baseline_cost")),
        ent_coef=given.get("ent_coef", given.get("entropy_cost")),
        weight=weight(count),
    )


def float32(values):
    return np.array(values, np.float32)


def test_the_loss_of_a2c_is_a_mean_without_a_half(golden):
    case = golden("a2c/loss")
    likelihood, loss = golden_loss(case, float32, losses.squared_error, mean_weight)
    expected, tolerance = case["expected"], case["tol_float32"]
    means = [part.mean() for part in (loss.policy_loss, loss.value_loss, likelihood.entropy)]
    names = ("policy_loss", "value_loss", "entropy")
    np.testing.assert_allclose(means, [expected[name] for name in names], tolerance)
    assert means[0] + 0.5 * means[1] - 0.01 * means[2] == pytest.approx(expected["total"], rel=tolerance)
    np.testing.assert_allclose(loss.d_outputs, expected["grad_logits"], tolerance, tolerance)
    np.testing.assert_allclose(loss.d_values, expected["grad_values"], tolerance, tolerance)


def test_the_loss_of_impala_is_a_sum(golden):
    case = golden("impala/loss_sum_convention")
    likelihood, loss = golden_loss(case, float32, losses.half_squared_error, sum_weight)
    expected, tolerance = case["expected"], case["tol_float32"]
    sums = [part.sum() for part in (loss.policy_loss, loss.value_loss, likelihood.entropy)]
    assert sums[0] == pytest.approx(expected["pg_loss"], rel=tolerance)
    assert sums[1] == pytest.approx(expected["baseline_loss"], rel=tolerance)
    assert -sums[2] == pytest.approx(expected["entropy_loss"], rel=tolerance)
    total = sums[0] + 0.5 * sums[1] - 0.00025 * sums[2]
    assert total == pytest.approx(expected["total"], rel=tolerance)
    np.testing.assert_allclose(loss.d_outputs, expected["grad_logits"], tolerance, tolerance)
    np.testing.assert_allclose(loss.d_values, expected["grad_values"], tolerance, tolerance)


def actions_for(spec, rng):
    if isinstance(spec.action, ContinuousAction):
        return rng.standard_normal((8, 2, 2)).astype(np.float32)
    if isinstance(spec.action, MultiDiscreteAction):
        return np.stack([rng.integers(0, n, (8, 2)) for n in spec.action.nvec], -1)
    return rng.integers(0, spec.action.n, (8, 2))


def torch_distribution(learner, spec, outputs):
    if isinstance(spec.action, ContinuousAction):
        normal = torch.distributions.Normal(outputs, learner.network.log_std.exp())
        return torch.distributions.Independent(normal, 1)
    nvec = spec.action.nvec if isinstance(spec.action, MultiDiscreteAction) else (spec.action.n,)
    return [torch.distributions.Categorical(logits=part) for part in outputs.split(nvec, 1)]


def log_prob_and_entropy(distribution, action):
    if not isinstance(distribution, list):
        return distribution.log_prob(action), distribution.entropy()
    log_probs = [part.log_prob(action[:, i]) for i, part in enumerate(distribution)]
    return sum(log_probs), sum(part.entropy() for part in distribution)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("algorithm", ["a2c", "impala"])
def test_the_gradient_is_that_of_the_loss_written_out(algorithm, space, make, make_rollout, clock):
    """Through autograd, ``torch.distributions`` and one state after the other: episodes end at (2, 0) and, cut, at
    (4, 1); their last observations are worth something only to the cut one."""
    spec = SPACES[space]
    keys = {"ent_coef": 0.1, "max_grad_norm": None, "gamma": 0.9, "lr": 0.0}
    keys |= {"gae_lambda": 0.8} if algorithm == "a2c" else {"vtrace_lambda": 0.8, "rho_bar": 1.3}
    learner = make(algorithm, spec, **keys)
    rng = np.random.default_rng(5)
    rollout = make_rollout(8, 2, action=actions_for(spec, rng))
    rollout.extras["log_prob"] += rng.standard_normal((8, 2)).astype(np.float32)
    learner.learn((rollout,), clock(0))
    found = {name: tensor.grad.clone() for name, tensor in learner.network.named_parameters()}

    outputs, values = learner.network(torch.from_numpy(rollout.obs[:-1].reshape(16, 3)))
    action = torch.from_numpy(learner._head.network_action(rollout.action))
    log_prob, entropy = log_prob_and_entropy(torch_distribution(learner, spec, outputs), action)
    before = values.detach().reshape(8, 2).numpy()
    after = learner.network.values(torch.from_numpy(rollout.next_obs().reshape(16, 3)))
    after = after.detach().reshape(8, 2).numpy()
    data = (rollout.reward, before, after, rollout.terminated, rollout.truncated)
    if algorithm == "a2c":
        advantages, targets = gae(*data, gamma=0.9, gae_lambda=0.8)
        weight, half = 1 / 16, 1.0
    else:
        log_rhos = log_prob.detach().reshape(8, 2).numpy() - rollout.extras["log_prob"]
        targets, advantages = vtrace(log_rhos, *data, gamma=0.9, vtrace_lambda=0.8, rho_bar=1.3)
        weight, half = 1.0, 0.5
    advantages, targets = (torch.from_numpy(array.reshape(-1)) for array in (advantages, targets))
    loss = -advantages * log_prob + 0.5 * half * (values - targets) ** 2 - 0.1 * entropy
    names, parameters = zip(*learner.network.named_parameters())
    expected = torch.autograd.grad(weight * loss.sum(), parameters)
    assert max(float(gradient.abs().max()) for gradient in expected) > 0.01
    for name, gradient in zip(names, expected):
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-5)


def weights_after(learner, rollout, clock):
    learner.learn((rollout,), clock(0))
    return learner.parameters.values.numpy().tobytes()


@pytest.mark.parametrize("algorithm", ["a2c", "impala"])
def test_rmsprop_is_tensorflows(algorithm, make, make_rollout, clock):
    """As the papers had it: the average of squares begins at 1, and epsilon is inside the root."""
    learner = make(algorithm, lr=1e-2, rmsprop_decay=0.9, rmsprop_epsilon=0.5)
    before = learner.parameters.values.clone()
    learner.learn((make_rollout(8, 2),), clock(0))
    gradient = learner.parameters.gradient
    assert gradient.abs().max() > 0.01
    expected = before - 1e-2 * gradient / (0.9 + 0.1 * gradient.square() + 0.5).sqrt()
    torch.testing.assert_close(learner.parameters.values, expected, rtol=1e-5, atol=1e-7)


def test_observations_that_two_rollouts_share_are_counted_once(make, make_rollout):
    """The last row of one is the first of the next."""
    learner = make("a2c", normalize_observations=True)
    rollouts = [make_rollout(8, 2, number=number, seed=number) for number in range(2)]
    for rollout in rollouts:
        learner.observe(rollout)
    pending = learner.statistics.observations.pending
    acted_on = np.concatenate([rollout.obs[:-1].reshape(-1, 3) for rollout in rollouts])
    assert pending.count == 32
    np.testing.assert_allclose(pending.mean, acted_on.mean(axis=0), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(pending.var, acted_on.var(axis=0), rtol=1e-5)


def test_a2c_standardizes_advantages_where_asked(make, make_rollout, clock):
    """Rewards 1000 times as great give the same gradient of the policy then, and 1000 times it otherwise."""
    for normalize, factor in ((True, 1.0), (False, 1000.0)):
        gradients = []
        for scale in (1.0, 1000.0):
            # A value network of zeros, so that the advantages are those of the rewards alone.
            learner = make("a2c", normalize_advantages=normalize, max_grad_norm=None, ent_coef=0.0)
            for parameter in learner.network.value.parameters():
                parameter.data.zero_()
            rollout = make_rollout(8, 2)
            rollout = dataclasses.replace(rollout, reward=rollout.reward * np.float32(scale))
            learner.learn((rollout,), clock(0))
            gradients.append(learner.network.policy.pairs[-1][1].grad.clone())
        torch.testing.assert_close(gradients[1], gradients[0] * factor, rtol=1e-4, atol=1e-6)


def test_impala_takes_the_log_probabilities_of_the_policy_that_acted(make, make_rollout, clock):
    """They are read from the rollout: others give another update. A2C's actions are its own policy's."""
    for algorithm, same in (("a2c", True), ("impala", False)):
        rollouts = [make_rollout(8, 2), make_rollout(8, 2)]
        rollouts[1].extras["log_prob"] += 0.5
        results = {weights_after(make(algorithm), rollout, clock) for rollout in rollouts}
        assert (len(results) == 1) is same


def test_impala_survives_impossible_ratios(make, make_rollout, clock):
    """An action that the acting policy held for next to impossible: exp(1000) is infinite, and min(inf, 1) = 1 would
    hide it; with no bar worth the name the ratio is at most exp(20)."""
    learner = make("impala", spec=SPACES["continuous"], rho_bar=1e30, c_bar=1.0, pg_rho_bar=1e30)
    action = np.zeros((8, 2, 2), np.float32)
    rollout = make_rollout(8, 2, action=action)
    rollout.extras["log_prob"][3, 1] = -1000.0
    learner.learn((rollout,), clock(0))
    metrics = learner.metrics()
    assert metrics["nonfinite_updates"] == 0.0
    assert np.isfinite(list(metrics.values())).all()
    # k3 of the one ratio is exp(20) - 1 - 20, over 16 samples; the others are small.
    assert metrics["approx_kl"] == pytest.approx(np.exp(20.0) / 16, rel=1e-3)


def test_the_figures_of_the_ratios(make, make_rollout, clock):
    """The policy is all but uniform at first: ratios are 1/2 divided by what the rollout says."""
    learner = make("impala")
    rollout = make_rollout(8, 2)
    rollout.extras["log_prob"][:] = np.log(0.4)
    rollout.extras["log_prob"][:2] = np.log(0.8)
    learner.learn((rollout,), clock(0))
    metrics = learner.metrics()
    high, low = np.log(0.5 / 0.4), np.log(0.5 / 0.8)
    k3 = [np.exp(x) - 1 - x for x in (high, low)]
    assert metrics["clip_fraction"] == pytest.approx(12 / 16)
    wide = make("impala", rho_bar=1.5)
    wide.learn((rollout,), clock(0))
    assert wide.metrics()["clip_fraction"] == 0.0  # 1.25 is not cut
    assert metrics["approx_kl"] == pytest.approx((12 * k3[0] + 4 * k3[1]) / 16, abs=0.01)


@pytest.mark.parametrize("algorithm", ["a2c", "impala"])
def test_pictures_are_learned_from_and_acted_on(algorithm, make, specs, make_rollout, clock):
    """The trunk and both heads move; episodes of different ends, whose last pictures pass the network too."""
    spec = EnvSpec(ArraySpec((1, 36, 36), "uint8", "image"), DiscreteAction(2))
    learner = make(algorithm, spec)
    before = {name: tensor.clone() for name, tensor in learner.network.named_parameters()}
    rng = np.random.default_rng(0)
    pictures = {
        name: rng.integers(0, 256, (*shape, 1, 36, 36), np.uint8)
        for name, shape in (("obs", (9, 2)), ("final_obs", (2,)))
    }
    learner.learn((dataclasses.replace(make_rollout(8, 2), **pictures),), clock(0))
    assert learner.metrics()["nonfinite_updates"] == 0.0
    for name, tensor in learner.network.named_parameters():
        assert not torch.equal(tensor, before[name]), name
    config = load_object(specs[algorithm].config).model_validate({"network": {"hidden_sizes": [8]}})
    policy = load_object(specs[algorithm].policy)(config, spec, PolicyContext("sampler", 0, 1, 2))
    policy.set_weights(learner.get_weights())
    act = ActContext(rng, 0, 0.0, np.zeros(2, bool))
    shown = policy.sample_action(pictures["obs"][0], act).extras["outputs"]
    with torch.no_grad():
        expected = learner.network.policy(torch.from_numpy(pictures["obs"][0])).numpy()
    np.testing.assert_allclose(shown, expected, atol=1e-5)


@pytest.mark.parametrize("algorithm", ["a2c", "impala"])
def test_a_nonfinite_update_changes_nothing_but_counts(algorithm, make, make_rollout, clock, trees_equal):
    learner = make(algorithm)
    learner.learn((make_rollout(8, 2),), clock(0))
    before = learner.state_dict()
    bad = make_rollout(8, 2)
    bad.reward[5, 0] = np.nan
    learner.learn((bad,), clock(1))
    after = learner.state_dict()
    assert all(trees_equal(after[part], before[part]) for part in ("parameters", "optimizer"))
    metrics = learner.metrics()
    assert (metrics["nonfinite_updates"], metrics["nonfinite_in_row"]) == (1.0, 1.0)
    learner.learn((make_rollout(8, 2),), clock(2))
    assert learner.metrics()["nonfinite_in_row"] == 0.0


def test_pacing(specs):
    """A2C: 5 steps x 8 environments x 3 samplers in lock-step. IMPALA: 4 rollouts of 20 x 8, at most two versions old,
    however many samplers there are."""
    context = FlowContext(num_envs=8, num_samplers=3)
    flows = {
        name: load_object(specs[name].data_flow)(load_object(specs[name].config)(), context)
        for name in ("a2c", "impala")
    }
    assert dataclasses.astuple(flows["a2c"]) == (5, 120, 0, 0, True)
    assert dataclasses.astuple(flows["impala"]) == (20, 640, 0, 2, True)


@pytest.mark.parametrize(
    ("algorithm", "section", "key", "value"),
    [
        ("a2c", "learner", "optimizer", "sgd"),
        ("a2c", "learner", "gae_lambda", 1.5),
        ("impala", "learner", "rho_bar", 0.0),
        ("impala", "learner", "vtrace_lambda", -0.1),
        ("impala", "memory", "rollouts_per_update", 0),
    ],
)
def test_mistakes_are_refused(specs, algorithm, section, key, value):
    with pytest.raises(ValueError, match=key):
        load_object(specs[algorithm].config).model_validate({section: {key: value}})
