"""DDPG and TD3: formulas against goldens and hand-computed cases, noise, policy and learner."""

from __future__ import annotations

import copy
import dataclasses
import importlib
from itertools import pairwise

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from omnirl.algorithms.shared.bounded_actions.action_noise import ou_step
from omnirl.algorithms.shared.bounded_actions.critic_losses import least
from omnirl.algorithms.shared.bounded_actions.deterministic_losses import (
    deterministic_losses,
    smoothed,
    smoothing,
    unchanged,
)
from omnirl.algorithms.shared.off_policy.batch_part import BatchPart
from omnirl.algorithms.shared.off_policy.targets import bootstrapped
from omnirl.algorithms.shared.off_policy.transition_tensors import TransitionTensors, action_tensor
from omnirl.api import ActContext, ArraySpec, ContinuousAction, EnvSpec, PolicyContext, Transitions
from omnirl.networks.actor_critic_passes import Passes

SPEC = EnvSpec(ArraySpec((3,)), ContinuousAction((-1.0, -2.0), (1.0, 3.0)))
NAMES = ("ddpg", "td3")


def part(algorithm, name):
    return getattr(importlib.import_module(f"omnirl.algorithms.{algorithm}"), name)


def config(algorithm, policy=None, memory=None, **learner):
    data = {
        "learner": learner,
        "policy": policy or {},
        "memory": memory or {},
        "network": {"hidden_sizes": [16, 16]},
    }
    return part(algorithm, "Config").model_validate(data)


def batch_of(seed=0, count=16):
    rng = np.random.default_rng(seed)
    return Transitions(
        obs=rng.standard_normal((count, 3)).astype(np.float32),
        action=rng.uniform(*SPEC.action.bounds(), (count, 2)).astype(np.float32),
        reward=rng.standard_normal(count).astype(np.float32),
        next_obs=rng.standard_normal((count, 3)).astype(np.float32),
        discount=np.where(rng.random(count) < 0.2, 0.0, 0.99).astype(np.float32),
        index=np.arange(count),
        weight=np.ones(count, np.float32),
    )


def toy_critic(*linears):
    """Q = w . [s, a] + b for each (w, b), as an ensemble: [N, D] -> [M, N, 1]."""
    return lambda x: torch.stack([(x @ torch.tensor(w) + b).unsqueeze(1) for w, b in linears])


def golden_batch(case):
    given = case["inputs"]
    next_obs = torch.tensor(given["next_obs"])
    discount = given["gamma"] * (1 - torch.tensor(given["terminated"], dtype=torch.float32))
    return next_obs, torch.tensor(given["rewards"]), discount


def test_td3_target(golden):
    case = golden("td3/target")
    given, expected, tolerance = case["inputs"], case["expected"], case["tol_float32"]
    next_obs, reward, discount = golden_batch(case)
    action, bound = torch.tensor(given["target_actor_action"]), given["max_action"]
    scale = {"std": given["policy_noise"] * bound, "clip": given["noise_clip"] * bound}
    xi = torch.tensor(given["xi"])
    unbounded = smoothed(action, xi, low=-1e9, high=1e9, **scale) - action
    np.testing.assert_allclose(unbounded, expected["clipped_noise"], atol=1e-6)
    action = smoothed(action, xi, low=-bound, high=bound, **scale)
    np.testing.assert_allclose(action, expected["next_action"], atol=1e-6)
    critics = toy_critic((given["w1"], given["b1"]), (given["w2"], given["b2"]))
    values = critics(torch.cat((next_obs, action), 1))
    np.testing.assert_allclose(values[:, :, 0], [expected["q1"], expected["q2"]], atol=tolerance)
    np.testing.assert_allclose(
        bootstrapped(reward, discount, least(values)), expected["target"], atol=tolerance
    )


def test_ddpg_target(golden):
    case = golden("ddpg/target")
    given, expected = case["inputs"], case["expected"]
    next_obs, reward, discount = golden_batch(case)
    action = unchanged(torch.tensor(given["target_actor_action"]), BatchPart(0, 1, 1), torch.Generator())
    values = least(toy_critic((given["w1"], given["b1"]))(torch.cat((next_obs, action), 1)))
    np.testing.assert_allclose(values, expected["q"], atol=case["tol_float32"])
    np.testing.assert_allclose(
        bootstrapped(reward, discount, values), expected["target"], atol=case["tol_float32"]
    )


