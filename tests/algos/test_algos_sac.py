"""SAC's policy and learner, of continuous and of discrete actions."""

from __future__ import annotations

import copy
import dataclasses
import math

import numpy as np
import pytest
import torch

from omnirl.algorithms.sac import Config, Learner, Policy
from omnirl.api import (
    ActContext,
    ArraySpec,
    ContinuousAction,
    DiscreteAction,
    EnvSpec,
    PolicyContext,
    Transitions,
)

CONTINUOUS = EnvSpec(ArraySpec((3,)), ContinuousAction((-1.0, -2.0), (1.0, 3.0)))
DISCRETE = EnvSpec(ArraySpec((3,)), DiscreteAction(3))
SPECS = {"continuous": CONTINUOUS, "discrete": DISCRETE}


def config(network=None, policy=None, memory=None, **learner):
    sizes = {"hidden_sizes": [16, 16], **(network or {})}
    return Config.model_validate(
        {"learner": learner, "network": sizes, "policy": policy or {}, "memory": memory or {}}
    )


def batch_of(spec, seed=0, count=16):
    rng = np.random.default_rng(seed)
    if isinstance(spec.action, DiscreteAction):
        action = rng.integers(0, spec.action.n, count)
    else:
        action = rng.uniform(*spec.action.bounds(), (count, 2)).astype(np.float32)
    return Transitions(
        obs=rng.standard_normal((count, 3)).astype(np.float32),
        action=action,
        reward=rng.standard_normal(count).astype(np.float32),
        next_obs=rng.standard_normal((count, 3)).astype(np.float32),
        discount=np.where(rng.random(count) < 0.2, 0.0, 0.99).astype(np.float32),
        index=np.arange(count),
        weight=np.ones(count, np.float32),
    )


@pytest.fixture(params=SPECS)
def spec(request):
    return SPECS[request.param]


class Written:
    """SAC written out with torch.optim, torch.distributions and one small network per critic."""

    def __init__(self, learner, lr):
        networks = learner.networks
        self.actor = copy.deepcopy(networks.actor)
        self.critics = [self.member(networks.critics, i) for i in range(2)]
        self.targets = [self.member(networks.target_critics, i) for i in range(2)]
        self.log_alpha = torch.zeros((), requires_grad=True)
        for parameter in self.actor.parameters():
            parameter.grad = None
        parameters = [p for critic in self.critics for pair in critic for p in pair]
        self.optimizers = [
            torch.optim.Adam(group, lr=lr)
            for group in (self.actor.parameters(), parameters, [self.log_alpha])
        ]

    @staticmethod
    def member(ensemble, i):
        return [
            (
                layer.weight[i].detach().clone().requires_grad_(),
                layer.bias[i].detach().clone().requires_grad_(),
            )
            for layer in ensemble.layers
        ]

    @staticmethod
    def values(member, x):
        for weight, bias in member[:-1]:
            x = torch.relu(x @ weight + bias)
        weight, bias = member[-1]
        return x @ weight + bias

    def finish(self, critic_loss, actor_loss, entropy, kept):
        alpha_loss = self.log_alpha * (entropy.detach() - kept)
        gradients = [
            torch.autograd.grad(loss, list(optimizer.param_groups[0]["params"]), retain_graph=True)
            for loss, optimizer in zip((actor_loss, critic_loss, alpha_loss), self.optimizers, strict=True)
        ]
        for optimizer, of_group in zip(self.optimizers, gradients, strict=True):
            for parameter, gradient in zip(optimizer.param_groups[0]["params"], of_group, strict=True):
                parameter.grad = gradient
            optimizer.step()


