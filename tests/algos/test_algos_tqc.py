"""TQC: the truncated pool, the loss, and the learner."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch

from omnirl.algorithms.shared.bounded_actions.critic_losses import average, average_slope
from omnirl.algorithms.shared.bounded_actions.soft_losses import actor_loss, soft_target
from omnirl.algorithms.tqc import Config, Learner, Policy
from omnirl.algorithms.tqc.quantiles import quantile_loss, truncated
from omnirl.api import ActContext, ArraySpec, ContinuousAction, EnvSpec, PolicyContext, Transitions

SPEC = EnvSpec(ArraySpec((3,)), ContinuousAction((-1.0, -2.0), (1.0, 3.0)))


def members_first(rows):
    """From the goldens' [batch, net, quantile] to [M, N, Q]."""
    return torch.tensor(rows, dtype=torch.float32).transpose(0, 1).contiguous()


@pytest.mark.parametrize("name", ["tqc/truncated_target_drop1_pool", "tqc/truncated_target_drop0_terminal"])
def test_truncated_target(name, golden):
    case = golden(name)
    given, tolerance = case["inputs"], case["tol_float32"]
    atoms = truncated(given["top_quantiles_to_drop_per_net"])(members_first(given["next_quantiles"]))
    discount = given["gamma"] * (1 - torch.tensor(given["terminated"], dtype=torch.float32))
    penalty = given["alpha"] * torch.tensor(given["next_log_prob"])
    target = soft_target(torch.tensor(given["rewards"]), discount, atoms, penalty)
    assert target.shape[1] == case["expected"]["n_kept"]
    np.testing.assert_allclose(target, case["expected"]["target"], rtol=tolerance, atol=tolerance)


def test_critic_loss_and_its_gradient(golden):
    case = golden("tqc/critic_loss")
    quantiles, target = (
        members_first(case["inputs"]["current_quantiles"]),
        torch.tensor(case["inputs"]["target"]),
    )
    loss, slope = quantile_loss(1.0)(quantiles, target)
    tolerance = case["tol_float32"]
    assert float(loss.mean()) == pytest.approx(case["expected"]["loss"], rel=tolerance)
    found = slope.transpose(0, 1) / len(target)
    np.testing.assert_allclose(found, case["expected"]["grad"], rtol=tolerance, atol=tolerance)


def test_the_actor_is_judged_by_all_atoms(golden):
    case = golden("tqc/actor_loss")
    quantiles = members_first(case["inputs"]["quantiles_pi"])
    loss = actor_loss(
        torch.tensor(case["inputs"]["alpha"]), torch.tensor(case["inputs"]["log_prob"]), average(quantiles)
    )
    assert float(loss.mean()) == pytest.approx(case["expected"]["loss"], abs=case["tol_float32"])
    assert average_slope(quantiles).unique().tolist() == [pytest.approx(1 / 6)]


@pytest.mark.parametrize(("members", "kept"), [(2, 46), (5, 115)])
def test_k14_so_many_atoms_are_kept(members, kept):
    assert truncated(2)(torch.randn(members, 4, 25)).shape == (4, kept)


@pytest.mark.parametrize(
    ("nets", "kept"),
    [([[1, 2, 9], [3, 4, 10]], [1, 2, 3, 4]), ([[1, 2, 3], [8, 9, 10]], [1, 2, 3, 8])],
)
def test_k14_the_greatest_of_the_pool_are_dropped(nets, kept):
    """Where the nets disagree, dropping one of each would keep other atoms."""
    assert truncated(1)(members_first([nets]))[0].tolist() == kept


def test_dropping_all_is_refused():
    with pytest.raises(ValueError, match="dropped_quantiles: 25 leaves nothing of the 25"):
        Config.model_validate({"learner": {"dropped_quantiles": 25}})


def config(**learner):
    network = {"hidden_sizes": [16, 16], "num_critics": 3, "num_quantiles": 13, "critic_hidden_sizes": [24]}
    return Config.model_validate({"learner": learner, "network": network})


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


