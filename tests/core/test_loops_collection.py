"""Collecting rollouts: what every cell holds, what the policy is told, and the hot path's copies."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.api import ActionSample, DiscreteAction, EnvContext, EnvSpec, Step
from omnirl.api.data import Array
from omnirl.loops.collection import collect_loop
from omnirl.testing.chains import Count
from omnirl.testing.environments import PropConfig, build_env, get_env_spec
from omnirl.testing.fakes import FakePolicy, FakeStreams, RecordingEnvironment, vector_spec
from omnirl.testing.inline import InlineEnvironment

SPEC = vector_spec(1, DiscreteAction(2))


class Scripted:
    """A vector environment that plays back a script of (obs, reward, terminated, truncated, final_obs)."""

    num_envs = 2
    seedable = True

    def __init__(self, steps, mapping=False):
        self.steps = list(steps)
        self.mapping = mapping

    def reset(self, index, seed):
        row = np.array([-1.0 - index], np.float32)
        return {"x": row, "a/b": np.array(seed)} if self.mapping else row

    def step(self, action):
        obs, reward, terminated, truncated, final = self.steps.pop(0)
        rows = [np.array(v, np.float32)[:, None] for v in (obs, final)]
        if self.mapping:
            rows = [{"x": row, "a/b": np.array([7, 8])} for row in rows]
        return Step(rows[0], np.array(reward, np.float32), np.array(terminated), np.array(truncated), rows[1])

    def close(self):
        pass


def collector(singles, length, reuse=False, streams=None, policy=None):
    environment = RecordingEnvironment(InlineEnvironment(singles, reuse=reuse), SPEC)
    policy = policy or FakePolicy(SPEC, environment.num_envs)
    return collect_loop(environment, policy, length, streams or FakeStreams()), environment, policy


@pytest.mark.parametrize("reuse", [False, True])
def test_every_cell_of_a_rollout_is_right(reuse):
    # Sub-environment 0 is truncated every 3 steps, 1 terminated every 2; T = 4.
    singles = [Count(3, reuse=reuse), Count(2, terminate=True, reuse=reuse, reward=0.5)]
    loop, environment, _ = collector(singles, 4, reuse)
    rollout = loop.collect(version=7, env_steps=80)

    assert rollout.obs[..., 0].T.tolist() == [[0, 1, 2, 0, 1], [0, 1, 0, 1, 0]]
    assert rollout.first.T.tolist() == [
        [True, False, False, True, False],
        [True, False, True, False, True],
    ]
    assert rollout.reward.T.tolist() == [[1, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]]
    assert rollout.truncated.T.tolist() == [[False, False, True, False], [False] * 4]
    assert rollout.terminated.T.tolist() == [[False] * 4, [False, True, False, True]]
    assert rollout.final_at.tolist() == [[1, 1], [2, 0], [3, 1]]
    assert rollout.final_obs[:, 0].tolist() == [2, 3, 2]
    # The final observations are where the episodes ended, never the first ones of the next.
    assert rollout.next_obs()[..., 0].T.tolist() == [[1, 2, 3, 1], [1, 2, 1, 2]]
    assert (rollout.number, rollout.version, rollout.env_steps, rollout.steps) == (0, 7, 80, 8)
    np.testing.assert_array_equal(rollout.action, np.stack(environment.actions))
    assert (rollout.obs.dtype, rollout.reward.dtype, rollout.action.dtype) == ("float32", "float32", "int64")
    for array in (rollout.obs, rollout.action, rollout.reward, rollout.final_obs, rollout.first):
        assert array.flags.c_contiguous
        assert array.base is None


def test_the_next_rollout_begins_where_the_last_one_ended_and_leaves_it_alone():
    loop, _, _ = collector([Count(3, reuse=True)], 4, reuse=True)
    first = loop.collect(0, 0)
    kept = first.obs.copy()
    second = loop.collect(1, 4)
    assert second.obs[:, 0, 0].tolist() == [1, 2, 0, 1, 2]
    assert second.first[:, 0].tolist() == [False, False, True, False, False]
    assert second.number == 1
    np.testing.assert_array_equal(first.obs, kept)


def test_an_end_in_the_last_step_makes_the_next_rollouts_first_row_first():
    loop, _, _ = collector([Count(2)], 2)
    assert loop.collect(0, 0).first[:, 0].tolist() == [True, False, True]
    assert loop.collect(0, 2).first[:, 0].tolist() == [True, False, True]


def test_terminated_wins_when_both_flags_are_set():
    steps = [([1, 2], [1, 1], [True, False], [True, True], [5, 6])]
    loop = collect_loop(Scripted(steps), FakePolicy(SPEC, 2), 1, FakeStreams())
    rollout = loop.collect(0, 0)
    assert rollout.terminated.tolist() == [[True, False]]
    assert rollout.truncated.tolist() == [[False, True]]
    assert rollout.final_obs[:, 0].tolist() == [5, 6]


def test_k03_bootstrap_of_a_reused_array_reads_the_final_observation():
    config = PropConfig(id="reuse", length=3)
    environment = build_env(config, EnvContext("sampler", 0, 1))
    loop = collect_loop(environment, FakePolicy(get_env_spec(config), 1), 3, FakeStreams())
    rollout = loop.collect(0, 0)
    third = float(rollout.next_obs()[2, 0, 0])
    assert third == 3.0
    value = {3.0: 10.0, 0.0: 0.0}
    assert float(rollout.reward[2, 0]) + 0.9 * value[third] == 10.0


def test_episodes_begin_from_their_own_seeds_when_they_are_due():
    streams = FakeStreams()
    loop, environment, _ = collector([Count(3), Count(2)], 4, streams=streams)
    assert environment.resets == []  # nothing before the first rollout
    loop.collect(0, 0)
    assert environment.resets == [(0, 0), (1, 1000), (1, 1001), (0, 1), (1, 1002)]


def test_the_policy_is_told_the_moment_of_every_row():
    loop, _, policy = collector([Count(2), Count(3)], 3, streams=FakeStreams(target_steps=40))
    policy.set_weights({"version": np.array(4)})
    rollout = loop.collect(4, 20)
    assert [act.env_steps for act in policy.contexts] == [20, 22, 24]
    assert [act.progress for act in policy.contexts] == [0.5, 0.55, 0.6]
    assert [act.first.tolist() for act in policy.contexts] == [[True, True], [False, False], [True, False]]
    assert rollout.extras["version"].tolist() == [[4, 4]] * 3
    # One generator per rollout, named by the rollout's number.
    assert len({id(act.rng) for act in policy.contexts}) == 1
    np.testing.assert_array_equal(rollout.action[0], np.random.default_rng([0, 0]).integers(0, 2, 2))
    np.testing.assert_array_equal(
        loop.collect(4, 26).action[0], np.random.default_rng([0, 1]).integers(0, 2, 2)
    )


def test_finish_is_called_once_per_rollout_with_the_actions():
    seen: list[set[str]] = []

    class Finishing(FakePolicy):
        def finish(self, extras: dict[str, Array]) -> dict[str, Array]:
            seen.append(set(extras))
            return {"doubled": 2 * extras["action"]}

    policy = Finishing(SPEC, 1)
    loop, environment, _ = collector([Count(5)], 4, policy=policy)
    rollout = loop.collect(0, 0)
    assert seen == [{"action", "version"}]
    assert set(rollout.extras) == {"doubled"}
    np.testing.assert_array_equal(rollout.extras["doubled"], 2 * np.stack(environment.actions))
    np.testing.assert_array_equal(rollout.action, np.stack(environment.actions))


@pytest.mark.parametrize("second", [{}, {"a": np.zeros(1), "b": np.zeros(1)}])
def test_extras_that_change_within_a_rollout_are_refused(second):
    class Changing(FakePolicy):
        def sample_action(self, obs, act):
            sample = super().sample_action(obs, act)
            return ActionSample(sample.action, {"a": np.zeros(1)} if self.calls == 1 else second)

    loop, _, _ = collector([Count(5)], 2, policy=Changing(SPEC, 1))
    with pytest.raises(ValueError, match="extras changed"):
        loop.collect(0, 0)


def test_extras_of_another_name_are_refused_by_name():
    class Renaming(FakePolicy):
        def sample_action(self, obs, act):
            sample = super().sample_action(obs, act)
            return ActionSample(sample.action, {"ab"[self.calls - 1]: np.zeros(1)})

    loop, _, _ = collector([Count(5)], 2, policy=Renaming(SPEC, 1))
    with pytest.raises(KeyError, match="b"):
        loop.collect(0, 0)


class MappingPolicy(FakePolicy):
    """Acts on a mapping of observations without checking it."""

    def sample_action(self, obs, act):
        assert set(obs) == {"x", "a/b"}
        return ActionSample(np.zeros(2, np.int64))


def test_a_mapping_of_observations_is_collected_entry_by_entry():
    steps = [
        ([1, 2], [0, 0], [False, True], [False, False], [0, 9]),
        ([3, 4], [0, 0], [False, False], [False, False], [0, 0]),
    ]
    loop = collect_loop(Scripted(steps, mapping=True), MappingPolicy(SPEC, 2), 2, FakeStreams())
    rollout = loop.collect(0, 0)
    assert rollout.obs["x"][..., 0].tolist() == [[-1, -2], [1, -2], [3, 4]]
    assert rollout.obs["a/b"].tolist() == [[0, 1000], [7, 1001], [7, 8]]
    assert rollout.final_obs["x"].tolist() == [[9]]
    assert rollout.final_obs["a/b"].tolist() == [8]
    assert rollout.next_obs()["x"][..., 0].tolist() == [[1, 9], [3, 4]]
    # Without an end there are no final observations, in the same shapes.
    loop = collect_loop(Scripted([steps[1]], mapping=True), MappingPolicy(SPEC, 2), 1, FakeStreams())
    empty = loop.collect(0, 0)
    assert (empty.final_obs["x"].shape, empty.final_obs["a/b"].shape) == ((0, 1), (0,))
    assert empty.final_at.shape == (0, 2)


def test_an_unroll_length_of_zero_is_refused():
    with pytest.raises(ValueError, match="unroll_length must be at least 1, not 0"):
        collect_loop(InlineEnvironment([Count()]), FakePolicy(SPEC, 1), 0, FakeStreams())


def test_what_the_environment_raises_passes_through():
    config = PropConfig(id="bad", mode="raise", at=3)
    spec: EnvSpec = get_env_spec(config)
    environment = build_env(config, EnvContext("sampler", 0, 2))
    loop = collect_loop(environment, FakePolicy(spec, 2), 8, FakeStreams())
    with pytest.raises(RuntimeError, match="step 3 of a bad environment"):
        loop.collect(0, 0)
