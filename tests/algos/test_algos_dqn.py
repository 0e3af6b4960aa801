"""DQN's policy, memory and learner."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch

from omnirl.algorithms.dqn import Config, Learner, Policy
from omnirl.api import (
    ActContext,
    ArraySpec,
    DiscreteAction,
    EnvSpec,
    PolicyContext,
    Transitions,
)

IMAGES = EnvSpec(ArraySpec((1, 36, 36), "uint8", "image"), DiscreteAction(2))


def config(memory=None, policy=None, **learner):
    return Config.model_validate({"learner": learner, "memory": memory or {}, "policy": policy or {}})


def batch_of(seed=0, count=16, obs=None):
    rng = np.random.default_rng(seed)
    return Transitions(
        obs=rng.standard_normal((count, 3)).astype(np.float32),
        action=rng.integers(0, 2, count),
        reward=rng.standard_normal(count).astype(np.float32),
        next_obs=rng.standard_normal((count, 3)).astype(np.float32),
        discount=np.where(rng.random(count) < 0.2, 0.0, 0.99).astype(np.float32),
        index=np.arange(count),
        weight=np.ones(count, np.float32),
    )


@pytest.mark.parametrize(("loss", "power"), [("huber", None), ("mse", 2)])
def test_one_update_equals_the_algorithm_written_out(loss, power, vector_spec, learner_context, clock):
    """Loss and gradient of mean L(r + discount max_a Q_target(s', a) - Q(s, a)), computed by torch's own
    modules."""
    dqn = Learner(config(loss=loss, max_grad_norm=None, lr=1e-3), vector_spec, learner_context)
    dqn.target_parameters.values.mul_(1.5)  # so that it matters which network is asked
    online, target = (copy.deepcopy(net) for net in (dqn.network, dqn.target_network))
    for parameter in online.parameters():
        parameter.grad = None
    batch = batch_of()
    with torch.no_grad():
        best = target(torch.tensor(batch.next_obs)).max(dim=1).values
    goal = torch.tensor(batch.reward) + torch.tensor(batch.discount) * best
    taken = online(torch.tensor(batch.obs))[torch.arange(16), torch.tensor(batch.action)]
    function = torch.nn.functional.mse_loss if power else torch.nn.functional.smooth_l1_loss
    expected = function(taken, goal)
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
    expected.backward()
    optimizer.step()

    dqn.learn(batch, clock(0))
    for ours, theirs in zip(dqn.network.parameters(), online.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    metrics = dqn.metrics()
    assert metrics["loss"] == pytest.approx(float(expected.detach()), rel=1e-5)
    assert metrics["q_value"] == pytest.approx(float(taken.detach().mean()), rel=1e-4)
    assert metrics["td_error"] == pytest.approx(float((goal - taken).detach().abs().mean()), rel=1e-5)


def test_weights_of_a_batch_multiply_the_loss(vector_spec, learner_context, clock):
    dqn = Learner(config(), vector_spec, learner_context)
    batch = batch_of()
    half = dataclasses.replace(batch, weight=np.full(16, 0.5, np.float32))
    losses = []
    for one in (batch, half):
        dqn.load_state_dict(Learner(config(), vector_spec, learner_context).state_dict())
        dqn.learn(one, clock(0))
        losses.append(dqn.metrics()["loss"])
    assert losses[1] == pytest.approx(losses[0] / 2, rel=1e-5)


def test_k15_target_network_is_copied_after_its_interval_of_updates(vector_spec, learner_context, clock):
    """Interval 10, 25 updates: copies after updates 10 and 20, and no others."""
    dqn = Learner(config(target_update_interval=10), vector_spec, learner_context)
    copies, before = [], dqn.target_parameters.values.clone()
    for update in range(25):
        dqn.learn(batch_of(update), clock(update))
        if not torch.equal(dqn.target_parameters.values, before):
            copies.append(update + 1)
            assert torch.equal(dqn.target_parameters.values, dqn.parameters.values)
            before = dqn.target_parameters.values.clone()
    assert copies == [10, 20]


def test_k15_target_phase_goes_on_after_a_resume(vector_spec, learner_context, clock):
    """From update 13, the next copy is after update 20."""
    original = Learner(config(target_update_interval=10), vector_spec, learner_context)
    for update in range(13):
        original.learn(batch_of(update), clock(update))
    resumed = Learner(config(target_update_interval=10), vector_spec, learner_context)
    resumed.load_state_dict(original.state_dict())
    before = resumed.target_parameters.values.clone()
    for update in range(13, 20):
        assert torch.equal(resumed.target_parameters.values, before)
        resumed.learn(batch_of(update), clock(update))
    assert torch.equal(resumed.target_parameters.values, resumed.parameters.values)


def test_tau_takes_a_share(vector_spec, learner_context, clock):
    dqn = Learner(config(target_update_interval=1, tau=0.25, lr=1e-2), vector_spec, learner_context)
    old = dqn.target_parameters.values.clone()
    dqn.learn(batch_of(), clock(0))
    expected = 0.25 * dqn.parameters.values + 0.75 * old
    torch.testing.assert_close(dqn.target_parameters.values, expected)


def test_a_restored_learner_goes_on_bit_for_bit(vector_spec, learner_context, clock, trees_equal):
    setup = config(target_update_interval=3, lr={"kind": "linear", "start": 1e-2, "end": 0})
    original = Learner(setup, vector_spec, learner_context)
    for update in range(5):
        original.learn(batch_of(update), clock(update))
    restored = Learner(setup, vector_spec, dataclasses.replace(learner_context, seed=99))
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    for learner in (original, restored):
        for update in range(5, 12):
            learner.learn(batch_of(update), clock(update))
    assert trees_equal(restored.state_dict(), original.state_dict())
    assert restored.metrics() == original.metrics()


def test_a_nonfinite_update_changes_nothing_but_counts(vector_spec, learner_context, clock, trees_equal):
    dqn = Learner(config(target_update_interval=1, tau=0.5), vector_spec, learner_context)
    dqn.learn(batch_of(), clock(0))
    dqn.metrics()
    before = copy.deepcopy(dqn.state_dict())
    bad = batch_of(1)
    bad.reward[3] = np.inf
    for update in (1, 2, 3):
        dqn.learn(bad, clock(update))
    after = dqn.state_dict()
    for part in ("parameters", "target_parameters", "optimizer"):
        assert trees_equal(after[part], before[part])
    metrics = dqn.metrics()
    assert (metrics["nonfinite_updates"], metrics["nonfinite_in_row"], dqn.nonfinite_in_row) == (3.0, 3.0, 3)
    assert "loss" not in metrics
    dqn.learn(batch_of(2), clock(4))
    assert dqn.metrics()["nonfinite_in_row"] == 0.0


def test_a_finite_loss_with_an_infinite_gradient_changes_nothing(
    vector_spec, learner_context, clock, trees_equal
):
    """Values of 1e25 are numbers, and so is their Huber loss; the square of a gradient as great is none."""
    dqn = Learner(config(target_update_interval=1), vector_spec, learner_context)
    dqn.learn(batch_of(), clock(0))
    before = copy.deepcopy(dqn.state_dict())
    huge = batch_of(1)
    huge.obs[3] = 1e25
    dqn.learn(huge, clock(1))
    after = dqn.state_dict()
    for part in ("parameters", "target_parameters", "optimizer"):
        assert trees_equal(after[part], before[part])
    assert dqn.nonfinite_in_row == 1


def test_metrics_have_the_specs_names(vector_spec, learner_context, clock, specs):
    schedule = {"kind": "linear", "start": 1, "end": 0.05, "steps": 10_000}
    dqn = Learner(config(policy={"epsilon": schedule}), vector_spec, learner_context)
    dqn.learn(batch_of(), dataclasses.replace(clock(0), env_steps=4000))
    metrics = dqn.metrics()
    assert set(metrics) == set(specs["dqn"].metric_names)
    assert metrics["epsilon"] == pytest.approx(0.62)


def make_policy(spec, learner_context, **policy):
    setup = config(policy=policy)
    result = Policy(setup, spec, PolicyContext("sampler", 0, 1, 4))
    result.set_weights(Learner(setup, spec, learner_context).get_weights())
    return result


def act(env_steps=0, progress=0.0):
    return ActContext(np.random.default_rng(0), env_steps, progress, np.zeros(4, bool))


def test_policy_takes_the_greatest_value(vector_spec, learner_context):
    policy = make_policy(vector_spec, learner_context, epsilon=0.0)
    dqn = Learner(config(), vector_spec, learner_context)
    obs = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
    with torch.no_grad():
        expected = dqn.network(torch.tensor(obs)).argmax(1).numpy()
    np.testing.assert_array_equal(policy.choose_action(obs, act()), expected)
    sample = policy.sample_action(obs, act())
    np.testing.assert_array_equal(sample.action, expected)
    assert sample.action.dtype == np.int64
    assert sample.extras == {}


def test_policy_is_strict_about_names(vector_spec, learner_context):
    policy = make_policy(vector_spec, learner_context)
    weights = dict(Learner(config(), vector_spec, learner_context).get_weights())
    with pytest.raises(KeyError, match=r"unexpected \['layers.7.bias'\]"):
        policy.set_weights({**weights, "layers.7.bias": np.zeros(1)})
    weights.pop("layers.0.bias")
    with pytest.raises(KeyError, match=r"missing \['layers.0.bias'\]"):
        policy.set_weights(weights)


def test_images_train_and_act(learner_context, clock):
    setup = Config.model_validate({"network": {"kind": "cnn", "hidden_sizes": [16]}})
    dqn = Learner(setup, IMAGES, learner_context)
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 1, 36, 36), np.uint8)
    dqn.learn(dataclasses.replace(batch_of(), obs=images[0], next_obs=images[1]), clock(0))
    assert np.isfinite(dqn.metrics()["loss"])
    policy = Policy(setup, IMAGES, PolicyContext("sampler", 0, 1, 4))
    policy.set_weights(dqn.get_weights())
    with torch.no_grad():
        expected = dqn.network(torch.tensor(images[0, :4])).argmax(1).numpy()
    np.testing.assert_array_equal(policy.choose_action(images[0, :4], act()), expected)