def test_losses_of_an_update_equal_those_written_out(learner_context, clock):
    """With torch's own distributions and loops over critics, quantiles and atoms."""
    tqc = Learner(config(temperature=0.3, dropped_quantiles=4), SPEC, learner_context)
    tqc.groups.targets["critics"].values.mul_(1.5)
    networks, batch, at = tqc.networks, batch_of(), clock(0)
    noise = torch.randn((2, 16, 2), generator=torch.Generator().manual_seed(at.seed))
    obs, next_obs = torch.tensor(batch.obs), torch.tensor(batch.next_obs)

    def sample(outputs, noise):
        mean, log_std = outputs.chunk(2, 1)
        action = torch.tanh(mean + log_std.exp() * noise)
        normal = torch.distributions.Normal(mean, log_std.exp())
        squashed = torch.distributions.TransformedDistribution(normal, torch.distributions.TanhTransform())
        return action, squashed.log_prob(action.clamp(-1 + 1e-6, 1 - 1e-6)).sum(1)

    with torch.no_grad():
        action, log_prob = sample(networks.actor(next_obs), noise[0])
        pool = networks.target_critics(torch.cat((next_obs, action), 1)).permute(1, 0, 2).reshape(16, 39)
        kept = pool.sort(1).values[:, :27]
        goal = torch.tensor(batch.reward)[:, None] + torch.tensor(batch.discount)[:, None] * (
            kept - 0.3 * log_prob[:, None]
        )
        unit = (torch.tensor(batch.action) - torch.tensor([0.0, 0.5])) / torch.tensor([1.0, 2.5])
        quantiles = networks.critics(torch.cat((obs, unit), 1))
        total = 0.0
        for i in range(13):
            u = goal[None] - quantiles[:, :, i : i + 1]
            huber = torch.where(u.abs() <= 1, 0.5 * u**2, u.abs() - 0.5)
            total += float(((((i + 0.5) / 13) - (u < 0).float()).abs() * huber).mean()) / 13
        action, log_prob = sample(networks.actor(obs), noise[1])
        gain = networks.critics(torch.cat((obs, action), 1)).mean((0, 2))
    tqc.learn(batch, at)
    metrics = tqc.metrics()
    assert metrics["critic_loss"] == pytest.approx(total, rel=1e-4)
    assert metrics["actor_loss"] == pytest.approx(float((0.3 * log_prob - gain).mean()), rel=1e-3, abs=1e-5)
    assert metrics["entropy"] == pytest.approx(float(-log_prob.mean()), rel=1e-4)


def test_k14_other_sizes_are_restored_and_act_the_same(learner_context, clock, trees_equal):
    original = Learner(config(), SPEC, learner_context)
    for update in range(5):
        original.learn(batch_of(update), clock(update))
    restored = Learner(config(), SPEC, dataclasses.replace(learner_context, seed=99))
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    policies = []
    for learner in (original, restored):
        for update in range(5, 9):
            learner.learn(batch_of(update), clock(update))
        policy = Policy(config(), SPEC, PolicyContext("evaluator", 0, 1, 4))
        policy.set_weights(learner.get_weights())
        policies.append(policy)
    assert trees_equal(restored.state_dict(), original.state_dict())
    obs = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    act = ActContext(np.random.default_rng(0), 0, 0.0, np.zeros(4, bool))
    np.testing.assert_array_equal(*(policy.choose_action(obs, act) for policy in policies))


def test_a_nonfinite_update_changes_nothing_but_counts(learner_context, clock, trees_equal):
    tqc = Learner(config(), SPEC, learner_context)
    tqc.learn(batch_of(), clock(0))
    before = copy.deepcopy(tqc.state_dict())
    bad = batch_of(1)
    bad.reward[3] = np.nan
    tqc.learn(bad, clock(1))
    after = tqc.state_dict()
    for part in ("actor", "critics", "temperature", "targets"):
        assert trees_equal(after[part], before[part])
    assert tqc.metrics()["nonfinite_in_row"] == 1.0