def written_continuous(written, batch, seed):
    """Algorithm 1 of Haarnoja et al. 2018, with torch's own transformed distribution."""
    distributions = torch.distributions
    obs, next_obs, reward, discount = (
        torch.tensor(part) for part in (batch.obs, batch.next_obs, batch.reward, batch.discount)
    )
    unit = (torch.tensor(batch.action) - torch.tensor([0.0, 0.5])) / torch.tensor([1.0, 2.5])
    noise = torch.randn((2, 16, 2), generator=torch.Generator().manual_seed(seed))

    def sample(outputs, noise):
        mean, log_std = outputs.chunk(2, 1)
        normal = distributions.Normal(mean, log_std.exp())
        squashed = distributions.TransformedDistribution(normal, distributions.TanhTransform(cache_size=1))
        action = torch.tanh(mean + log_std.exp() * noise)
        return action, squashed.log_prob(action.clamp(-1 + 1e-6, 1 - 1e-6)).sum(1)

    with torch.no_grad():
        action, log_prob = sample(written.actor(next_obs), noise[0])
        x = torch.cat((next_obs, action), 1)
        following = torch.min(*(written.values(target, x).squeeze(1) for target in written.targets))
        goal = reward + discount * (following - log_prob)  # alpha is 1 at first
    x = torch.cat((obs, unit), 1)
    critic_loss = sum(
        torch.nn.functional.mse_loss(written.values(critic, x).squeeze(1), goal) for critic in written.critics
    )
    action, log_prob = sample(written.actor(obs), noise[1])
    x = torch.cat((obs, action), 1)
    gain = torch.min(*(written.values(critic, x).squeeze(1) for critic in written.critics))
    return critic_loss, (log_prob - gain).mean(), -log_prob.mean(), -2.0


def written_discrete(written, batch, seed):
    """Christodoulou 2019 with torch's own categorical distribution."""
    obs, next_obs, reward, discount = (
        torch.tensor(part) for part in (batch.obs, batch.next_obs, batch.reward, batch.discount)
    )

    def values(members, x):
        return torch.min(*(written.values(member, x) for member in members))

    with torch.no_grad():
        policy = torch.distributions.Categorical(logits=written.actor(next_obs))
        following = (policy.probs * values(written.targets, next_obs)).sum(1) + policy.entropy()
        goal = reward + discount * following
    taken = torch.tensor(batch.action)
    critic_loss = sum(
        torch.nn.functional.mse_loss(written.values(critic, obs)[torch.arange(16), taken], goal)
        for critic in written.critics
    )
    policy = torch.distributions.Categorical(logits=written.actor(obs))
    gain = (policy.probs * values(written.critics, obs)).sum(1) + policy.entropy()
    return critic_loss, -gain.mean(), policy.entropy().mean(), 0.6 * math.log(3)