def test_deterministic_policy_gradient(golden):
    """mu = tanh(s . theta), Q = -(a - 0.5)^2 + s_0 a, through the loss that both algorithms use."""
    case = golden("ddpg/policy_gradient")
    theta, obs = torch.tensor(case["inputs"]["theta"]), torch.tensor(case["inputs"]["obs"])

    class Critic:
        def forward(self, x):
            self.x = x
            return (-((x[:, 2] - 0.5) ** 2) + x[:, 0] * x[:, 2]).view(1, -1, 1)

        def backward(self, d):
            """It has nothing to learn."""

        def input_gradient(self, d, columns):
            return d[0] * (self.x[:, :1] - 2 * (self.x[:, 2:] - 0.5))

    class Actor:
        def forward(self, x):
            self.x = x
            return (x @ theta).unsqueeze(1)

        __call__ = forward

        def backward(self, d):
            self.gradient = (self.x * d).sum(0)

    zeros, actor = torch.zeros(len(obs)), Actor()
    batch = TransitionTensors(obs, torch.zeros(len(obs), 1), zeros, obs, zeros, zeros + 1)
    passes = Passes(actor, Actor(), Critic(), Critic(), Critic())
    losses = deterministic_losses(passes, next_action=unchanged, next_value=least)
    result = losses(batch, BatchPart(0, len(obs), len(obs)), torch.Generator(), True)
    assert float(result.waiting_figures[0]) == pytest.approx(case["expected"]["loss"], rel=1e-5)
    np.testing.assert_allclose(actor.gradient, case["expected"]["grad_theta"], rtol=1e-5)


def test_ou_noise(golden):
    case = golden("ddpg/ou_noise")
    given = case["inputs"]
    for dt, name in ((1.0, "dt1"), (0.01, "dt001")):
        x, path = np.zeros(1, np.float32), []
        for xi in given["xi"]:
            x = ou_step(x, np.float32(xi), theta=given["theta"], sigma=given["sigma"], dt=dt)
            path.append(float(x[0]))
        np.testing.assert_allclose(path, case["expected"][name], atol=case["tol_float32"])


def test_k18_smoothing_noise_is_scaled_and_each_samples_own():
    """Half range 2, mu' = 1.5, raw noise 3 x 0.2: clipped to 0.5, scaled to 1.0, and the sum to 2."""
    action = smoothed(torch.tensor([1.5]), torch.tensor([3.0]), std=0.4, clip=1.0, low=-2.0, high=2.0)
    assert action.tolist() == [2.0]
    noise = smoothing(0.2, 0.5)(torch.zeros(500, 2), BatchPart(0, 500, 500), torch.Generator().manual_seed(0))
    assert len(noise.unique()) > 900
    assert float(noise.std()) == pytest.approx(0.2, abs=0.02)
    assert float(noise.abs().max()) == pytest.approx(0.5)


def test_td3_delays_actor_and_targets(golden, learner_context, clock):
    """Delay 2, 10 updates of the critics: exactly 5 of the actor and of the targets, after the even ones."""
    case = golden("td3/delayed_update_schedule")
    td3 = part("td3", "Learner")(config("td3"), SPEC, learner_context)
    moved = {"critics": [], "actor": [], "target critics": [], "target actor": []}
    for update in range(10):
        tensors = {
            "critics": td3.groups.critics.parameters.values,
            "actor": td3.groups.waiting["actor"].parameters.values,
            "target critics": td3.groups.targets["critics"].values,
            "target actor": td3.groups.targets["actor"].values,
        }
        before = {name: tensor.clone() for name, tensor in tensors.items()}
        td3.learn(batch_of(update), clock(update))
        for name, tensor in tensors.items():
            if not torch.equal(tensor, before[name]):
                moved[name].append(update + 1)
    assert moved["critics"] == list(range(1, 11))
    expected = case["expected"]
    assert moved["actor"][:4] == expected["actor_update_iterations"]
    assert moved["target critics"][:4] == expected["target_update_iterations"]
    assert moved["actor"] == moved["target critics"] == moved["target actor"] == [2, 4, 6, 8, 10]
    assert td3.metrics()["nonfinite_updates"] == 0.0


