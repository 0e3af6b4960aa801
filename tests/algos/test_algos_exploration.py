"""Epsilon-greedy exploration and its schedule."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.algorithms.shared.values.exploration import EpsilonGreedy, ladder_exponent
from omnirl.api import ActContext, Constant, Linear, PolicyContext


def moment(env_steps=0, progress=0.0, seed=0, envs=4):
    return ActContext(np.random.default_rng(seed), env_steps, progress, np.zeros(envs, bool))


def explorer(schedule, *, alpha=0.0, index=0, count=1, envs=4, actions=3):
    return EpsilonGreedy(schedule, alpha, actions, 16, PolicyContext("sampler", index, count, envs))


def test_linear_schedule(golden):
    given = golden("dqn/epsilon_schedule")["inputs"]
    schedule = Linear(kind="linear", start=given["start"], end=given["end"], until=given["fraction"])
    explore = explorer(schedule)
    values = [explore.epsilon(moment(steps, steps / given["total"])) for steps in given["steps"]]
    np.testing.assert_allclose(values, golden("dqn/epsilon_schedule")["expected"]["eps"], rtol=1e-9)


def test_k28_schedule_is_a_function_of_the_steps_so_it_goes_on_after_a_resume():
    """1 to 0.05 over 10,000 steps: 0.62 at 4,000, whatever was asked before."""
    schedule = Linear(kind="linear", start=1.0, end=0.05, steps=10_000)
    assert explorer(schedule).epsilon(moment(4_000)) == pytest.approx(0.62)
    used = explorer(schedule)
    used.epsilon(moment(9_000))
    assert used.epsilon(moment(4_000)) == pytest.approx(0.62)


def test_ladder_over_samplers(golden):
    given, expected = (golden("dqn/apex_epsilons")[key] for key in ("inputs", "expected"))
    values = [
        explorer(Constant(value=given["base"]), alpha=given["alpha"], index=i, count=given["n"]).epsilon(
            moment()
        )
        for i in range(given["n"])
    ]
    np.testing.assert_allclose(values, expected["eps"], rtol=1e-9)
    assert ladder_exponent(7.0, 0, 1) == 1.0


def test_every_environment_explores_by_itself():
    """epsilon 0.3 and 3 actions: 0.3 of 20,000 explore, of which a third meets the greedy action 2."""
    explore = explorer(Constant(value=0.3), envs=20_000)
    action = explore(lambda: np.full(20_000, 2), moment(envs=20_000))
    np.testing.assert_allclose(np.bincount(action) / 20_000, [0.1, 0.1, 0.8], atol=0.011)


@pytest.mark.parametrize(("epsilon", "expected"), [(0.0, [7]), (1.0, [0, 1, 2])])
def test_extremes(epsilon, expected):
    explore, rng, seen = explorer(Constant(value=epsilon)), moment(), set()
    for _ in range(40):
        seen |= set(explore(lambda: np.full(4, 7), rng).tolist())
    assert sorted(seen) == expected


def test_greedy_actions_are_not_asked_for_where_all_explore():
    def fail():
        raise AssertionError("not needed")

    assert explorer(Constant(value=1.0))(fail, moment()).shape == (4,)


def test_the_same_generator_gives_the_same_actions():
    first, second = (explorer(Constant(value=0.5)) for _ in range(2))
    second(lambda: np.zeros(4, np.int64), moment(seed=9))  # another rollout before
    a, b = (explore(lambda: np.full(4, 7), moment(seed=1)) for explore in (first, second))
    np.testing.assert_array_equal(a, b)
