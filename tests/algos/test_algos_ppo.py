"""PPO's policy and learner: what an update does, leaves alone, and can go on from."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch

from omnirl.algorithms.ppo import Config, Learner, Memory, Policy
from omnirl.algorithms.ppo.config import data_flow
from omnirl.algorithms.shared.on_policy import actor_critic
from omnirl.api import (
    ArraySpec,
    ContinuousAction,
    DiscreteAction,
    EnvSpec,
    FlowContext,
    MemoryContext,
    PolicyContext,
)

BOX = EnvSpec(ArraySpec((3,)), ContinuousAction((-2.0, -float("inf")), (4.0, float("inf"))))
NORMALIZED = {"normalize_observations": True, "normalize_returns": True}


def config(**learner):
    return Config.model_validate({"learner": {"epochs": 2, "minibatch_size": 8, **learner}})


def policy_for(spec, learner_config=None, envs=2):
    return Policy(learner_config or config(), spec, PolicyContext("sampler", 0, 1, envs))


@pytest.fixture
def make_ppo(vector_spec, learner_context):
    """``make_ppo(**keys of the learner section)`` -> a Learner for three features and two actions."""
    return lambda **learner: Learner(config(**learner), vector_spec, learner_context)


def test_values_bootstrap_from_the_final_observation(make_ppo, make_rollout):
    """With lambda 0 the return is r + gamma V(s'): V of the final observation at a truncation, nothing at a
    termination, V of the next row elsewhere."""
    ppo = make_ppo(gae_lambda=0.0, gamma=0.9)
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


def test_values_of_many_observations_are_taken_in_parts(make_ppo, make_rollout, monkeypatch):
    ppo, rollout = make_ppo(), make_rollout(8, 2)
    whole = ppo._samples((rollout,))
    monkeypatch.setattr(actor_critic, "_VALUES_PER_PASS", 7 * 3)  # 7 of 18 + 2 observations of 3 numbers
    sizes, values = [], ppo.network.values
    monkeypatch.setattr(ppo.network, "values", lambda obs: sizes.append(len(obs)) or values(obs))
    parts = ppo._samples((rollout,))
    assert sizes == [7, 7, 6]
    torch.testing.assert_close(parts.returns, whole.returns)
    torch.testing.assert_close(parts.advantages, whole.advantages)


def test_rollouts_of_several_samplers_are_the_same_as_one_wide_one(make_ppo, make_rollout):
    ppo = make_ppo()
    first, second = make_rollout(8, 2, seed=0), make_rollout(8, 2, seed=1)
    wide = dataclasses.replace(
        first,
        **{
            name: np.concatenate((getattr(first, name), getattr(second, name)), axis=1)
            for name in ("obs", "action", "reward", "terminated", "truncated")
        },
        extras={"log_prob": np.full((8, 4), -1.0, np.float32)},
        final_obs=np.concatenate((first.final_obs, second.final_obs)),
        final_at=np.concatenate((first.final_at, second.final_at + np.array([0, 2]))),
    )
    for joined, expected in zip(
        ppo._samples((first, second)).tensors(), ppo._samples((wide,)).tensors(), strict=True
    ):
        torch.testing.assert_close(joined, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("steps", "size"), [(13, 64), (13, 12), (5, 4), (1, 1), (3, 100)])
def test_k20_every_sample_is_used_once_per_epoch(steps, size, make_ppo, make_rollout, clock):
    """Also 65 samples in minibatches of 64: the last one of a single sample does not spoil the weights."""
    envs = 5
    ppo = make_ppo(minibatch_size=size, epochs=3)
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


def test_k20_rollout_of_one_step_episodes_trains(make_ppo, make_rollout, clock):
    ppo = make_ppo(**NORMALIZED)
    for update in range(3):
        rollout = make_rollout(8, 2, seed=update, number=update, every_step_ends=True)
        ppo.observe(rollout)
        ppo.learn((rollout,), clock(update))
    assert all(np.isfinite(array).all() for array in ppo.get_weights().values())


@pytest.mark.parametrize("field", ["reward", "log_prob"])
def test_a_nonfinite_update_changes_nothing_but_counts(field, make_ppo, make_rollout, clock, trees_equal):
    ppo = make_ppo()
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


def test_an_absurd_learning_rate_leaves_finite_weights(make_ppo, make_rollout, clock):
    ppo = make_ppo(lr=1e30)
    for update in range(4):
        ppo.learn((make_rollout(8, 2, seed=update),), clock(update))
    assert all(np.isfinite(array).all() for array in ppo.get_weights().values())


def test_an_empty_batch_changes_nothing(make_ppo, clock, trees_equal):
    ppo = make_ppo()
    before = copy.deepcopy(ppo.state_dict())
    assert ppo.learn((), clock(0)) is None
    assert trees_equal(ppo.state_dict(), before)


@pytest.mark.parametrize("spec", [EnvSpec(ArraySpec((3,)), DiscreteAction(2)), BOX])
def test_a_restored_learner_goes_on_bit_for_bit(spec, learner_context, clock, acted_rollout, trees_equal):
    setup = config(lr={"kind": "linear", "start": 1e-2, "end": 0}, ent_coef=0.01, **NORMALIZED)
    policy = policy_for(spec, setup)
    original = Learner(setup, spec, learner_context)
    policy.set_weights(original.get_weights())
    rollouts = [acted_rollout(policy, seed=n, number=n) for n in range(6)]

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
def test_target_kl_stops_after_the_epoch_that_went_too_far(target_kl, epochs, make_ppo, make_rollout, clock):
    ppo = make_ppo(target_kl=target_kl, epochs=4, minibatch_size=16, lr=1e-2)
    ppo.learn((make_rollout(8, 2),), clock(0))
    assert int(ppo.optimizer.state_dict()["steps"]) == epochs


def test_a_minibatch_costs_the_loss_written_out(make_ppo, make_rollout, clock):
    """One epoch of one minibatch, with clip 0.3 halved by its schedule: figures from numpy alone."""
    schedule = {"kind": "linear", "start": 0.3, "end": 0}
    ppo = make_ppo(clip=schedule, epochs=1, minibatch_size=16, normalize_advantages=False, lr=0.0)
    rollout = make_rollout(8, 2)
    samples = ppo._samples((rollout,))
    with torch.no_grad():
        logits, values = (tensor.double().numpy() for tensor in ppo.network(samples.observations))
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    ratio = probabilities[np.arange(16), rollout.action.reshape(-1)] / np.exp(-1.0)
    advantages, returns = samples.advantages.numpy(), samples.returns.numpy()
    surrogate = np.minimum(ratio * advantages, np.clip(ratio, 0.85, 1.15) * advantages)

    ppo.learn((rollout,), dataclasses.replace(clock(0), progress=0.5))
    metrics = ppo.metrics()
    assert metrics["policy_loss"] == pytest.approx(-surrogate.mean(), rel=1e-4)
    assert metrics["value_loss"] == pytest.approx(0.5 * ((values - returns) ** 2).mean(), rel=1e-4)
    assert metrics["entropy"] == pytest.approx(
        -(probabilities * np.log(probabilities)).sum(1).mean(), rel=1e-4
    )
    assert metrics["approx_kl"] == pytest.approx((ratio - 1 - np.log(ratio)).mean(), rel=1e-4)
    assert metrics["clip_fraction"] == pytest.approx((np.abs(ratio - 1) > 0.15).mean())


def test_minibatches_are_steps_of_adam_on_the_loss_written_out(make_ppo, make_rollout, clock):
    """One epoch of three minibatches (8, 8 and 4 samples), each with advantages of its own deviation, through autograd
    and torch.optim."""
    keys = {"lr": 1e-2, "clip": 0.15, "ent_coef": 0.1, "vf_coef": 0.7, "adam_epsilon": 1e-3}
    ppo, rollout, at = make_ppo(epochs=1, minibatch_size=8, **keys), make_rollout(10, 2), clock(3)
    samples, network = ppo._samples((rollout,)), copy.deepcopy(ppo.network)
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(parameters, lr=1e-2, eps=1e-3)
    for part in torch.tensor(np.random.default_rng(at.seed).permutation(20)).split(8):
        logits, values = network(samples.observations[part])
        chosen = torch.distributions.Categorical(logits=logits)
        ratio = (chosen.log_prob(samples.action[part, 0]) - samples.log_prob[part]).exp()
        advantages = samples.advantages[part]
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        loss = -torch.minimum(ratio * advantages, ratio.clamp(0.85, 1.15) * advantages).mean()
        loss = loss + 0.7 * 0.5 * (values - samples.returns[part]).square().mean()
        loss = loss - 0.1 * chosen.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 0.5)
        optimizer.step()

    ppo.learn((rollout,), at)
    for ours, theirs in zip(ppo.network.parameters(), parameters, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_the_first_update_learns_from_scaled_rewards(make_ppo, make_rollout, clock):
    """Episodes of one step: a return is the reward alone, by the deviation of those of this very rollout."""
    ppo = make_ppo(epochs=1, minibatch_size=16, lr=0.0, normalize_returns=True)
    rollout = make_rollout(8, 2, every_step_ends=True)
    rollout = dataclasses.replace(rollout, reward=1000.0 * rollout.reward)
    with torch.no_grad():
        values = ppo.network.values(torch.tensor(rollout.obs[:-1].reshape(-1, 3))).numpy()
    returns = rollout.reward.reshape(-1) / rollout.reward.std()
    ppo.observe(rollout)
    ppo.learn((rollout,), clock(0))
    assert ppo.metrics()["value_loss"] == pytest.approx(0.5 * ((values - returns) ** 2).mean(), rel=1e-4)


def test_metrics_are_means_since_the_last_call(make_ppo, make_rollout, clock, specs):
    ppo = make_ppo()
    singles = []
    for update in range(2):
        ppo.learn((make_rollout(8, 2, seed=update),), clock(update))
        singles.append(ppo.metrics())
    assert set(singles[0]) == set(specs["ppo"].metric_names)
    again = make_ppo()
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


def test_versions_of_consumed_batches_are_those_of_the_learner(vector_spec, make_rollout, make_ppo, clock):
    """One sampler in lock-step, five updates: versions 0, 1, 2, 3, 4."""
    ppo = make_ppo()
    memory = Memory(config(), vector_spec, MemoryContext(0, 1, ppo.reduce))
    versions = []
    for update in range(5):
        memory.add(dataclasses.replace(make_rollout(8, 2), version=update), due=update)
        batch = memory.next_batch(clock(update))
        versions += [rollout.version for rollout in batch]
        ppo.learn(batch, clock(update))
    assert versions == [0, 1, 2, 3, 4]
