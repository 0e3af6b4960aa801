"""V-trace, against goldens, cases worked out by hand, and its fixed point."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.algorithms.shared.on_policy.returns import gae, vtrace

PLAIN = [
    "vtrace/bars_1_1",
    "vtrace/rho_inf_c1",
    "vtrace/bars_1_1_lambda.95",
    "vtrace/terminated_mid",
    "vtrace/terminated_and_truncated",
    "vtrace/terminated_last",
    "vtrace/on_policy_equals_nstep",
]
FIXED_POINTS = [
    "vtrace/fixed_point_bandit_rhobar1",
    "vtrace/fixed_point_bandit_rhobar1.5",
    "vtrace/fixed_point_bandit_rhobar100",
]


def estimate(inputs, dtype=np.float32):
    arrays = [np.array(inputs[name], dtype) for name in ("log_rhos", "rewards", "values", "next_values")]
    flags = [np.array(inputs[name], bool) for name in ("terminated", "truncated")]
    return vtrace(
        *arrays,
        *flags,
        gamma=inputs["gamma"],
        vtrace_lambda=inputs["lam"],
        **{name: float(inputs[name]) for name in ("rho_bar", "c_bar", "pg_rho_bar")},  # one is "inf"
    )


@pytest.mark.parametrize("name", PLAIN)
def test_goldens(golden, name):
    case = golden(name)
    targets, advantages = estimate(case["inputs"])
    tolerance = case["tol_float32"]
    np.testing.assert_allclose(targets, case["expected"]["vs"], tolerance, tolerance)
    np.testing.assert_allclose(advantages, case["expected"]["pg_advantages"], tolerance, tolerance)
    assert targets.dtype == advantages.dtype == np.float32


def arrays(*rows):
    return [np.array(row, np.float32) for row in rows]


def test_k06_ratios_are_cut_and_the_next_target_enters_the_advantage():
    log_rhos, rewards, values, after = arrays(np.log([0.5, 2, 1]), [1, 0, 2], [1, 2, 3], [2, 3, 4])
    never = np.zeros(3, bool)
    targets, advantages = vtrace(log_rhos, rewards, values, after, never, never, gamma=0.9)
    # delta = .5(1 + .9*2 - 1) = .9, 1(0 + .9*3 - 2) = .7, 1(2 + .9*4 - 3) = 2.6; vs_2 = 3 + 2.6,
    # vs_1 = 2 + .7 + .9(5.6 - 3), vs_0 = 1 + .9 + .9*.5(5.04 - 2)
    np.testing.assert_allclose(targets, [3.268, 5.04, 5.6], 1e-5)
    # .5(1 + .9*5.04 - 1), 0 + .9*5.6 - 2, 2 + .9*4 - 3
    np.testing.assert_allclose(advantages, [2.268, 3.04, 2.6], 1e-5)


def test_each_bar_cuts_its_own_ratio():
    """Ratios of 4, and bars of 1, 2 and 3: for the error, the trace and the policy's gradient."""
    four, rewards, values, after = arrays(np.log([4, 4]), [1, 2], [0, 0], [0, 0])
    never = np.zeros(2, bool)
    bars = {"rho_bar": 1.0, "c_bar": 2.0, "pg_rho_bar": 3.0}
    targets, advantages = vtrace(four, rewards, values, after, never, never, gamma=0.5, **bars)
    # vs_1 = 1 * 2, vs_0 = 1 * 1 + .5 * 2 * 2; advantages 3 * (1 + .5 * 2) and 3 * 2
    np.testing.assert_allclose(targets, [3.0, 2.0], 1e-6)
    np.testing.assert_allclose(advantages, [6.0, 6.0], 1e-6)


def test_k06_nothing_of_the_next_episode_enters_this_one():
    """Two truncated episodes of values 1 and 100 without reward: nothing is to be gained anywhere."""
    values, after = arrays([1, 1, 100, 100], [1, 1, 100, 100])
    truncated = np.array([0, 1, 0, 1], bool)
    zero = np.zeros(4, np.float32)
    targets, advantages = vtrace(zero, zero, values, after, np.zeros(4, bool), truncated, gamma=1.0)
    assert advantages.tolist() == [0, 0, 0, 0]
    assert targets.tolist() == [1, 1, 100, 100]


def test_k06_the_last_step_counts():
    zero = np.zeros(3, np.float32)
    rewards = np.array([0, 0, 1], np.float32)
    terminated = np.array([0, 0, 1], bool)
    targets, _ = vtrace(zero, rewards, zero, zero, terminated, np.zeros(3, bool), gamma=1.0)
    assert targets.tolist() == [1, 1, 1]


def test_on_policy_it_is_the_n_step_return(golden):
    """With ratios of 1 the targets are those of lambda = 1: the discounted rewards up to the bootstrap."""
    case = golden("vtrace/on_policy_equals_nstep")
    targets, _ = estimate(case["inputs"])
    inputs = case["inputs"]
    rewards, values, after = arrays(*(inputs[name] for name in ("rewards", "values", "next_values")))
    flags = [np.array(inputs[name], bool) for name in ("terminated", "truncated")]
    _, returns = gae(rewards, values, after, *flags, gamma=inputs["gamma"], gae_lambda=inputs["lam"])
    np.testing.assert_allclose(targets, returns, 1e-5, 1e-5)


@pytest.mark.parametrize("name", FIXED_POINTS)
def test_the_fixed_point_depends_on_the_cut_of_the_ratios(golden, name):
    """A one-step problem: the value at which the expected V-trace error under mu vanishes."""
    case = golden(name)
    inputs, expected = case["inputs"], case["expected"]
    mu, pi, rewards = (np.array(inputs[key]) for key in ("mu", "pi", "rewards"))
    value = expected["value_fixed_point"]
    count = len(mu)
    targets, _ = vtrace(
        np.log(pi / mu)[None],
        rewards[None],
        np.full((1, count), value),
        np.zeros((1, count)),
        np.ones((1, count), bool),
        np.zeros((1, count), bool),
        gamma=0.9,
        rho_bar=inputs["rho_bar"],
    )
    assert (mu * (targets[0] - value)).sum() == pytest.approx(0.0, abs=1e-6)
