"""The testing backend: its probes have exactly the values they promise, its config refuses nonsense."""

from __future__ import annotations

import time

import numpy as np
import pytest
from pydantic import ValidationError

from omnirl.api import ActContext, ContinuousAction, DiscreteAction, EnvContext, load_object
from omnirl.loops import observations
from omnirl.testing.chains import Chain, Count
from omnirl.testing.environments import (
    BACKEND,
    ENVIRONMENTS,
    PROPS,
    PropConfig,
    build_env,
    build_single,
    get_env_spec,
)
from omnirl.testing.fakes import FakePolicy, FakeStreams, RecordingEnvironment
from omnirl.testing.inline import InlineEnvironment

GAMMA = 0.9


def play(identifier, actions, seed=0, **options):
    """First observation and then (obs, reward, terminated, truncated) per action."""
    single = build_single(PropConfig(id=identifier, **options))
    first = single.reset(seed).tolist()
    steps = []
    for action in actions:
        obs, reward, terminated, truncated = single.step(np.asarray(action))
        steps.append((obs.tolist(), reward, terminated, truncated))
    return first, steps


def discounted(steps):
    return sum(GAMMA**t * step[1] for t, step in enumerate(steps))


def signed_seeds(identifier):
    """One seed for each sign of the observation."""
    first = {play(identifier, [], seed)[0][0]: seed for seed in range(50)}
    assert set(first) == {-1.0, 1.0}
    return first


def test_p1():
    assert play("probe_p1", [0]) == ([0.0], [([0.0], 1.0, True, False)])


def test_p2_rewards_the_observation():
    for obs, seed in signed_seeds("probe_p2").items():
        assert play("probe_p2", [0], seed) == ([obs], [([obs], obs, True, False)])


def test_p3_is_worth_gamma():
    first, steps = play("probe_p3", [0, 0])
    assert first == [0.0]
    assert [(s[0], s[1], s[2]) for s in steps] == [([1.0], 0.0, False), ([1.0], 1.0, True)]
    assert discounted(steps) == 0.9


def test_p4_rewards_action_1():
    assert [play("probe_p4", [action])[1][0][1:] for action in (0, 1)] == [
        (-1.0, True, False),
        (1.0, True, False),
    ]


def test_p5_rewards_the_matching_action():
    for obs, seed in signed_seeds("probe_p5").items():
        rewards = [play("probe_p5", [action], seed)[1][0][1] for action in (0, 1)]
        assert rewards == ([-1.0, 1.0] if obs > 0 else [1.0, -1.0])


def test_p6_is_truncated_and_p7_terminated_after_three_steps():
    first, steps = play("probe_p6", [0, 0, 0])
    assert first == [0.0]
    assert steps == [([0.0], 1.0, False, False)] * 2 + [([0.0], 1.0, False, True)]
    assert discounted(steps) == pytest.approx(2.71)
    first, steps = play("probe_p7", [0, 0, 0])
    assert [first, *(s[0] for s in steps)] == [[0.0], [pytest.approx(1 / 3)], [pytest.approx(2 / 3)], [1.0]]
    assert [s[1:] for s in steps] == [(1.0, False, False)] * 2 + [(1.0, True, False)]
    assert [discounted(steps[t:]) for t in range(3)] == [pytest.approx(v) for v in (2.71, 1.9, 1.0)]


@pytest.mark.parametrize(
    ("identifier", "bounds", "best", "worse"),
    [
        ("probe_c1", (-1, 1), (0.5, 0.0), (-0.5, -1.0)),
        ("probe_c3", (-2, 4), (2.5, 0.0), (0.5, -4.0)),
        ("probe_c4", (-1, 3), (3.0, 3.0), (-1.0, -1.0)),
    ],
)
def test_continuous_probes(identifier, bounds, best, worse):
    spec = get_env_spec(PropConfig(id=identifier))
    assert (spec.action.low, spec.action.high) == ((bounds[0],), (bounds[1],))
    for action, reward in (best, worse):
        assert play(identifier, [[action]])[1] == [([0.0], reward, True, False)]


