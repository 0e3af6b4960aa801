"""The testing environments of named observations and masks: their best returns and chance's are those promised."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pydantic import ValidationError

from omnirl.testing.environments import PropConfig, build_single

EPISODES = 3000


def answers(identifier):
    """Every action that may be an answer."""
    action = build_single(PropConfig(id=identifier)).action
    if hasattr(action, "nvec"):
        return [np.array(digits) for digits in itertools.product(*map(range, action.nvec))]
    return [np.array(n) for n in range(action.n)]


def legal(identifier, row):
    mask = row.get("action_mask")
    if mask is None:
        return answers(identifier)
    if identifier.endswith("digits"):
        return [pair for pair in answers(identifier) if mask[pair[0]] and mask[3 + pair[1]]]
    return [n for n in answers(identifier) if mask[n]]


@pytest.mark.parametrize(
    ("identifier", "best", "chance"),
    [
        ("compare", 1.0, 0.0),
        ("signpost", 1.0, 1 / 4),
        ("menu", 7 / 9, 1 / 2),
        ("digits", 2.0, 5 / 6),
        ("masked_digits", 2.0, 5 / 4),
    ],
)
def test_the_best_return_and_that_of_chance(identifier, best, chance):
    greatest, mean = [], []
    for seed in range(EPISODES):
        single = build_single(PropConfig(id=identifier))
        row = single.reset(seed)
        rewards = []
        for action in legal(identifier, row):
            assert {name: array.tolist() for name, array in single.reset(seed).items()} == {
                name: array.tolist() for name, array in row.items()
            }
            _, reward, terminated, truncated = single.step(action)
            assert (terminated, truncated) == (True, False)
            rewards.append(reward)
        greatest.append(max(rewards))
        mean.append(sum(rewards) / len(rewards))
    assert np.mean(greatest) == pytest.approx(best, abs=0.03)
    assert np.mean(mean) == pytest.approx(chance, abs=0.03)


def test_fork_leads_two_ways_into_states_that_look_alike():
    single = build_single(PropConfig(id="fork"))
    for first in (0, 1):
        assert single.reset(0)["action_mask"].tolist() == [True, True]
        row, reward, terminated, truncated = single.step(np.array(first))
        assert (row["step"].tolist(), reward, terminated, truncated) == ([1.0], 0.0, False, False)
        assert row["action_mask"].tolist() == [first == 0, first == 1]
        _, reward, terminated, truncated = single.step(np.array(first))
        assert (reward, terminated, truncated) == (float(first), True, False)


@pytest.mark.parametrize("identifier", ["menu", "fork", "masked_digits"])
def test_an_illegal_action_raises(identifier):
    for seed in range(20):
        single = build_single(PropConfig(id=identifier))
        row = single.reset(seed)
        if identifier == "fork":
            row, *_ = single.step(np.array(0))
        allowed = {str(action) for action in legal(identifier, row)}
        for action in answers(identifier):
            if str(action) not in allowed:
                with pytest.raises(ValueError, match=r"action \d is illegal"):
                    single.step(action)


def test_several_arrays_take_no_frame_stack():
    with pytest.raises(ValidationError, match="compare observes several arrays and takes no frame_stack"):
        PropConfig(id="compare", frame_stack=2)
