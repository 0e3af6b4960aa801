"""Targets and losses of return distributions against goldens, hand-computed numbers and autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from omnirl.algorithms.c51 import Config as C51Config
from omnirl.algorithms.c51 import Policy as C51Policy
from omnirl.algorithms.shared.off_policy.transition_tensors import TransitionTensors
from omnirl.algorithms.shared.values.distributional_losses import (
    categorical_loss,
    categorical_values,
    midpoints,
    next_row,
    projected,
    quantile_huber_loss,
    quantile_loss,
)
from omnirl.api import ActContext, ArraySpec, DiscreteAction, EnvSpec, PolicyContext

CPU = torch.device("cpu")
PROJECTIONS = [
    "c51/projection_identity_integer_b_everywhere",
    "c51/projection_terminal_reward_on_atom",
    "c51/projection_terminal_reward_between_atoms",
    "c51/projection_terminal_reward_at_vmax",
    "c51/projection_terminal_reward_at_vmin",
    "c51/projection_clipped_above",
    "c51/projection_clipped_below",
    "c51/projection_generic_gamma.9_r.37",
    "c51/projection_half_atoms_integer_gamma.5",
]
QUANTILE_LOSSES = [
    "qr/huber_loss_N4_kappa1",
    "qr/huber_loss_N4_kappa0_pure_quantile",
    "qr/huber_loss_N4_kappa2",
]


def tensor(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


def close(actual, expected, tolerance=1e-5):
    torch.testing.assert_close(actual, tensor(expected), rtol=tolerance, atol=tolerance)


def transitions(reward, discount, next_mask=None):
    count = len(reward)
    return TransitionTensors(
        obs=torch.zeros(count, 1),
        action=torch.zeros(count, 1, dtype=torch.int64),
        reward=tensor(reward),
        next_obs=torch.zeros(count, 1),
        discount=tensor(discount),
        weight=torch.ones(count),
        next_mask=next_mask,
    )


# ---------------------------------------------------------------- categorical


def project(probabilities, reward, discount, low=-2.0, high=2.0):
    support = torch.linspace(low, high, len(probabilities))
    return projected(tensor([reward]), tensor([discount]), tensor([probabilities]), support, low, high)[0]


@pytest.mark.parametrize("name", PROJECTIONS)
def test_projection(golden, name):
    case = golden(name)
    given = case["inputs"]
    discount = given["gamma"] * (1 - given["terminated"])
    found = project(given["next_probs"], given["reward"], discount, given["v_min"], given["v_max"])
    close(found, case["expected"]["projected"])
    for wrong in case.get("must_not_equal", {}).values():
        assert (found - tensor(wrong)).abs().max() > 1e-3
    support = torch.linspace(given["v_min"], given["v_max"], given["n_atoms"])
    assert float(found @ support) == pytest.approx(case["expected"]["mean"], abs=1e-5)


@pytest.mark.parametrize(
    ("reward", "discount", "expected"),
    [
        (1.0, 1.0, [0.0, 0.1, 0.2, 0.4, 0.3]),
        (0.5, 0.5, [0.0, 0.05, 0.45, 0.45, 0.05]),
        (2.0, 0.0, [0.0, 0.0, 0.0, 0.0, 1.0]),
        (0.25, 0.0, [0.0, 0.0, 0.75, 0.25, 0.0]),
        (100.0, 1.0, [0.0, 0.0, 0.0, 0.0, 1.0]),
    ],
)
def test_k11_projection_keeps_its_mass(reward, discount, expected):
    close(project([0.1, 0.2, 0.4, 0.2, 0.1], reward, discount), expected)


def test_k11_every_row_sums_to_one():
    rng = torch.Generator().manual_seed(0)
    support = torch.linspace(-10, 10, 51)
    probabilities = torch.randn(500, 51, generator=rng).softmax(1)
    reward = torch.randint(-30, 30, (500,), generator=rng) * 0.4  # on atoms, between them, outside
    discount = torch.randint(0, 3, (500,), generator=rng) * 0.5
    found = projected(reward, discount, probabilities, support, -10.0, 10.0)
    torch.testing.assert_close(found.sum(1), torch.ones(500), rtol=1e-6, atol=1e-6)
    assert (found >= 0).all()


def test_cross_entropy_and_its_slope(golden):
    case = golden("c51/cross_entropy_loss")
    logits = tensor([case["inputs"]["logits"]])
    loss = categorical_loss(-2.0, 2.0, 5, online_chooses=False)
    # Of the two actions of the target network the second has the distribution, and at discount 1 it stays.
    target = torch.stack((torch.full((5,), -30.0), tensor(case["inputs"]["target"]).log()))
    target[0, 0] = 30.0
    result = loss(transitions([0.0], [1.0]), logits, None, lambda obs: target.reshape(1, 10))
    close(result.loss, [case["expected"]["loss"]])
    close(result.slope[0], case["expected"]["grad_logits"])
    close(result.value, [case["expected"]["q_value"]])
    mean = float(tensor(case["inputs"]["target"]) @ torch.linspace(-2, 2, 5))
    close(result.error, [mean - case["expected"]["q_value"]])


def test_actions_are_greedy_on_the_expectation(golden):
    """In the learner and in the policy."""
    case = golden("c51/greedy_action")
    given, expected = case["inputs"], case["expected"]
    logits = tensor(given["logits"])
    values = categorical_values(logits, torch.linspace(given["v_min"], given["v_max"], 5))
    close(values, expected["q"])
    learner = {"num_atoms": 5, "v_min": given["v_min"], "v_max": given["v_max"]}
    config = C51Config.model_validate({"learner": learner, "network": {"hidden_sizes": [1]}})
    spec = EnvSpec(ArraySpec((1,)), DiscreteAction(3))
    policy = C51Policy(config, spec, PolicyContext("evaluator", 0, 1, 1))
    policy.set_weights(
        {
            "layers.0.weight": np.ones((1, 1), np.float32),
            "layers.0.bias": np.zeros(1, np.float32),
            "layers.1.weight": np.zeros((15, 1), np.float32),
            "layers.1.bias": logits.numpy().reshape(15),
        }
    )
    act = ActContext(np.random.default_rng(0), 0, 1.0, np.zeros(1, bool))
    assert policy.choose_action(np.ones((1, 1), np.float32), act).tolist() == [expected["action"]]
    np.testing.assert_allclose(policy._expectations(logits.numpy()), expected["q"], rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- quantiles


@pytest.mark.parametrize("name", QUANTILE_LOSSES)
def test_quantile_huber_loss_and_its_slope(golden, name):
    case = golden(name)
    given, expected = case["inputs"], case["expected"]
    loss, slope = quantile_huber_loss(tensor([given["theta"]]), tensor([given["targets"]]), given["kappa"])
    close(midpoints(4, CPU), given["tau"])
    close(loss, [expected["loss_sum_i_mean_j"]])
    close(slope[0], expected["grad_theta_of_sum_i_mean_j"])
    for wrong in case.get("must_not_equal", {}).values():
        assert abs(float(loss) - wrong) > 1e-2


def test_k13_sign_and_axis():
    loss, _ = quantile_huber_loss(tensor([[0.0, 2.0]]), tensor([[1.0, 3.0]]), 1.0)
    close(loss, [0.625])


def test_k13_a_batch_of_one_quantile_and_a_batch_as_large_as_the_quantiles():
    """No axis is taken for another: each sample's loss is what it is alone."""
    one, _ = quantile_huber_loss(tensor([[0.5]]), tensor([[2.0]]), 1.0)
    close(one, [0.5])  # tau 0.5, u = 1.5: 0.5 * (1.5 - 0.5)
    rng = torch.Generator().manual_seed(1)
    theta, goals = torch.randn(4, 4, generator=rng), torch.randn(4, 4, generator=rng)
    together, _ = quantile_huber_loss(theta, goals, 1.0)
    alone = torch.cat([quantile_huber_loss(theta[i : i + 1], goals[i : i + 1], 1.0)[0] for i in range(4)])
    torch.testing.assert_close(together, alone)