def test_c2_wants_half_the_observation():
    for obs, seed in signed_seeds("probe_c2").items():
        assert play("probe_c2", [[0.5 * obs]], seed)[1][0][1] == 0.0
        assert play("probe_c2", [[-0.5 * obs]], seed)[1][0][1] == -1.0


def test_two_step_pays_plus_one_three_times_in_ten():
    last = [play("two_step", [0, 0], seed)[1] for seed in range(1000)]
    assert all(steps[0] == ([1.0], 0.0, False, False) for steps in last)
    wins = sum(steps[1][1] == 1.0 for steps in last)
    assert all(steps[1][1:] in {(1.0, True, False), (-1.0, True, False)} for steps in last)
    assert 250 < wins < 350  # standard deviation 14.5


@pytest.mark.parametrize("identifier", ["probe_p2", "probe_p3", "probe_p6", "probe_p7", "two_step"])
def test_continuous_twins_are_the_same_whatever_the_action(identifier):
    twin = f"{identifier}_continuous"
    assert get_env_spec(PropConfig(id=twin)).action == ContinuousAction((-1.0,), (1.0,))
    steps = {"probe_p2": 1, "probe_p3": 2, "two_step": 2}.get(identifier, 3)
    for seed in range(5):
        expected = play(identifier, [0] * steps, seed)
        assert play(twin, [[0.7]] * steps, seed) == expected
        assert play(twin, [[-1.0]] * steps, seed) == expected


def test_chain5_has_the_q_table_of_its_closed_form():
    """Value iteration over the environment itself."""
    q = np.zeros((5, 2))
    for _ in range(60):
        for state in range(5):
            for action in (0, 1):
                chain = Chain()
                chain.reset(0)
                chain._state = state
                obs, reward, terminated, _ = chain.step(np.array(action))
                q[state, action] = reward + (0.0 if terminated else GAMMA * q[obs.argmax()].max())
    expected = [[0.59049, 0.6561], [0.59049, 0.729], [0.6561, 0.81], [0.729, 0.9], [0.81, 1.0]]
    np.testing.assert_allclose(q, expected, atol=1e-9)


def test_chain5_visits_every_start_and_ends():
    assert {int(np.argmax(play("chain5", [], seed)[0])) for seed in range(50)} == set(range(5))
    steps = play("chain5", [0] * 50)[1]
    assert [s[2:] for s in steps] == [(False, False)] * 49 + [(False, True)]


@pytest.mark.parametrize(("identifier", "flags"), [("count", (False, True)), ("count_term", (True, False))])
def test_count_ends_after_its_length(identifier, flags):
    first, steps = play(identifier, [0, 1, 0], length=3)
    assert [first[0], *(s[0][0] for s in steps)] == [0.0, 1.0, 2.0, 3.0]
    assert [s[2:] for s in steps] == [(False, False), (False, False), flags]


def test_box_records_what_it_was_given_inside_its_bounds():
    single = build_single(PropConfig(id="box", low=-2.0, high=4.0))
    single.reset(0)
    rewards = [single.step(np.array([a], np.float32))[1] for a in (1.5, 9.0, -9.0)]
    assert [a.tolist() for a in single.actions] == [[1.5], [4.0], [-2.0]]
    assert rewards == [1.5, 4.0, -2.0]


def test_reuse_hands_out_one_array_that_a_reset_writes_into():
    environment = build_env(PropConfig(id="reuse", length=1), EnvContext("sampler", 0, 1))
    environment.reset(0, 0)
    step = environment.step(np.zeros(1, np.int64))
    assert step.final_obs is step.obs
    assert step.obs.tolist() == [[1.0]]
    environment.reset(0, 1)
    assert step.obs.tolist() == [[0.0]]


