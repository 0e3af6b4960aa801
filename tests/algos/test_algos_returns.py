"""Generalised advantage estimation, against goldens, cases worked out by hand, and the definition itself."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.algorithms.shared.on_policy.returns import explained_variance, gae

PLAIN = [
    "gae/no_end",
    "gae/terminated_mid",
    "gae/truncated_mid",
    "gae/terminated_then_truncated",
    "gae/terminated_last",
    "gae/truncated_last",
    "gae/lambda0_is_td_error",
    "gae/lambda1_is_mc_minus_v",
    "gae/batched_T4_B3",
]


def estimate(inputs, dtype=np.float32):
    arrays = [np.array(inputs[name], dtype) for name in ("rewards", "values", "next_values")]
    flags = [np.array(inputs[name], bool) for name in ("terminated", "truncated")]
    return gae(*arrays, *flags, gamma=inputs["gamma"], gae_lambda=inputs["gae_lambda"])


@pytest.mark.parametrize("name", PLAIN)
def test_goldens(golden, name):
    case = golden(name)
    advantages, returns = estimate(case["inputs"])
    tolerance = case["tol_float32"]
    np.testing.assert_allclose(advantages, case["expected"]["advantages"], tolerance, tolerance)
    np.testing.assert_allclose(returns, case["expected"]["returns"], tolerance, tolerance)
    assert advantages.dtype == returns.dtype == np.float32
    for wrong in case.get("must_not_equal", {}).values():
        assert np.abs(advantages - np.array(wrong)).max() > 0.1


def test_adding_the_bootstrap_to_the_reward_is_the_same(golden):
    """Rewards with gamma V(final) added at the truncation, treated as a termination: the same advantages."""
    case = golden("gae/reward_augmentation_equivalence")
    inputs = case["inputs"]
    values = np.array(inputs["values"], np.float32)
    advantages, _ = gae(
        np.array(inputs["rewards_augmented"], np.float32),
        values,
        np.append(values[1:], np.float32(inputs["bootstrap_value"])),
        np.array(inputs["dones"], bool),
        np.zeros(len(values), bool),
        gamma=inputs["gamma"],
        gae_lambda=inputs["gae_lambda"],
    )
    np.testing.assert_allclose(advantages, case["expected"]["advantages"], 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("terminated", "truncated", "expected"),
    [
        ([0, 0, 0, 0], [0, 1, 0, 0], [7.79, 9.5, 1.376, 0.8]),
        ([0, 1, 0, 0], [0, 1, 0, 0], [1.31, 0.5, 1.376, 0.8]),  # terminated wins
    ],
)
def test_k01_truncation_bootstraps_and_cuts_the_trace(terminated, truncated, expected):
    advantages, returns = gae(
        np.ones(4),
        np.array([0.5, 0.5, 2.0, 2.0]),
        np.array([0.5, 10.0, 2.0, 2.0]),
        np.array(terminated, bool),
        np.array(truncated, bool),
        gamma=0.9,
        gae_lambda=0.8,
    )
    np.testing.assert_allclose(advantages, expected, atol=1e-12)
    np.testing.assert_allclose(returns - expected, [0.5, 0.5, 2.0, 2.0], atol=1e-12)


def test_k04_ends_belong_to_their_own_step():
    """Terminated after step 1, not after step 2: a flag read one step off gives [0, 1.9405, 1]."""
    advantages, _ = gae(
        np.array([0.0, 1.0, 1.0]),
        np.zeros(3),
        np.zeros(3),
        np.array([False, True, False]),
        np.zeros(3, bool),
        gamma=0.99,
        gae_lambda=0.95,
    )
    np.testing.assert_allclose(advantages, [0.9405, 1.0, 1.0], atol=1e-12)


def test_equals_the_definition_on_random_batches():
    """A_t as the sum over k of (gamma lambda)^k delta_{t+k} up to the end of the episode (Schulman 2016, eq.
    16)."""
    rng = np.random.default_rng(5)
    steps, envs, gamma, lam = 20, 4, 0.97, 0.9
    rewards, values, following = rng.standard_normal((3, steps, envs))
    terminated, truncated = rng.random((2, steps, envs)) < 0.15
    expected = np.zeros((steps, envs))
    for b in range(envs):
        for t in range(steps):
            for k in range(t, steps):
                bootstrap = 0.0 if terminated[k, b] else gamma * following[k, b]
                expected[t, b] += (gamma * lam) ** (k - t) * (rewards[k, b] + bootstrap - values[k, b])
                if terminated[k, b] or truncated[k, b]:
                    break
    advantages, returns = gae(rewards, values, following, terminated, truncated, gamma=gamma, gae_lambda=lam)
    np.testing.assert_allclose(advantages, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(returns - advantages, values, rtol=1e-10, atol=1e-12)


def test_explained_variance(golden):
    case = golden("ppo/explained_variance")
    result = explained_variance(np.array(case["inputs"]["returns"]), np.array(case["inputs"]["values"]))
    assert result == pytest.approx(case["expected"]["explained_variance"], rel=1e-9)
    assert np.isnan(explained_variance(np.ones(3), np.arange(3.0)))