def written(algorithm, learner, batch, seed):
    """Losses with one small network per critic and torch's own functions: (critic loss, actor loss)."""
    unit = (torch.tensor(batch.action) - torch.tensor([0.0, 0.5])) / torch.tensor([1.0, 2.5])
    obs, next_obs, reward, discount = (
        torch.tensor(array) for array in (batch.obs, batch.next_obs, batch.reward, batch.discount)
    )

    def value(ensemble, i, x):
        for layer in ensemble.layers[:-1]:
            x = torch.relu(x @ layer.weight[i] + layer.bias[i])
        return (x @ ensemble.layers[-1].weight[i] + ensemble.layers[-1].bias[i]).squeeze(1)

    count = {"ddpg": 1, "td3": 2}[algorithm]
    with torch.no_grad():
        action = torch.tanh(learner.target_actor(next_obs))
        if algorithm == "td3":
            noise = torch.randn((16, 2), generator=torch.Generator().manual_seed(seed))
            action = (action + (0.2 * noise).clamp(-0.5, 0.5)).clamp(-1, 1)
        x = torch.cat((next_obs, action), 1)
        targets = [value(learner.networks.target_critics, i, x) for i in range(count)]
        goal = reward + discount * torch.stack(targets).min(0).values
    x = torch.cat((obs, unit), 1)
    critic = sum(
        torch.nn.functional.mse_loss(value(learner.networks.critics, i, x), goal) for i in range(count)
    )
    x = torch.cat((obs, torch.tanh(learner.networks.actor(obs))), 1)
    return critic, -value(learner.networks.critics, 0, x).mean()