@pytest.mark.parametrize("kappa", [0.0, 0.1, 1.0, 3.0])
def test_slopes_are_the_losses_derivatives(kappa):
    rng = torch.Generator().manual_seed(2)
    theta = torch.randn(6, 5, generator=rng, requires_grad=True)
    goals = torch.randn(6, 7, generator=rng)
    error = goals[:, None, :] - theta[:, :, None]
    size = error.abs()
    if kappa:
        size = torch.where(size <= kappa, 0.5 * error**2, kappa * (size - 0.5 * kappa)) / kappa
    tau = ((torch.arange(5) + 0.5) / 5)[None, :, None]
    expected = ((tau - (error < 0).float()).abs() * size).mean(2).sum(1)
    (gradient,) = torch.autograd.grad(expected.sum(), theta)
    loss, slope = quantile_huber_loss(theta.detach(), goals, kappa)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(slope, gradient)


def test_quantile_target(golden):
    """The taken action's targets are reward + discount * quantiles of the next action that is best by its mean."""
    case = golden("qr/target")
    given, expected = case["inputs"], case["expected"]
    following = tensor(given["next_quantiles"])
    discount = (given["gamma"] * (1 - np.array(given["terminated"]))).tolist()
    taken = torch.zeros(2, 4)
    batch = transitions(given["rewards"], discount)
    result = quantile_loss(4, 1.0, online_chooses=False)(
        batch, taken, None, lambda obs: following.reshape(2, 8)
    )
    close(following.mean(2), expected["q"])
    loss, slope = quantile_huber_loss(taken, tensor(expected["targets"]), 1.0)
    torch.testing.assert_close(result.loss, loss)
    torch.testing.assert_close(result.slope, slope)
    close(result.error, np.mean(expected["targets"], axis=1).tolist())
    row = next_row(
        batch, target := (lambda obs: following.reshape(2, 8)), target, 4, lambda rows: rows.mean(-1)
    )
    close(row, [given["next_quantiles"][i][action] for i, action in enumerate(expected["actions"])])


