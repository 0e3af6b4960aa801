"""SAC's formulas against goldens, closed forms and hand-computed cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from omnirl.algorithms.sac.discrete import REDUCTIONS, soft_value
from omnirl.algorithms.shared.bounded_actions.critic_losses import (
    average,
    average_slope,
    least,
    least_slope,
    summed_squares,
)
from omnirl.algorithms.shared.bounded_actions.soft_losses import actor_loss, soft_target
from omnirl.algorithms.shared.bounded_actions.squashed_gaussian import squashed_log_prob, squashed_sample
from omnirl.algorithms.shared.bounded_actions.target_entropy import target_entropy
from omnirl.algorithms.shared.bounded_actions.temperature import Temperature, temperature_loss
from omnirl.algorithms.shared.off_policy.targets import bootstrapped
from omnirl.api import ContinuousAction, DiscreteAction


def tensors(case, *names):
    return [torch.tensor(case["inputs"][name], dtype=torch.float32) for name in names]


def close(actual, expected, case, name="tol_float32"):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=case[name], atol=case[name])


@pytest.mark.parametrize(
    "name", ["tanh_gaussian/logprob_1d_mu.3_logstd-.7", "tanh_gaussian/logprob_1d_mu0_logstd0"]
)
def test_squashed_log_prob(name, golden):
    """Also where tanh rounds to 1; the form with +1e-6 inside the logarithm is off by nats there."""
    case = golden(name)
    u = torch.tensor(case["inputs"]["u"]).unsqueeze(1)
    mean, log_std = case["inputs"]["mean"], torch.full_like(u, case["inputs"]["log_std"])
    found = squashed_log_prob(u, (u - mean) / log_std.exp(), log_std).numpy()
    close(found, case["expected"]["log_prob"], case)
    wrong = np.array(case["must_not_equal"]["log_prob_with_eps_1e_6"])
    extreme = np.abs(case["inputs"]["u"]) >= 5
    assert (np.abs(found - wrong)[extreme] > 3e-3).all()


def test_squashed_sample_and_its_gradients(golden):
    case = golden("tanh_gaussian/reparam_gradient")
    mean, log_std, noise = tensors(case, "mean", "log_std", "eps")
    outputs = torch.cat((mean, log_std)).unsqueeze(0)
    action, log_prob, gradient = squashed_sample(outputs, noise.unsqueeze(0))
    found = gradient(torch.zeros_like(action), torch.tensor(1.0))
    expected = case["expected"]
    close(action[0], np.tanh(expected["u"]), case)
    close(log_prob[0], expected["log_prob"], case)
    close(found[0], [*expected["grad_mean"], *expected["grad_log_std"]], case)


def test_gradient_of_a_squashed_sample_equals_autograds():
    """Of sum w . action + c sum log pi, where log deviations beyond their limits have none."""
    rng = torch.Generator().manual_seed(0)
    outputs = (3 * torch.randn((50, 4), generator=rng)).requires_grad_()
    noise, weight = torch.randn((50, 2), generator=rng), torch.randn((50, 2), generator=rng)
    action, log_prob, gradient = squashed_sample(outputs, noise)
    ((weight * action).sum() + 0.3 * log_prob.sum()).backward()
    found = gradient(weight, torch.tensor(0.3)).detach()
    torch.testing.assert_close(found, outputs.grad, rtol=1e-4, atol=1e-5)
    assert (found[:, 2:][outputs.detach()[:, 2:] > 2] == 0).all()


def test_k17_log_prob_at_saturation():
    """At mean 10, deviation 1: 17.69477, not 8.03 (from the clamped action) nor 12.89 (with +1e-6)."""
    one = torch.ones(1, 1)
    assert float(squashed_log_prob(10 * one, 0 * one, 0 * one)) == pytest.approx(17.69477, abs=1e-3)
    assert float(squashed_log_prob(one, one, 0 * one)) == pytest.approx(-0.551377, abs=1e-5)
    assert float(squashed_log_prob(0 * one, 0 * one, 0 * one)) == pytest.approx(-0.918939, abs=1e-5)


def test_k17_extreme_outputs_have_finite_gradients():
    outputs = torch.tensor([[1e4, -1e4, 50.0, -90.0], [-1e4, 0.0, 2.0, 1.0]])
    action, log_prob, gradient = squashed_sample(outputs, torch.tensor([[3.0, -3.0], [0.0, 1.0]]))
    assert torch.isfinite(log_prob).all()
    assert torch.isfinite(gradient(torch.ones_like(action), torch.tensor(1.0))).all()
    assert float(action.abs().max()) == 1.0


def test_continuous_losses(golden):
    case = golden("sac_continuous/losses")
    given, expected = case["inputs"], case["expected"]
    names = ("q1_target", "q2_target", "next_log_prob", "rewards", "log_prob", "q1_pi", "q2_pi", "q1", "q2")
    q1_target, q2_target, next_log_prob, rewards, log_prob, q1_pi, q2_pi, q1, q2 = tensors(case, *names)
    discount = given["gamma"] * (1 - torch.tensor(given["terminated"], dtype=torch.float32))
    following = least(torch.stack((q1_target, q2_target)).unsqueeze(2))
    target = soft_target(rewards, discount, following, given["alpha"] * next_log_prob)
    close(target, expected["target"], case)
    value = least(torch.stack((q1_pi, q2_pi)).unsqueeze(2))
    close(actor_loss(torch.tensor(given["alpha"]), log_prob, value).mean(), expected["actor_loss"], case)
    loss, slope = summed_squares(torch.stack((q1, q2)).unsqueeze(2), target)
    close(loss.mean(), expected["critic_loss"], case)
    close(slope[0, :, 0], 2 * (q1 - target), case)
    temperature = learning_temperature(given["alpha"])
    loss = temperature_loss(temperature.log_value, -log_prob.mean(), given["target_entropy"])
    close(loss, expected["alpha_loss"], case)
    close(temperature.log_value.grad, expected["grad_log_alpha"], case)


def learning_temperature(value):
    """One whose logarithm has a gradient to be written into."""
    temperature = Temperature(value)
    temperature.log_value.grad = torch.zeros(())
    return temperature


@pytest.mark.parametrize(("discount", "expected"), [(0.0, 1.0), (0.99, 4.267)])
def test_k16_a_terminal_state_has_no_entropy(discount, expected):
    """r = 1, Q = 3, alpha = 0.2, log pi = -1.5; masking Q alone would give 1.297 at the end."""
    target = soft_target(
        torch.ones(1), torch.tensor([discount]), torch.tensor([3.0]), torch.tensor([0.2 * -1.5])
    )
    assert float(target) == pytest.approx(expected, abs=1e-6)


def test_average_and_least_of_critics():
    outputs = torch.tensor([[[1.0], [5.0]], [[3.0], [2.0]]])
    assert least(outputs).tolist() == [1.0, 2.0]
    assert average(outputs).tolist() == [2.0, 3.5]
    assert least_slope(outputs).tolist() == [[[1.0], [0.0]], [[0.0], [1.0]]]
    assert average_slope(outputs).tolist() == [[[0.5], [0.5]], [[0.5], [0.5]]]
    assert REDUCTIONS["min"](outputs).tolist() == [[1.0], [2.0]]
    assert REDUCTIONS["mean"](outputs).tolist() == [[2.0], [3.5]]


def test_discrete_value_and_target(golden):
    case = golden("sac_discrete/soft_value_and_target")
    logits, q1, q2, reward = tensors(case, "next_logits", "q1_target", "q2_target", "rewards")
    value, _, _ = soft_value(
        logits, REDUCTIONS["min"](torch.stack((q1, q2))), torch.tensor(case["inputs"]["alpha"])
    )
    close(value, case["expected"]["v_next"], case)
    target = bootstrapped(reward, torch.tensor([case["inputs"]["gamma"]]), value)
    close(target, case["expected"]["target"], case)


def test_discrete_actor_and_critic_losses(golden):
    case = golden("sac_discrete/actor_critic_losses")
    logits, q1, q2, target = tensors(case, "logits", "q1", "q2", "target")
    values, actions = torch.stack((q1, q2)), torch.tensor(case["inputs"]["actions"]).view(-1, 1)
    value, _, slope = soft_value(logits, values.amin(0), torch.tensor(case["inputs"]["alpha"]))
    close(-value.mean(), case["expected"]["actor_loss"], case)
    close(-slope / len(value), case["expected"]["grad_logits"], case)
    taken = values.gather(2, actions.expand(2, -1, 1))
    close(summed_squares(taken, target)[0].mean(), case["expected"]["critic_loss"], case)


def test_discrete_temperature_loss(golden):
    case = golden("sac_discrete/alpha_loss")
    (logits,) = tensors(case, "logits")
    expected, temperature = case["expected"], learning_temperature(case["inputs"]["alpha"])
    _, entropy, _ = soft_value(logits, torch.zeros_like(logits), torch.tensor(1.0))
    close(entropy.mean(), expected["mean_entropy"], case)
    loss = temperature_loss(temperature.log_value, entropy.mean(), case["inputs"]["target_entropy"])
    close(loss, expected["loss_log_alpha_form"], case)
    close(temperature.log_value.grad, expected["grad_log_alpha_form"], case)


def test_target_entropy_table(golden):
    case = golden("sac_discrete/target_entropy_table")
    found = [
        [target_entropy(DiscreteAction(n), ratio) for n in case["inputs"]["n_actions"]]
        for ratio in case["inputs"]["ratios"]
    ]
    close(found, case["expected"]["target_entropy"], case)
    # The greedy probability at which two actions have that entropy.
    for ratio, greatest in case["expected"]["max_greedy_prob_allowed_2_actions"].items():
        rest = 1 - greatest
        bits = -(greatest * math.log(greatest) + rest * math.log(rest))
        assert target_entropy(DiscreteAction(2), float(ratio)) == pytest.approx(bits, abs=1e-6)


def test_k16_target_entropies():
    for size, expected in ((2, -2.0), (6, -6.0)):  # a Box(2, 3) reaches an algorithm as six numbers
        assert target_entropy(ContinuousAction((-5.0,) * size, (1.0,) * size), 0.6) == expected
    assert target_entropy(DiscreteAction(2), 0.98) == pytest.approx(0.679284, abs=1e-6)
    assert target_entropy(DiscreteAction(18), 0.98) == pytest.approx(2.832564, abs=1e-6)
    assert target_entropy(DiscreteAction(1), 0.6) == 0.0