@pytest.mark.parametrize("algorithm", NAMES)
def test_one_update_equals_the_algorithm_written_out(algorithm, learner_context, clock):
    learner = part(algorithm, "Learner")(config(algorithm, lr=1e-2, tau=0.25), SPEC, learner_context)
    for target in learner.groups.targets.values():
        target.values.mul_(1.5)  # so that it matters which network is asked
    batch, at = batch_of(), clock(1)  # the second update, in which TD3's actor moves
    critic_loss, actor_loss = written(algorithm, learner, batch, at.seed)
    gradients, after = {}, {}
    for name, loss, network in (
        ("critics", critic_loss, learner.networks.critics),
        ("actor", actor_loss, learner.networks.actor),
    ):
        parameters = [p.detach().clone().requires_grad_() for p in network.parameters()]
        gradients[name] = torch.autograd.grad(loss, list(network.parameters()), retain_graph=True)
        optimizer = torch.optim.Adam(parameters, lr=1e-2)
        for parameter, gradient in zip(parameters, gradients[name], strict=True):
            parameter.grad = gradient
        optimizer.step()
        after[name] = parameters
    old_targets = {name: target.values.clone() for name, target in learner.groups.targets.items()}

    learner.learn(batch, at)
    for name, parameters in after.items():
        network = getattr(learner.networks, name)
        for ours, theirs in zip(network.parameters(), parameters, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        expected = 0.25 * learner.groups.all()[name].parameters.values + 0.75 * old_targets[name]
        torch.testing.assert_close(learner.groups.targets[name].values, expected)
    metrics = learner.metrics()
    assert metrics["critic_loss"] == pytest.approx(float(critic_loss.detach()), rel=1e-4)
    assert metrics["actor_loss"] == pytest.approx(float(actor_loss.detach()), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("algorithm", NAMES)
def test_a_restored_learner_goes_on_bit_for_bit(algorithm, learner_context, clock, trees_equal):
    """From update 5, between two of TD3's actor updates."""
    setup, learner_class = config(algorithm), part(algorithm, "Learner")
    original = learner_class(setup, SPEC, learner_context)
    for update in range(5):
        original.learn(batch_of(update), clock(update))
    restored = learner_class(setup, SPEC, dataclasses.replace(learner_context, seed=99))
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    for learner in (original, restored):
        for update in range(5, 12):
            learner.learn(batch_of(update), clock(update))
    assert trees_equal(restored.state_dict(), original.state_dict())
    assert restored.metrics() == original.metrics()


@pytest.mark.parametrize("algorithm", NAMES)
def test_a_nonfinite_update_changes_nothing_but_counts(algorithm, learner_context, clock, trees_equal):
    learner = part(algorithm, "Learner")(config(algorithm), SPEC, learner_context)
    learner.learn(batch_of(), clock(0))
    learner.metrics()
    before = copy.deepcopy(learner.state_dict())
    bad = batch_of(1)
    bad.reward[3] = np.inf
    for update in (1, 2):
        learner.learn(bad, clock(update))
    after = learner.state_dict()
    for name in ("actor", "critics", "targets"):
        assert trees_equal(after[name], before[name])
    metrics = learner.metrics()
    assert (metrics["nonfinite_updates"], metrics["nonfinite_in_row"]) == (2.0, 2.0)
    assert "critic_loss" not in metrics


def acting(algorithm, envs=4, spec=SPEC, bias=None, **policy):
    setup = config(algorithm, policy={"random_steps": 0, **policy})
    result = part(algorithm, "Policy")(setup, spec, PolicyContext("sampler", 0, 1, envs))
    sizes = (3, 16, 16, len(spec.action.low))
    weights = {}
    for i, (d_in, d_out) in enumerate(pairwise(sizes)):
        weights[f"layers.{i}.weight"] = np.zeros((d_out, d_in), np.float32)
        weights[f"layers.{i}.bias"] = np.zeros(d_out, np.float32)
    if bias is not None:
        weights["layers.2.bias"][:] = bias
    result.set_weights(weights)
    return result


def act(seed=0, envs=4, first=None, env_steps=0, progress=0.0):
    return ActContext(
        np.random.default_rng(seed),
        env_steps,
        progress,
        np.zeros(envs, bool) if first is None else np.array(first),
    )


@pytest.mark.parametrize("algorithm", NAMES)
def test_k18_noise_has_no_offset_and_is_scaled(algorithm):
    """Box(low=-2, high=1) at tanh 0: -0.5 (were the offset added twice: -1), deviation 0.1 x 1.5."""
    spec = EnvSpec(ArraySpec((3,)), ContinuousAction((-2.0,), (1.0,)))
    policy, obs = acting(algorithm, 4000, spec), np.zeros((4000, 3), np.float32)
    assert policy.choose_action(obs[:4], act()) == pytest.approx(-0.5)
    explored = policy.sample_action(obs, act(envs=4000)).action
    assert explored.mean() == pytest.approx(-0.5, abs=0.02)
    assert explored.std() == pytest.approx(0.15, abs=0.01)
    for bias, bound in ((50.0, 1.0), (-50.0, -2.0)):
        policy = acting(algorithm, 4000, spec, bias)
        assert policy.choose_action(obs[:4], act()) == pytest.approx(bound)
        explored = policy.sample_action(obs, act(envs=4000)).action
        assert explored.min() >= -2.0
        assert explored.max() <= 1.0
        assert (explored == bound).mean() == pytest.approx(0.5, abs=0.05)  # half of the noise leads out


WIDE = EnvSpec(ArraySpec((3,)), ContinuousAction((0.0, -1e7, 5.0), (4e6, 3e7, 5.0)))


def test_k18_wide_bounds_and_a_single_action_are_scaled_too():
    """Of 0 to 4e6 and -1e7 to 3e7 the middles and the bounds themselves; of 5 to 5 always 5."""
    obs = np.zeros((4000, 3), np.float32)
    for bias, expected in ((0.0, [2e6, 1e7, 5.0]), (50.0, [4e6, 3e7, 5.0]), (-50.0, [0.0, -1e7, 5.0])):
        action = acting("ddpg", 4000, WIDE, bias).choose_action(obs, act(envs=4000))
        np.testing.assert_allclose(action[0], expected)
    policy = part("ddpg", "Policy")(config("ddpg"), WIDE, PolicyContext("sampler", 0, 1, 4000))
    start = policy.sample_action(obs, act(envs=4000)).action
    quarters = [np.quantile(start[:, i], (0.25, 0.75)) for i in range(3)]
    np.testing.assert_allclose(quarters, [[1e6, 3e6], [0.0, 2e7], [5.0, 5.0]], rtol=0.05, atol=1e6)
    assert set(start[:, 2]) == {5.0}


def test_the_learner_takes_actions_of_any_bounds_from_minus_1_to_1():
    given = np.array([[0.0, -1e7, 5.0], [2e6, 1e7, 5.0], [4e6, 3e7, 5.0]], np.float32)
    unit = action_tensor(WIDE.action, torch.device("cpu"))(given)
    assert unit.tolist() == [[-1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]


def test_noise_follows_its_schedule():
    policy = acting(
        "ddpg", 4000, noise={"kind": "gaussian", "std": {"kind": "linear", "start": 0.4, "end": 0}}
    )
    obs = np.zeros((4000, 3), np.float32)
    deviations = [
        policy.sample_action(obs, act(envs=4000, progress=progress)).action[:, 0].std()
        for progress in (0.0, 0.5, 1.0)
    ]
    assert deviations == pytest.approx([0.4, 0.2, 0.0], abs=0.02)


def test_samplers_have_noise_of_their_own():
    one, other = acting("ddpg"), acting("ddpg")
    obs = np.zeros((4, 3), np.float32)
    actions = [policy.sample_action(obs, act(seed)).action for seed, policy in ((1, one), (2, other))]
    assert len(np.unique(np.concatenate(actions))) == 16


def test_ou_noise_begins_with_the_episode_and_goes_on_with_the_rollout():
    """The second step is 0.85 of the first plus noise, and for a new episode the noise alone."""
    noise = {"kind": "ou", "std": 0.05}
    policy, obs = acting("ddpg", 2, noise=noise), np.zeros((2, 3), np.float32)
    half_range, center = np.array([1.0, 2.5]), np.array([0.0, 0.5])
    first = act(seed=0, envs=2, first=[True, True])
    x1 = (policy.sample_action(obs, first).action - center) / half_range
    second = act(seed=1, envs=2, first=[False, True])
    x2 = (policy.sample_action(obs, second).action - center) / half_range
    xi = [np.random.default_rng(seed).standard_normal((16, 2, 2), np.float32)[0] for seed in (0, 1)]
    np.testing.assert_allclose(x1, 0.05 * xi[0], atol=1e-6)
    np.testing.assert_allclose(x2[0], 0.85 * x1[0] + 0.05 * xi[1][0], atol=1e-6)
    np.testing.assert_allclose(x2[1], 0.05 * xi[1][1], atol=1e-6)


def test_ou_noise_is_the_policys_state():
    noise = {"kind": "ou"}
    policy, obs = acting("td3", noise=noise), np.zeros((4, 3), np.float32)
    policy.sample_action(obs, act(0))
    state = copy.deepcopy(policy.state_dict())
    expected = policy.sample_action(obs, act(1)).action
    restored = acting("td3", noise=noise)
    restored.load_state_dict(state)
    np.testing.assert_array_equal(restored.sample_action(obs, act(1)).action, expected)
    fresh = acting("td3", noise=noise).sample_action(obs, act(1)).action
    assert not np.array_equal(fresh, expected)
    assert acting("td3").state_dict() == {}
    restored.load_state_dict({})  # of a run with Gaussian noise
    with pytest.raises(ValueError, match="shape"):
        acting("td3", 3, noise=noise).load_state_dict(state)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ({"kind": "pink"}, "pink"),
        ({"kind": "gaussian", "theta": 0.1}, "theta"),
        ({"kind": "gaussian", "std": -0.1}, "is -0.1 at its least"),
        ({"kind": "ou", "theta": 1.5}, "theta"),
        ({"kind": "ou", "dt": 0}, "dt"),
    ],
)
def test_noise_out_of_range_is_refused(noise, message):
    with pytest.raises(ValidationError, match=message):
        config("ddpg", policy={"noise": noise})
