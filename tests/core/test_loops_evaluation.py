"""Evaluation: quotas fixed in advance, deterministic actions, exact sums; and the figures made of them."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.api import DiscreteAction, EnvSpec, Episode
from omnirl.loops.aggregate import aggregate
from omnirl.loops.evaluation import evaluation_loop, quotas
from omnirl.testing.chains import Chain, Count
from omnirl.testing.fakes import FakePolicy, FakeStreams, RecordingEnvironment, vector_spec
from omnirl.testing.inline import InlineEnvironment

SPEC = vector_spec(1, DiscreteAction(2))


def evaluate(singles, episodes, *, spec=SPEC, policy=None, streams=None, reuse=False):
    environment = RecordingEnvironment(InlineEnvironment(singles, reuse=reuse), spec)
    policy = policy or FakePolicy(spec, len(singles))
    return evaluation_loop(environment, policy, episodes, streams or FakeStreams()), environment


@pytest.mark.parametrize("reuse", [False, True])
def test_k27_short_episodes_do_not_crowd_out_long_ones(reuse):
    singles = [Count(1, reward=0.0, reuse=reuse), Count(10, reward=1.0, reuse=reuse)]
    episodes, _ = evaluate(singles, 4, reuse=reuse)
    assert [(e.total_reward, e.length) for e in episodes] == [(0.0, 1), (0.0, 1), (10.0, 10), (10.0, 10)]
    assert aggregate(episodes)["return_mean"] == 5.0


def test_k27_five_episodes_over_two_environments_are_two_and_three():
    episodes, _ = evaluate([Count(1, reward=0.0), Count(10)], 5)
    assert [e.length for e in episodes] == [1, 1, 10, 10, 10]


@pytest.mark.parametrize(
    ("episodes", "envs", "expected"),
    [(5, 2, [2, 3]), (4, 2, [2, 2]), (1, 3, [0, 0, 1]), (10, 1, [10]), (7, 4, [1, 2, 2, 2])],
)
def test_quotas(episodes, envs, expected):
    assert quotas(episodes, envs).tolist() == expected


def test_more_environments_than_episodes_still_play_the_right_number():
    episodes, _ = evaluate([Count(2), Count(3), Count(4)], 1)
    assert [e.length for e in episodes] == [4]


def test_episodes_have_seeds_of_their_own():
    _, environment = evaluate([Count(2), Count(3)], 4)
    assert [reset for reset in environment.resets if reset[0] == 0][:2] == [(0, 0), (0, 1)]
    assert [reset for reset in environment.resets if reset[0] == 1][:2] == [(1, 1000), (1, 1001)]


def test_it_acts_deterministically_and_repeats():
    spec = vector_spec(5, DiscreteAction(2))
    policy = FakePolicy(spec, 3)
    first, environment = evaluate([Chain() for _ in range(3)], 9, spec=spec, policy=policy)
    assert policy.calls == 0  # sample_action was never asked
    assert all((action == 0).all() for action in environment.actions)
    second, _ = evaluate([Chain() for _ in range(3)], 9, spec=spec)
    assert first == second


def test_the_policy_sees_the_first_rows_of_episodes_marked():
    class Watching(FakePolicy):
        def choose_action(self, obs, act):
            self.contexts.append(act)
            assert ((obs[:, 0] == 0) == act.first).all()
            return super().choose_action(obs, act)

    policy = Watching(SPEC, 2)
    evaluate([Count(2), Count(3)], 4, policy=policy)
    assert len(policy.contexts) == 6


def test_returns_are_summed_in_double_precision():
    # In float32, 16777216 + 1 is 16777216.
    class Big(Count):
        def step(self, action):
            obs, _, terminated, truncated = super().step(action)
            return obs, 16777216.0 if obs[0] == 1 else 1.0, terminated, truncated

    episodes, _ = evaluate([Big(5)], 1)
    assert episodes[0].total_reward == 16777220.0


@pytest.mark.parametrize("episodes", [0, -1])
def test_less_than_one_episode_is_refused(episodes):
    with pytest.raises(ValueError, match="num_episodes must be at least 1"):
        evaluate([Count(2)], episodes)


def test_aggregate_of_hand_computed_episodes():
    figures = aggregate([Episode(1.0, 10), Episode(3.0, 20), Episode(8.0, 60)])
    assert figures == {
        "return_mean": 4.0,
        "return_std": pytest.approx(np.sqrt(26 / 3)),  # deviations -3, -1, 4; divided by 3, not 2
        "return_min": 1.0,
        "return_max": 8.0,
        "length_mean": 30.0,
        "episodes": 3.0,
    }
    assert tuple(figures) == EnvSpec(SPEC.observation, SPEC.action).eval_metrics


def test_aggregate_averages_further_metrics_over_the_episodes_that_have_them():
    figures = aggregate(
        [Episode(0.0, 1, {"success": 1.0}), Episode(0.0, 1, {"success": 0.0, "laps": 3.0}), Episode(0.0, 1)]
    )
    assert (figures["success"], figures["laps"]) == (0.5, 3.0)


def test_aggregate_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no evaluation episode"):
        aggregate([])


class Measured(InlineEnvironment):
    """Tells of each episode how often its sub-environment was stepped in it, and which one it is."""

    def __init__(self, singles):
        super().__init__(singles)
        self.steps = np.zeros(len(singles), np.int64)

    def reset(self, index, seed):
        self.steps[index] = 0
        return super().reset(index, seed)

    def step(self, action):
        self.steps += 1
        return super().step(action)

    def episode_metrics(self, index):
        return {"steps": float(self.steps[index]), "index": float(index)}


def test_an_environments_own_figures_are_those_of_the_episode_that_ended():
    environment = Measured([Count(2), Count(3)])
    episodes = evaluation_loop(environment, FakePolicy(SPEC, 2), 4, FakeStreams())
    assert [episode.metrics for episode in episodes] == [{"steps": 2.0, "index": 0.0}] * 2 + [
        {"steps": 3.0, "index": 1.0}
    ] * 2
    figures = aggregate(episodes)
    assert (figures["steps"], figures["index"]) == (2.5, 0.5)


def test_an_environment_without_figures_has_none():
    episodes, _ = evaluate([Count(2)], 1)
    assert episodes[0].metrics == {}