def test_one_update_equals_the_algorithm_written_out(spec, learner_context, clock):
    setup = config(lr=1e-2, temperature_lr=1e-2, tau=0.25)
    sac = Learner(setup, spec, learner_context)
    sac.groups.targets["critics"].values.mul_(1.5)  # so that it matters which network is asked
    written = Written(sac, lr=1e-2)
    batch = batch_of(spec)
    old_targets = [copy.deepcopy(target) for target in written.targets]
    losses = {CONTINUOUS: written_continuous, DISCRETE: written_discrete}[spec](written, batch, clock(0).seed)
    written.finish(*losses)

    sac.learn(batch, clock(0))
    for ours, theirs in zip(sac.networks.actor.parameters(), written.actor.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    for i in range(2):
        for layer, (weight, bias) in enumerate(written.critics[i]):
            ours = sac.networks.critics.layers[layer]
            torch.testing.assert_close(ours.weight[i], weight, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(
                ours.bias[i, 0], bias[0] if bias.dim() == 2 else bias, rtol=1e-4, atol=1e-5
            )
            target = sac.networks.target_critics.layers[layer]
            expected = 0.25 * weight + 0.75 * old_targets[i][layer][0]
            torch.testing.assert_close(target.weight[i], expected, rtol=1e-4, atol=1e-5)
    assert float(sac.temperature.log_value.detach()) == pytest.approx(
        float(written.log_alpha.detach()), abs=1e-6
    )
    metrics = sac.metrics()
    for name, expected in zip(("critic_loss", "actor_loss", "entropy"), losses):
        assert metrics[name] == pytest.approx(float(expected.detach()), rel=1e-4, abs=1e-5), name
    assert metrics["temperature"] == 1.0


def test_weights_of_a_batch_multiply_the_critics_loss(spec, learner_context, clock):
    losses = []
    for weight in (1.0, 0.5):
        sac = Learner(config(), spec, learner_context)
        batch = dataclasses.replace(batch_of(spec), weight=np.full(16, weight, np.float32))
        sac.learn(batch, clock(0))
        losses.append(sac.metrics()["critic_loss"])
    assert losses[1] == pytest.approx(losses[0] / 2, rel=1e-5)


@pytest.mark.parametrize(("kept", "sign"), [(-50.0, -1), (50.0, 1)])
def test_k16_the_temperature_falls_while_the_entropy_is_above_its_target(
    kept, sign, spec, learner_context, clock
):
    sac = Learner(config(target_entropy=kept, temperature_lr=0.01), spec, learner_context)
    sac.learn(batch_of(spec), clock(0))
    assert float(sac.temperature.log_value.detach()) == pytest.approx(sign * 0.01, rel=1e-4)


def test_k16_a_single_action_leaves_the_temperature_alone(learner_context, clock):
    spec = EnvSpec(ArraySpec((3,)), DiscreteAction(1))
    sac = Learner(config(temperature_lr=0.1), spec, learner_context)
    for update in range(20):
        sac.learn(batch_of(spec, update), clock(update))
    assert float(sac.temperature.log_value.detach()) == pytest.approx(0.0, abs=1e-6)


def test_the_temperature_stays_within_bounds(spec, learner_context, clock):
    sac = Learner(config(target_entropy=1e6, temperature_lr=3.0), spec, learner_context)
    for update in range(8):
        sac.learn(batch_of(spec, update), clock(update))
    assert float(sac.temperature.log_value.detach()) == 10.0


def test_a_fixed_temperature_stays(spec, learner_context, clock):
    sac = Learner(config(temperature=0.25), spec, learner_context)
    for update in range(3):
        sac.learn(batch_of(spec, update), clock(update))
    assert sac.metrics()["temperature"] == pytest.approx(0.25)
    assert "temperature" not in sac.state_dict()


def test_critics_have_their_own_learning_rate(spec, learner_context, clock):
    sac = Learner(config(lr=0.0, critic_lr=1e-2), spec, learner_context)
    before = {name: group.parameters.values.clone() for name, group in sac.groups.all().items()}
    sac.learn(batch_of(spec), clock(0))
    moved = {
        name: not torch.equal(group.parameters.values, before[name])
        for name, group in sac.groups.all().items()
    }
    assert moved == {"critics": True, "actor": False, "temperature": True}
    assert sac.metrics()["lr"] == 0.0


def test_k14_one_update_with_tau_1_copies_the_critics(spec, learner_context, clock):
    sac = Learner(config(tau=1.0), spec, learner_context)
    sac.learn(batch_of(spec), clock(0))
    assert torch.equal(sac.groups.targets["critics"].values, sac.groups.critics.parameters.values)


@pytest.mark.parametrize("normalized", [False, True])
def test_a_restored_learner_goes_on_bit_for_bit(normalized, spec, learner_context, clock, trees_equal):
    lr = {"kind": "linear", "start": 1e-2, "end": 0}
    setup = config(network={"critic_layer_norm": normalized}, lr=lr)
    original = Learner(setup, spec, learner_context)
    for update in range(5):
        original.learn(batch_of(spec, update), clock(update))
    restored = Learner(setup, spec, dataclasses.replace(learner_context, seed=99))
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    for learner in (original, restored):
        for update in range(5, 12):
            learner.learn(batch_of(spec, update), clock(update))
    assert trees_equal(restored.state_dict(), original.state_dict())
    assert restored.metrics() == original.metrics()


def test_a_nonfinite_update_changes_nothing_but_counts(spec, learner_context, clock, trees_equal):
    sac = Learner(config(), spec, learner_context)
    sac.learn(batch_of(spec), clock(0))
    sac.metrics()
    before = copy.deepcopy(sac.state_dict())
    bad = batch_of(spec, 1)
    bad.reward[3] = np.inf
    for update in (1, 2, 3):
        sac.learn(bad, clock(update))
    after = sac.state_dict()
    for part in ("actor", "critics", "temperature", "targets"):
        assert trees_equal(after[part], before[part])
    metrics = sac.metrics()
    assert (metrics["nonfinite_updates"], metrics["nonfinite_in_row"], sac.nonfinite_in_row) == (3.0, 3.0, 3)
    assert "critic_loss" not in metrics


@pytest.mark.parametrize("name", ["critics", "actor", "temperature"])
def test_one_groups_nonfinite_gradient_holds_all_back(
    name, spec, learner_context, clock, trees_equal, monkeypatch
):
    sac = Learner(config(), spec, learner_context)
    before = copy.deepcopy(sac.state_dict())
    monkeypatch.setattr(sac.groups.all()[name], "clip", lambda: torch.tensor(float("inf")))
    sac.learn(batch_of(spec), clock(0))
    after = sac.state_dict()
    for part in ("actor", "critics", "temperature", "targets"):
        assert trees_equal(after[part], before[part])
    assert sac.metrics()["nonfinite_in_row"] == 1.0


def make_policy(spec, learner_context, envs=4, **policy):
    setup = config(policy=policy)
    result = Policy(setup, spec, PolicyContext("sampler", 0, 1, envs))
    sac = Learner(setup, spec, learner_context)
    result.set_weights(sac.get_weights())
    return result, sac


def act(env_steps=10_000, seed=0, envs=4):
    return ActContext(np.random.default_rng(seed), env_steps, 0.0, np.zeros(envs, bool))


@pytest.mark.parametrize("activation", ["tanh", "elu", "silu"])
def test_other_activations_learn_and_act(activation, spec, learner_context, clock):
    setup = config(network={"activation": activation}, lr=1e-2)
    sac = Learner(setup, spec, learner_context)
    losses = []
    for update in range(60):
        sac.learn(batch_of(spec), clock(update))
        losses.append(sac.metrics()["critic_loss"])
    assert losses[-1] < losses[0] / 2
    policy = Policy(setup, spec, PolicyContext("evaluator", 0, 1, 4))
    policy.set_weights(sac.get_weights())
    obs = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
    with torch.no_grad():
        outputs = sac.networks.actor(torch.tensor(obs)).numpy()
    if spec is DISCRETE:
        expected = outputs.argmax(1)
    else:
        expected = np.array([0.0, 0.5]) + np.array([1.0, 2.5]) * np.tanh(outputs[:, :2])
    np.testing.assert_allclose(policy.choose_action(obs, act()), expected, rtol=1e-4, atol=1e-4)


def test_evaluation_takes_tanh_of_the_mean_in_environment_units(learner_context):
    policy, sac = make_policy(CONTINUOUS, learner_context)
    obs = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
    with torch.no_grad():
        mean = sac.networks.actor(torch.tensor(obs))[:, :2].numpy()
    expected = np.array([0.0, 0.5]) + np.array([1.0, 2.5]) * np.tanh(mean)
    np.testing.assert_allclose(policy.choose_action(obs, act()), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("u", "expected"), [(0.0, -0.5), (50.0, 1.0), (-50.0, -2.0)])
def test_k18_the_offset_is_added_once(u, expected, learner_context):
    """Box(low=-2, high=1): tanh 0 is -0.5."""
    spec = EnvSpec(ArraySpec((3,)), ContinuousAction((-2.0,), (1.0,)))
    policy, sac = make_policy(spec, learner_context)
    weights = {name: np.zeros_like(array) for name, array in sac.get_weights().items()}
    weights["layers.2.bias"][:] = [u, -20.0]
    policy.set_weights(weights)
    obs = np.zeros((4, 3), np.float32)
    assert policy.choose_action(obs, act()) == pytest.approx(expected)
    assert policy.sample_action(obs, act()).action == pytest.approx(expected, abs=1e-5)


def test_samples_are_those_of_the_squashed_gaussian(learner_context):
    """The mean of atanh of the unit action, and its deviation, are the network's."""
    policy, sac = make_policy(CONTINUOUS, learner_context, envs=4000)
    weights = {name: np.zeros_like(array) for name, array in sac.get_weights().items()}
    weights["layers.2.bias"][:] = [0.3, -0.4, -1.0, -0.5]
    policy.set_weights(weights)
    action = policy.sample_action(np.zeros((4000, 3), np.float32), act(envs=4000)).action
    u = np.arctanh((action - [0.0, 0.5]) / [1.0, 2.5])
    np.testing.assert_allclose(u.mean(0), [0.3, -0.4], atol=0.04)
    np.testing.assert_allclose(u.std(0), np.exp([-1.0, -0.5]), atol=0.03)


def test_acting_keeps_the_deviation_within_the_limit_of_learning(learner_context):
    """At most e^2: P(|z| < atanh(0.5) / e^2) = 0.0593 of normal z stay nearer to the middle than half way."""
    policy, sac = make_policy(CONTINUOUS, learner_context, envs=4000)
    weights = {name: np.zeros_like(array) for name, array in sac.get_weights().items()}
    weights["layers.2.bias"][2:] = 50.0
    policy.set_weights(weights)
    action = policy.sample_action(np.zeros((4000, 3), np.float32), act(envs=4000)).action
    near = np.abs((action - [0.0, 0.5]) / [1.0, 2.5]) < 0.5
    np.testing.assert_allclose(near.mean(0), 0.0593, atol=0.012)


def test_the_first_steps_are_uniform_in_environment_units(spec, learner_context):
    policy, sac = make_policy(spec, learner_context, envs=4000, random_steps=500)
    weights = {name: np.zeros_like(array) for name, array in sac.get_weights().items()}
    weights["layers.2.bias"][:] = [50.0, 50.0, -20.0, -20.0] if spec is CONTINUOUS else [0.0, 1000.0, 0.0]
    policy.set_weights(weights)
    obs = np.zeros((4000, 3), np.float32)
    action = policy.sample_action(obs, act(env_steps=499, envs=4000)).action
    own = policy.sample_action(obs, act(env_steps=500, envs=4000)).action
    if spec is DISCRETE:
        assert np.bincount(action) == pytest.approx([1333] * 3, abs=150)
        assert action.dtype == np.int64
        assert set(own.tolist()) == {1}
        return
    np.testing.assert_allclose(action.min(0), [-1.0, -2.0], atol=0.01)
    np.testing.assert_allclose(action.max(0), [1.0, 3.0], atol=0.01)
    np.testing.assert_allclose(action.mean(0), [0.0, 0.5], atol=0.08)
    assert action.dtype == np.float32
    np.testing.assert_array_equal(own, np.tile(np.float32([1.0, 3.0]), (4000, 1)))


def test_random_steps_default_to_the_warm_up(learner_context):
    setup = config(memory={"warmup_steps": 700})
    policy = Policy(setup, DISCRETE, PolicyContext("sampler", 0, 1, 4))
    sac = Learner(setup, DISCRETE, learner_context)
    weights = {name: np.zeros_like(array) for name, array in sac.get_weights().items()}
    weights["layers.2.bias"][:] = [0.0, 1000.0, 0.0]
    policy.set_weights(weights)
    obs, seen = np.zeros((4, 3), np.float32), {}
    for steps in (699, 700):
        actions = [policy.sample_action(obs, act(steps, seed)).action for seed in range(20)]
        seen[steps] = set(np.concatenate(actions).tolist())
    assert seen == {699: {0, 1, 2}, 700: {1}}


def test_discrete_samples_follow_the_softmax(learner_context):
    policy, sac = make_policy(DISCRETE, learner_context, envs=4000)
    weights = {name: np.zeros_like(array) for name, array in sac.get_weights().items()}
    weights["layers.2.bias"][:] = np.log([0.5, 0.3, 0.2])
    policy.set_weights(weights)
    obs = np.zeros((4000, 3), np.float32)
    shares = np.bincount(policy.sample_action(obs, act(envs=4000)).action) / 4000
    np.testing.assert_allclose(shares, [0.5, 0.3, 0.2], atol=0.03)
    assert set(policy.choose_action(obs, act(envs=4000)).tolist()) == {0}
