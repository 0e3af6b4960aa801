"""Targets and losses of the value learners, with their derivatives, against goldens and hand-computed numbers."""

from __future__ import annotations

import pytest
import torch

from omnirl.algorithms.shared.off_policy.targets import (
    bootstrapped,
    double_target_value,
    greatest_target_value,
)
from omnirl.algorithms.shared.off_policy.transition_tensors import TransitionTensors
from omnirl.algorithms.shared.values.learner import TakenRows
from omnirl.algorithms.shared.values.losses import huber_loss, squared_loss, temporal_difference_loss


def tensor(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


def close(actual, expected, tolerance=1e-5):
    torch.testing.assert_close(actual.detach(), tensor(expected), rtol=tolerance, atol=tolerance)


def differs(actual, forbidden):
    assert (actual - tensor(forbidden)).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("next_value", "key", "other"),
    [
        (greatest_target_value, "dqn_target", "ddqn_target"),
        (double_target_value, "ddqn_target", "dqn_target"),
    ],
)
def test_targets_bootstrap_at_a_truncation_and_not_at_a_termination(golden, next_value, key, other):
    case = golden("dqn/targets")
    given = case["inputs"]
    online, target = (tensor(given[name]) for name in ("q_online_next", "q_target_next"))
    discount = given["gamma"] * (1 - tensor(given["terminated"]))
    values = next_value(torch.zeros(4, 1), lambda obs: online, lambda obs: target)
    goals = bootstrapped(tensor(given["rewards"]), discount, values)
    close(goals, case["expected"][key])
    differs(goals, case["expected"][other])


def test_the_double_target_has_no_gradient():
    weight = torch.ones(1, 2, requires_grad=True)
    value = double_target_value(torch.ones(3, 1), lambda obs: obs @ weight, lambda obs: obs @ weight)
    assert not value.requires_grad


@pytest.mark.parametrize(
    ("error_loss", "key"), [(huber_loss, "huber_unweighted_mean"), (squared_loss, "mse_unweighted")]
)
def test_error_losses(golden, error_loss, key):
    case = golden("dqn/huber_loss_weighted")
    error = tensor(case["inputs"]["target"]) - tensor(case["inputs"]["q_taken"])
    close(error, case["expected"]["td"])
    close(error_loss(error)[0].mean(), case["expected"][key])


def test_huber_is_linear_beyond_one():
    loss, slope = huber_loss(tensor([3.0, -3.0, 0.5]))
    close(loss, [2.5, 2.5, 0.125])
    close(slope, [1.0, -1.0, 0.5])


@pytest.mark.parametrize(
    ("error_loss", "reference"),
    [(huber_loss, torch.nn.functional.huber_loss), (squared_loss, torch.nn.functional.mse_loss)],
)
def test_slopes_of_error_losses_are_their_derivatives(error_loss, reference):
    error = torch.linspace(-3, 3, 40, requires_grad=True)
    expected = reference(error, torch.zeros(40), reduction="none")
    (slopes,) = torch.autograd.grad(expected.sum(), error)
    loss, slope = error_loss(error.detach())
    close(loss, expected.tolist())
    close(slope, slopes.tolist())


def test_weighted_loss_and_its_slope(golden):
    """Weights multiply the loss, not the error: loss and gradient of the mean over the batch."""
    case = golden("dqn/huber_loss_weighted")
    given = case["inputs"]
    weights = tensor(given["weights"])
    batch = TransitionTensors(
        obs=torch.zeros(4, 1),
        action=torch.ones(4, 1, dtype=torch.int64),
        reward=tensor(given["target"]),
        next_obs=torch.zeros(4, 1),
        discount=torch.zeros(4),
        weight=weights,
    )
    loss = temporal_difference_loss(greatest_target_value, huber_loss)
    result = loss(
        batch, tensor(given["q_taken"]), lambda obs: torch.zeros(4, 2), lambda obs: torch.ones(4, 2)
    )
    close((result.loss * weights).mean(), case["expected"]["loss_weighted"])
    close(result.slope * weights / 4, case["expected"]["grad_q"])
    close(result.error, case["expected"]["td"])
    close(result.value, given["q_taken"])


def test_rows_of_the_taken_actions():
    rows = TakenRows(3)
    assert rows.of(torch.tensor([[2], [0]]), 2).tolist() == [2, 3]
    assert rows.shares.tolist() == [0.5, 0.5]
    assert rows.of(torch.tensor([[2], [0]]), 8).tolist() == [2, 3]
    assert rows.shares.tolist() == [0.125, 0.125]
    assert rows.of(torch.tensor([[1], [1], [0], [2]]), 4).tolist() == [1, 4, 6, 11]
