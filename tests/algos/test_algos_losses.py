"""Losses of PPO, with their gradients, against goldens and hand-computed numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from omnirl.algorithms.shared.on_policy import losses
from omnirl.algorithms.shared.training.likelihoods import categorical


def tensor(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


def close(actual, expected, tolerance=1e-5):
    torch.testing.assert_close(actual.detach(), tensor(expected), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["ppo/loss_norm_noVclip", "ppo/loss_norm_Vclip"])
def test_ppo_loss_and_its_gradient(golden, name):
    case = golden(name)
    given, expected = case["inputs"], case["expected"]
    logits, values = tensor(given["logits"]), tensor(given["values"])
    returns, clip = tensor(given["returns"]), given["clip"]

    likelihood = categorical(logits, tensor(given["actions"], torch.int64).unsqueeze(1))
    log_ratio = likelihood.log_prob - tensor(given["old_log_probs"])
    advantages = losses.standardize_minibatches(tensor(given["advantages"]), size=6)
    policy_loss, d_log_prob = losses.clipped_surrogate(log_ratio, advantages, clip)
    if given["clip_value_loss"]:
        value_loss, d_values = losses.clipped_half_squared_error(
            values, returns, tensor(given["old_values"]), clip
        )
    else:
        value_loss, d_values = losses.half_squared_error(values, returns)
    policy_loss, value_loss, entropy = policy_loss.mean(), value_loss.mean(), likelihood.entropy.mean()
    total = policy_loss + given["vf_coef"] * value_loss - given["ent_coef"] * entropy
    d_logits, d_log_std = likelihood.gradient(d_log_prob, -given["ent_coef"] / len(values))
    k1, k3 = losses.kl_estimates(log_ratio)

    assert d_log_std is None
    for actual, key in (
        (log_ratio.exp(), "ratio"),
        (advantages, "normalised_advantages"),
        (policy_loss, "policy_loss"),
        (value_loss, "value_loss_half_mse"),
        (entropy, "entropy"),
        (total, "total_loss"),
        (k1, "approx_kl_k1"),
        (k3, "approx_kl_k3"),
        (d_logits, "grad_logits"),
        (given["vf_coef"] * d_values, "grad_values"),
    ):
        close(actual, expected[key], case["tol_float32"])


@pytest.mark.parametrize("kind", [torch.tensor, np.array])
def test_the_surrogate_by_hand_on_either_side_of_its_clip(kind):
    """Ratios 1.5, 0.5 and 1.1 with clip 0.2; the gradient of the mean of six is -r A / 6, or 0 where the clip
    holds."""
    log_ratio = kind(np.log([1.5, 1.5, 0.5, 0.5, 1.1, 1.1]))
    loss, gradient = losses.clipped_surrogate(log_ratio, kind([1.0, -1.0, 1.0, -1.0, 2.0, -2.0]), 0.2)
    np.testing.assert_allclose(loss, [-1.2, 1.5, -0.5, 0.8, -2.2, 2.2], rtol=1e-6)
    np.testing.assert_allclose(gradient, [0.0, 1.5 / 6, -0.5 / 6, 0.0, -2.2 / 6, 2.2 / 6], rtol=1e-6)


@pytest.mark.parametrize("kind", [torch.tensor, np.array])
def test_the_clipped_value_loss_by_hand(kind):
    """Clip 0.5 around 0. V = 2 is held at 0.5: towards a return of 0 the free error 2 is the greater and has the
    gradient 2; towards 3 the held one, 2.5, is, and it is a constant. V = 0.25 is not held."""
    loss, gradient = losses.clipped_half_squared_error(
        kind([2.0, 2.0, 0.25]), kind([0.0, 3.0, 1.0]), kind([0.0, 0.0, 0.0]), 0.5
    )
    np.testing.assert_allclose(loss, [2.0, 3.125, 0.28125], rtol=1e-6)
    np.testing.assert_allclose(gradient, [2.0 / 3, 0.0, -0.75 / 3], rtol=1e-6)


@pytest.mark.parametrize("kind", [torch.tensor, np.array])
def test_a_value_within_the_clip_always_learns(kind):
    """The held error is the free one but for rounding, which must not take the gradient away."""
    rng = np.random.default_rng(0)
    values, returns, old = (rng.standard_normal(500).astype(np.float32) for _ in range(3))
    _, gradient = losses.clipped_half_squared_error(kind(values), kind(returns), kind(old), 100.0)
    np.testing.assert_allclose(gradient, (values - returns) / 500, rtol=1e-4, atol=1e-8)


def test_k20_advantages_use_the_unbiased_deviation(golden):
    given = golden("ppo/loss_norm_population_std")
    result = losses.standardize_minibatches(tensor(given["inputs"]["advantages"]), size=6)
    assert (result - tensor(given["expected"]["normalised_advantages"])).abs().max() > 0.05
    close(
        losses.standardize_minibatches(tensor([1.0, 2.0, 3.0, 4.0]), 4),
        [-1.161895, -0.387298, 0.387298, 1.161895],
    )


def test_k20_equal_advantages_become_zeros():
    close(losses.standardize_minibatches(tensor([2.0, 2.0, 2.0]), 3), [0.0, 0.0, 0.0])


def test_k20_each_minibatch_has_its_own_mean_and_a_last_single_sample_stays():
    result = losses.standardize_minibatches(tensor([0.0, 2.0, 10.0, 14.0, 7.0]), 2)
    half = 0.5**0.5
    close(result, [-half, half, -half, half, 7.0])


def test_an_uneven_last_minibatch_is_standardized_too():
    close(
        losses.standardize_minibatches(tensor([5.0, 5.0, 5.0, 1.0, 3.0]), 3), [0, 0, 0, -(0.5**0.5), 0.5**0.5]
    )
