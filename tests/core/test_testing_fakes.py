"""The fakes find the mistakes they are there for."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.api import (
    ActContext,
    ArraySpec,
    ContinuousAction,
    DictSpec,
    DiscreteAction,
    MultiDiscreteAction,
    Step,
)
from omnirl.testing.chains import Count
from omnirl.testing.fakes import (
    FakePolicy,
    FakeStreams,
    RecordingEnvironment,
    check_action,
    check_observation,
    vector_spec,
)
from omnirl.testing.inline import InlineEnvironment
from omnirl.testing.rollouts import make_rollout

SPEC = vector_spec(2, DiscreteAction(3))


def act(first=(False,), env_steps=0, progress=0.0):
    return ActContext(np.random.default_rng(0), env_steps, progress, np.array(first))


@pytest.mark.parametrize(
    ("obs", "message"),
    [
        (np.zeros((1, 3), np.float32), r"shape \(1, 3\), not \(1, 2\)"),
        (np.zeros((1, 2)), "is float64, not float32"),
        ({"x": np.zeros((1, 2), np.float32)}, "one array of observations was expected"),
        ([[0.0, 0.0]], "is list, not an array"),
    ],
)
def test_a_wrong_observation_is_found(obs, message):
    policy = FakePolicy(SPEC, 1)
    for call in (policy.choose_action, policy.sample_action):
        with pytest.raises(AssertionError, match=message):
            call(obs, act())


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (act(first=(False, True)), r"act.first has shape \(2,\)"),
        (act(first=(0,)), "act.first is int64, not bool"),
        (act(env_steps=-1), "env_steps is -1"),
        (act(progress=1.5), "progress is 1.5"),
    ],
)
def test_a_wrong_context_is_found(context, message):
    with pytest.raises(AssertionError, match=message):
        FakePolicy(SPEC, 1).sample_action(np.zeros((1, 2), np.float32), context)


def test_mappings_are_checked_by_name():
    spec = DictSpec((("x", ArraySpec((2,))), ("y", ArraySpec((), "int64"))))
    good = {"x": np.zeros((3, 2), np.float32), "y": np.zeros(3, np.int64)}
    check_observation(good, spec, (3,))
    with pytest.raises(AssertionError, match=r"named \['x'\]"):
        check_observation({"x": good["x"]}, spec, (3,))
    with pytest.raises(AssertionError, match="observation 'y' is float64"):
        check_observation({**good, "y": np.zeros(3)}, spec, (3,))
    with pytest.raises(AssertionError, match="a mapping of observations was expected"):
        check_observation(good["x"], spec, (3,))


@pytest.mark.parametrize(
    ("action", "spec", "message"),
    [
        (np.array([3]), DiscreteAction(3), "outside 0 ... 2"),
        (np.array([-1]), DiscreteAction(3), "outside 0 ... 2"),
        (np.array([[0, 2]]), MultiDiscreteAction((2, 2)), "outside"),
        (np.array([[np.nan]], np.float32), ContinuousAction((0.0,), (1.0,)), "not finite"),
        (np.array([0.5], np.float32), ContinuousAction((0.0,), (1.0,)), "shape"),
        (np.array([1.0]), DiscreteAction(3), "is float64, not int64"),
    ],
)
def test_a_wrong_action_is_found(action, spec, message):
    with pytest.raises(AssertionError, match=message):
        check_action(action, spec, 1)


@pytest.mark.parametrize(
    "spec",
    [
        DiscreteAction(3),
        MultiDiscreteAction((2, 5)),
        ContinuousAction((1.0, -2.0), (3.0, 4.0)),
        ContinuousAction((-np.inf,), (np.inf,)),
    ],
)
def test_a_fake_policys_own_actions_are_right(spec):
    policy = FakePolicy(vector_spec(2, spec), 4)
    obs, context = np.zeros((4, 2), np.float32), act(first=[False] * 4)
    for _ in range(20):
        check_action(policy.sample_action(obs, context).action, spec, 4)
    greedy = policy.choose_action(obs, context)
    check_action(greedy, spec, 4)
    if isinstance(spec, ContinuousAction):
        low, high = spec.bounds()
        assert ((greedy >= low) & (greedy <= high)).all()


def test_weights_are_strict_and_stamp_their_version():
    policy = FakePolicy(SPEC, 2)
    policy.set_weights({"version": np.array(5)})
    sample = policy.sample_action(np.zeros((2, 2), np.float32), act(first=(False, False)))
    assert sample.extras["version"].tolist() == [5, 5]
    for names in ({}, {"version": np.array(1), "more": np.array(1)}, {"other": np.array(1)}):
        with pytest.raises(KeyError, match="not \\['version'\\]"):
            policy.set_weights(names)
    other = FakePolicy(SPEC, 2)
    other.load_state_dict(policy.state_dict())
    assert other.calls == 1


def test_streams_are_predictable():
    streams = FakeStreams(seed=3, target_steps=10)
    assert streams.episode_seed(2, 5) == 2005
    assert streams.episodes == [(2, 5)]
    assert [streams.progress(steps) for steps in (0, 5, 20)] == [0.0, 0.5, 1.0]
    assert streams.policy(4).random() == np.random.default_rng([3, 4]).random()


def recording(singles):
    return RecordingEnvironment(InlineEnvironment(singles), vector_spec(1, DiscreteAction(2)))


def test_a_recorder_finds_a_missing_reset_a_wrong_action_and_a_step_after_close():
    environment = recording([Count(1), Count(5)])
    environment.reset(0, 7)
    with pytest.raises(AssertionError, match=r"no reset of sub-environments \[1\]"):
        environment.step(np.zeros(2, np.int64))
    environment.reset(1, 8)
    with pytest.raises(AssertionError, match="outside"):
        environment.step(np.array([0, 2]))
    environment.step(np.array([0, 1]))
    with pytest.raises(AssertionError, match=r"no reset of sub-environments \[0\]"):
        environment.step(np.zeros(2, np.int64))
    assert environment.resets == [(0, 7), (1, 8)]
    assert [a.tolist() for a in environment.actions] == [[0, 1]]
    environment.close()
    assert environment.closed == 1
    with pytest.raises(AssertionError, match="after close"):
        environment.step(np.zeros(2, np.int64))


@pytest.mark.parametrize(
    ("index", "seed", "message"), [(2, 0, "no sub-environment 2"), (0, np.int64(1), "a seed is an int")]
)
def test_a_recorder_finds_a_wrong_reset(index, seed, message):
    with pytest.raises(AssertionError, match=message):
        recording([Count(), Count()]).reset(index, seed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": np.zeros(1)}, "reward is float64"),
        ({"terminated": np.zeros(1)}, "terminated is float64"),
        ({"truncated": np.zeros((1, 1), np.bool_)}, "truncated has shape"),
        ({"obs": np.zeros((1, 2), np.float32)}, "observation has shape"),
    ],
)
def test_a_recorder_finds_a_wrong_step(change, message):
    class Wrong(InlineEnvironment):
        def step(self, action):
            return Step(**{**vars(super().step(action)), **change})

    environment = RecordingEnvironment(Wrong([Count()]), vector_spec(1, DiscreteAction(2)))
    environment.reset(0, 0)
    with pytest.raises(AssertionError, match=message):
        environment.step(np.zeros(1, np.int64))


def test_a_made_rollout_counts_and_marks_its_ends():
    rollout = make_rollout([[1, 2], [3, 4]], terminated=[(0, 1)], truncated=[(1, 0)], start=5, number=3)
    assert rollout.obs[..., 0].tolist() == [[5, 1005], [6, 1006], [7, 1007]]
    assert rollout.first.tolist() == [[False, False], [False, True], [True, False]]
    assert rollout.final_at.tolist() == [[0, 1], [1, 0]]
    assert rollout.next_obs()[..., 0].tolist() == [[6, 1006.5], [7.5, 1007]]
    assert rollout.action.tolist() == [[5, 5], [6, 6]]
    assert rollout.number == 3