def test_bad_goes_wrong_at_its_step_and_stays_so():
    with pytest.raises(RuntimeError, match="step 2 of a bad environment"):
        play("bad", [0, 0], mode="raise", at=2)
    rewards = [s[1] for s in play("bad", [0] * 4, mode="nan_reward", at=3)[1]]
    assert np.isnan(rewards).tolist() == [False, False, True, True]
    steps = play("bad", [0] * 3, mode="nan_obs", at=2)[1]
    assert [bool(np.isnan(s[0][0])) for s in steps] == [False, True, True]
    assert [s[1] for s in steps] == [1.0, 1.0, 1.0]


def test_bad_counts_the_steps_of_its_life_over_episodes():
    single = build_single(PropConfig(id="bad", mode="raise", at=3, length=2))
    for _ in range(2):
        single.reset(0)
        single.step(np.array(0))
    with pytest.raises(RuntimeError, match="step 3"):
        single.step(np.array(0))


def test_sleepy_sleeps():
    began = time.perf_counter()
    play("sleepy", [0] * 5, ms=10.0)
    assert time.perf_counter() - began >= 0.05


@pytest.mark.parametrize("identifier", sorted(ENVIRONMENTS))
def test_every_environment_is_a_valid_backend_environment(identifier):
    """Both sides are checked by the fakes: shapes, dtypes, ranges, resets when they are due."""
    config = PropConfig(id=identifier, **({"at": 1000} if identifier == "bad" else {}))
    spec = PROPS.get_env_spec(config)
    assert spec.id == identifier
    environment = RecordingEnvironment(PROPS.build_env(config, EnvContext("evaluator", 0, 2)), spec)
    policy, streams, rng = FakePolicy(spec, 2), FakeStreams(), np.random.default_rng(0)
    obs = observations.reset_all(environment, lambda i: streams.episode_seed(i, 0))

    for _ in range(60):
        action = policy.sample_action(obs, ActContext(rng, 0, 0.0, np.zeros(2, np.bool_))).action
        step = environment.step(action)
        obs = observations.copy(step.obs)
        for i in np.flatnonzero(step.terminated | step.truncated).tolist():
            observations.write(obs, i, environment.reset(i, streams.episode_seed(i, 1)))
    environment.close()
    assert len(environment.resets) > 2


def test_the_descriptor_resolves():
    assert load_object(BACKEND.config) is PropConfig
    assert load_object(BACKEND.backend) is PROPS


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"id": "probe_p9"}, "no testing environment 'probe_p9'; there are probe_p1, "),
        ({"id": "probe_p4", "length": 3}, "probe_p4 does not take length .it takes no key but id."),
        ({"id": "count", "mode": "raise"}, "count does not take mode .it takes length."),
        ({"id": "box", "low": 2.0, "high": 1.0}, "low .2.0. must be less than high .1.0."),
        ({"id": "bad", "mode": "explode"}, "mode"),
        ({"id": "count", "length": 0}, "length"),
        ({"id": "sleepy", "ms": -1.0}, "ms"),
        ({"id": "count", "size": 1}, "size"),
    ],
)
def test_a_mistaken_configuration_is_refused(values, message):
    with pytest.raises(ValidationError, match=message):
        PropConfig(**values)


def test_an_inline_environment_is_not_stepped_before_a_due_reset():
    environment = InlineEnvironment([Count(1), Count(5)])
    with pytest.raises(RuntimeError, match=r"sub-environments \[0, 1\] need a reset first"):
        environment.step(np.zeros(2, np.int64))
    for i in range(2):
        environment.reset(i, 0)
    environment.step(np.zeros(2, np.int64))
    with pytest.raises(RuntimeError, match=r"sub-environments \[0\] need"):
        environment.step(np.zeros(2, np.int64))


def test_kinds_of_action():
    assert get_env_spec(PropConfig(id="probe_p1")).action == DiscreteAction(1)
    assert get_env_spec(PropConfig(id="probe_p5")).action == DiscreteAction(2)
    assert get_env_spec(PropConfig(id="box", high=7.0)).action == ContinuousAction((-1.0,), (7.0,))
