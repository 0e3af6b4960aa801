"""Stacks of frames: what policies see, what rollouts keep and give back, and that a restart knows them too."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from omnirl.api import ArraySpec, DictSpec, DiscreteAction, EnvSpec, Step
from omnirl.loops.collection import collect_loop
from omnirl.loops.evaluation import evaluation_loop
from omnirl.loops.frame_stacks import FrameStacks, frame_stacks
from omnirl.testing import trees
from omnirl.testing.chains import Count
from omnirl.testing.fakes import FakePolicy, FakeStreams
from omnirl.testing.inline import InlineEnvironment
from omnirl.testing.noise import Noise, NoiseEnvironment

COUNT = ArraySpec((1,), frame_stack=3)
IMAGE = ArraySpec((2, 3, 4), "uint8", "image", frame_stack=4)


class Watching(FakePolicy):
    """Keeps a copy of every observation."""

    def __init__(self, spec, num_envs):
        super().__init__(spec, num_envs)
        self.seen = []

    def choose_action(self, obs, act):
        self.seen.append(trees.copied(obs))
        return super().choose_action(obs, act)

    def sample_action(self, obs, act):
        self.seen.append(trees.copied(obs))
        return super().sample_action(obs, act)


class Slow:
    """The obvious way: a deque per sub-environment, filled with the first frame at every reset."""

    def __init__(self, environment, k):
        self.environment, self.k = environment, k
        self.frames = [deque(maxlen=k) for _ in range(environment.num_envs)]
        self.finals = []

    def reset(self, index, seed):
        frame = np.array(self.environment.reset(index, seed))
        self.frames[index].extend([frame] * self.k)
        return frame

    def step(self, action):
        step = self.environment.step(action)
        for index, frames in enumerate(self.frames):
            frames.append(np.array(step.obs[index]))
            if step.terminated[index] or step.truncated[index]:
                self.finals.append(self.stack(index, np.array(step.final_obs[index])))
        return step

    def stack(self, index, newest):
        return np.concatenate([*list(self.frames[index])[:-1], newest])

    def now(self):
        return np.stack([np.concatenate(frames) for frames in self.frames])


def count_collector(length, observation=COUNT, lengths=(3,)):
    spec = EnvSpec(observation, DiscreteAction(2))
    environment = InlineEnvironment([Count(n, reuse=True) for n in lengths], reuse=True)
    policy = Watching(spec, len(lengths))
    return collect_loop(environment, policy, length, FakeStreams(), observation), policy


def test_stacks_by_hand():
    """Episodes of the observations 0, 1, 2 and the final 3; rollouts of four steps."""
    loop, policy = count_collector(4)
    one, two = loop.collect(0, 0), loop.collect(0, 4)
    assert one.obs.shape == (2 + 5, 1, 1)
    assert one.observations()[:, 0].tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [0, 0, 0], [0, 0, 1]]
    assert one.next_obs()[:, 0].tolist() == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [0, 0, 1]]
    assert one.final_observations().tolist() == [[1, 2, 3]]
    # The second begins in the middle of an episode: its lead-in holds the frames before.
    assert two.obs[:, 0, 0].tolist() == [0, 0, 1, 2, 0, 1, 2]
    assert two.observations()[:, 0].tolist() == [[0, 0, 1], [0, 1, 2], [0, 0, 0], [0, 0, 1], [0, 1, 2]]
    assert two.next_obs()[:, 0].tolist() == [[0, 1, 2], [1, 2, 3], [0, 0, 1], [0, 1, 2]]
    seen = np.concatenate(policy.seen).tolist()
    assert seen == [*one.observations()[:-1, 0].tolist(), *two.observations()[:-1, 0].tolist()]


def test_an_end_in_the_first_step_of_a_rollout_reaches_back_into_the_lead_in():
    loop, _ = count_collector(2)
    loop.collect(0, 0)
    rollout = loop.collect(0, 2)  # begins with the observation 2; the episode ends with 3
    assert rollout.final_observations().tolist() == [[1, 2, 3]]
    assert rollout.next_obs()[:, 0].tolist() == [[1, 2, 3], [0, 0, 1]]


@pytest.mark.parametrize("length", [1, 2, 5, 9])
def test_rollouts_give_what_the_slow_way_gives(length):
    """Random pictures, episodes of a few steps, three sub-environments: policy, rows, next and final ones."""
    spec = EnvSpec(IMAGE, DiscreteAction(3))
    noise = Noise(terminates=0.2, truncates=0.2)
    slow = Slow(NoiseEnvironment(spec, 3, noise), 4)
    policy = Watching(spec, 3)
    loop = collect_loop(NoiseEnvironment(spec, 3, noise), policy, length, FakeStreams(), IMAGE)
    rollouts = [loop.collect(0, i) for i in range(40 // length)]

    episodes = [0, 0, 0]
    for i in range(3):
        slow.reset(i, 1000 * i)
    for rollout in rollouts:
        slow.finals = []
        for t in range(length):
            np.testing.assert_array_equal(rollout.observations()[t], slow.now())
            np.testing.assert_array_equal(policy.seen.pop(0), slow.now())
            finals = len(slow.finals)
            step = slow.step(rollout.action[t])
            expected = slow.now()
            ended = np.flatnonzero(step.terminated | step.truncated)
            for i, final in zip(ended, slow.finals[finals:], strict=True):
                expected[i] = final
            np.testing.assert_array_equal(rollout.next_obs()[t], expected)
            for i in ended:
                episodes[i] += 1
                slow.reset(i, 1000 * i + episodes[i])
        np.testing.assert_array_equal(rollout.observations()[-1], slow.now())
        if slow.finals:
            np.testing.assert_array_equal(rollout.final_observations(), np.stack(slow.finals))
    assert sum(len(rollout.final_at) for rollout in rollouts) > 10


def test_single_frames_are_kept_once_and_in_their_dtype():
    spec = EnvSpec(IMAGE, DiscreteAction(3))
    environment = NoiseEnvironment(spec, 2, Noise())
    rollout = collect_loop(environment, FakePolicy(spec, 2), 16, FakeStreams(), IMAGE).collect(0, 0)
    assert rollout.obs.dtype == np.uint8
    assert rollout.obs.nbytes == (3 + 17) * 2 * (2 * 3 * 4)


def test_each_entry_of_a_mapping_has_its_own_stack():
    observation = DictSpec((("camera", IMAGE), ("speed", ArraySpec((2,)))))
    spec = EnvSpec(observation, DiscreteAction(3))
    policy = Watching(spec, 2)  # checks the shapes
    loop = collect_loop(
        NoiseEnvironment(spec, 2, Noise(terminates=0.3)), policy, 6, FakeStreams(), observation
    )
    rollout = loop.collect(0, 0)
    assert rollout.obs["camera"].shape == (3 + 7, 2, 2, 3, 4)
    assert rollout.obs["speed"].shape == (7, 2, 2)
    for name, rows in rollout.observations().items():
        np.testing.assert_array_equal(rows[:-1], np.stack([seen[name] for seen in policy.seen]))
    assert rollout.next_obs()["camera"].shape == (6, 2, 8, 3, 4)


def test_a_restart_in_the_middle_of_episodes_has_the_same_stacks():
    """Sub-environments are at different steps of their episodes; one has just begun."""
    loop, policy = count_collector(4, lengths=(3, 4, 9))
    loop.collect(0, 0)
    state = trees.through_a_checkpoint(dict(loop.state_dict()))
    before = len(policy.seen)
    expected = loop.collect(0, 12)
    restored, again = count_collector(4, lengths=(3, 4, 9))
    assert restored.load_state_dict(state)
    found = restored.collect(0, 12)
    np.testing.assert_array_equal(found.obs, expected.obs)
    np.testing.assert_array_equal(found.first, expected.first)
    trees.assert_same(again.seen, policy.seen[before:], "after the restart, what the policy saw")
    assert expected.observations()[0, :, :].tolist() == [[0, 0, 1], [0, 0, 0], [2, 3, 4]]


def test_an_episode_that_does_not_repeat_begins_anew_with_a_full_stack():
    loop, _ = count_collector(4, lengths=(9,))
    loop.collect(0, 0)
    state = {**loop.state_dict(), "digests": np.zeros((1, 32), np.uint8)}
    restored, _ = count_collector(4, lengths=(9,))
    assert not restored.load_state_dict(state)
    assert restored.collect(0, 4).observations()[:2, 0].tolist() == [[0, 0, 0], [0, 0, 1]]


def test_evaluation_acts_on_stacks():
    spec = EnvSpec(COUNT, DiscreteAction(2))
    policy = Watching(spec, 2)
    environment = InlineEnvironment([Count(2, reuse=True), Count(3, reuse=True)], reuse=True)
    episodes = evaluation_loop(environment, policy, 3, FakeStreams(), COUNT)
    assert [episode.length for episode in episodes] == [2, 3, 3]
    first, second = zip(*(seen.tolist() for seen in policy.seen), strict=True)
    assert list(first)[:4] == [[0, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 1]]
    assert list(second)[:4] == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [0, 0, 0]]


def test_frames_of_another_shape_are_refused():
    stacks = FrameStacks(COUNT, 2)
    for broken in (lambda: stacks.push(np.zeros((2, 2))), lambda: stacks.begin(0, np.zeros(()))):
        with pytest.raises(ValueError, match=r"frames of shape \(.*\) came where \(.*\) are stacked"):
            broken()


def test_nothing_is_stacked_without_need():
    assert frame_stacks(None, 2) is None
    assert frame_stacks(replace(COUNT, frame_stack=1), 2) is None
    assert frame_stacks(DictSpec((("a", ArraySpec((1,))),)), 2) is None


def test_a_stack_needs_an_axis():
    assert ArraySpec((3, 84, 84), "uint8", "image", 4).stacked() == ArraySpec((12, 84, 84), "uint8", "image")
    with pytest.raises(ValueError, match="frame_stack 2 does not fit the shape"):
        ArraySpec((), frame_stack=2)
    with pytest.raises(ValueError, match="frame_stack 0"):
        ArraySpec((1,), frame_stack=0)


def test_the_environment_may_reuse_what_it_hands_out():
    """K03 with stacks: every row of the step is written over while the loop still needs it."""

    class Reusing(NoiseEnvironment):
        def __init__(self, spec, num_envs, noise):
            super().__init__(spec, num_envs, noise)
            self.arrays = None

        def reset(self, index, seed):
            row = super().reset(index, seed)
            if self.arrays is not None:
                self.arrays.obs[:] = 77  # all that was handed out is gone
            return row

        def step(self, action):
            step = super().step(action)
            self.arrays = Step(step.obs, step.reward, step.terminated, step.truncated, step.obs.copy())
            return self.arrays

    class Plain(NoiseEnvironment):
        def step(self, action):
            step = super().step(action)
            return Step(step.obs, step.reward, step.terminated, step.truncated, step.obs.copy())

    spec = EnvSpec(IMAGE, DiscreteAction(3))
    rollouts = [
        collect_loop(
            kind(spec, 3, Noise(terminates=0.3)), FakePolicy(spec, 3), 9, FakeStreams(), IMAGE
        ).collect(0, 0)
        for kind in (Plain, Reusing)
    ]
    trees.assert_same(rollouts[1].next_obs(), rollouts[0].next_obs(), "the reusing environment's next_obs")
    trees.assert_same(rollouts[1].observations()[:-1], rollouts[0].observations()[:-1], "its observations")