# ---------------------------------------------------------------- which next action


def rows_of(*means):
    """Outputs [1, n * 2] whose rows of two have these means."""
    return tensor([[value for mean in means for value in (mean - 1.0, mean + 1.0)]])


@pytest.mark.parametrize(("chooser", "best"), [("target", 2), ("online", 0)])
def test_either_network_may_choose_and_the_target_values(chooser, best):
    networks = {"online": lambda obs: rows_of(5.0, 1.0, 2.0), "target": lambda obs: rows_of(10.0, 20.0, 30.0)}
    batch = transitions([0.0], [1.0])
    row = next_row(batch, networks[chooser], networks["target"], 2, lambda rows: rows.mean(-1))
    mean = [10.0, 20.0, 30.0][best]
    assert row.tolist() == [[mean - 1.0, mean + 1.0]]


def test_illegal_next_actions_are_not_chosen():
    batch = transitions([0.0], [1.0], next_mask=torch.tensor([[True, True, False]]))
    target = lambda obs: rows_of(1.0, 7.0, 30.0)  # noqa: E731
    row = next_row(batch, target, target, 2, lambda rows: rows.mean(-1))
    assert row.tolist() == [[6.0, 8.0]]


def test_targets_have_no_gradient():
    weight = torch.ones(1, 4, requires_grad=True)
    network = lambda obs: obs @ weight  # noqa: E731
    batch = transitions([0.0, 1.0], [1.0, 0.0])
    assert not next_row(batch, network, network, 2, lambda rows: rows.mean(-1)).requires_grad
    for loss in (
        quantile_loss(2, 1.0, online_chooses=True),
        categorical_loss(-1.0, 1.0, 2, online_chooses=True),
    ):
        result = loss(batch, torch.zeros(2, 2), network, network)
        assert not any(part.requires_grad for part in result)
