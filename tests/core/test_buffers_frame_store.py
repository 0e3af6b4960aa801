"""Replay of stacked images from single frames, against the slow and obvious way that keeps every stack."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from omnirl.api import ArraySpec, CheckpointError, Clock, DictSpec, DiscreteAction, EnvSpec, Step
from omnirl.buffers import frame_store
from omnirl.buffers.frame_store import frame_slots
from omnirl.buffers.lifetimes import Lifetimes
from omnirl.buffers.replay import ReplayMemory, ReplaySettings, reserved_bytes
from omnirl.loops.collection import collect_loop
from omnirl.testing import trees
from omnirl.testing.fakes import FakePolicy, FakeStreams
from omnirl.testing.noise import Noise, NoiseEnvironment

GAMMA = 0.9
ACTION = DiscreteAction(3)
SHAPE = (2, 2, 3)


def image(k):
    return ArraySpec(SHAPE, "uint8", "image", frame_stack=k)


class OwnStreams(FakeStreams):
    """Episodes that no other sampler has."""

    def episode_seed(self, index, episode):
        return 100_000 * (self._seed + 1) + super().episode_seed(index, episode)


class Sampler:
    """Rollouts whose actions are the ids of their transitions."""

    def __init__(self, index, spec, length, envs, noise=None):
        self.index, self.incarnation = index, 0
        env = EnvSpec(spec, ACTION)
        environment = NoiseEnvironment(env, envs, noise or Noise(terminates=0.15, truncates=0.15))
        self.loop = collect_loop(environment, FakePolicy(env, envs), length, OwnStreams(index), spec)

    def collect(self, ids):
        rollout = self.loop.collect(0, 0)
        action = np.arange(rollout.reward.size, dtype=np.int64).reshape(rollout.reward.shape) + next(ids)
        for _ in range(rollout.reward.size - 1):
            next(ids)
        return dataclasses.replace(rollout, action=action, sampler=self.index, incarnation=self.incarnation)


class SlowReplay:
    """Every transition as stacks of its own: lists of frames per episode, one step after the other."""

    def __init__(self, k, n):
        self.k, self.n = k, n
        self.frames = {}  # (sampler, b): the frames of the running episode
        self.waiting = {}  # (sampler, b): steps (id, obs, reward, next_obs, ended, terminated)
        self.streams = {}
        self.transitions = {}

    def stack(self, frames):
        padded = [frames[0]] * self.k + list(frames)
        return np.concatenate(padded[-self.k :])

    def add(self, rollout):
        key = rollout.sampler
        goes_on = self.streams.get(key) == (rollout.incarnation, rollout.number - 1)
        self.streams[key] = (rollout.incarnation, rollout.number)
        finals = {tuple(place): frame for place, frame in zip(rollout.final_at.tolist(), rollout.final_obs)}
        lead = self.k - 1
        for b in range(rollout.reward.shape[1]):
            if not goes_on:
                self.finish(self.waiting.pop((key, b), []), flush=True)
                self.frames[key, b] = [rollout.obs[row, b] for row in range(lead + 1)]
            waiting = self.waiting.setdefault((key, b), [])
            for t in range(len(rollout.reward)):
                frames = self.frames[key, b]
                if rollout.first[t, b]:
                    frames[:] = [rollout.obs[lead + t, b]]
                obs = self.stack(frames)
                ended = bool(rollout.terminated[t, b] or rollout.truncated[t, b])
                following = finals[t, b] if ended else rollout.obs[lead + t + 1, b]
                next_obs = self.stack([*frames, following])
                if not ended:
                    frames.append(following)
                elif not rollout.first[t + 1, b]:
                    raise AssertionError("an end without a beginning")
                else:
                    frames[:] = [rollout.obs[lead + t + 1, b]]
                step = (
                    rollout.action[t, b],
                    obs,
                    rollout.reward[t, b],
                    next_obs,
                    ended,
                    rollout.terminated[t, b],
                )
                waiting.append(step)
                self.finish(waiting, flush=False)

    def finish(self, waiting, flush):
        while waiting and (flush or waiting[-1][4] or len(waiting) >= self.n):
            window = waiting[: self.n]
            total = sum(GAMMA**i * float(step[2]) for i, step in enumerate(window))
            discount = 0.0 if window[-1][5] else GAMMA ** len(window)
            self.transitions[int(window[0][0])] = (window[0][1], total, window[-1][3], discount)
            waiting.pop(0)


def draws(memory, batches, start=0):
    for seed in range(start, start + batches):
        yield memory.next_batch(Clock(0, 0, 0.0, seed))


def compare(memory, slow, batches=200):
    """Every drawn transition is the slow one of its id; the ids that were drawn."""
    seen = set()
    for batch in draws(memory, batches):
        for i, identity in enumerate(batch.action.tolist()):
            obs, reward, next_obs, discount = slow.transitions[identity]
            np.testing.assert_array_equal(batch.obs[i], obs)
            np.testing.assert_array_equal(batch.next_obs[i], next_obs)
            assert batch.reward[i] == pytest.approx(reward, abs=1e-5)
            assert batch.discount[i] == pytest.approx(discount, abs=1e-6)
            seen.add(identity)
    return seen


def replay(k, n, capacity, batch_size=32):
    return ReplayMemory(image(k), ACTION, ReplaySettings(capacity, batch_size, n, GAMMA))


def counter():
    yield from range(10**9)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_transitions_are_those_of_the_slow_way(k, n):
    """Three samplers of two environments in any order, some rollouts lost, a sampler restarted."""
    memory, slow, ids = replay(k, n, capacity=2000), SlowReplay(k, n), counter()
    samplers = [Sampler(i, image(k), length, 2) for i, length in enumerate((4, 7, 1))]
    rng = np.random.default_rng(0)
    for turn in range(60):
        sampler = samplers[rng.integers(3)]
        rollout = sampler.collect(ids)
        if turn % 9 == 8:
            continue  # lost on the way
        if turn == 30:
            sampler.incarnation += 1
        memory.add(rollout, 0)
        slow.add(rollout)
    assert len(memory) == len(slow.transitions)
    assert compare(memory, slow) == set(slow.transitions)


@pytest.mark.parametrize("noise", [Noise(terminates=0.15), Noise(terminates=0.9), Noise(terminates=0.0)])
@pytest.mark.parametrize(("capacity", "room"), [(64, 4), (64, 60), (200, 40)])
def test_only_whole_transitions_are_left_when_frames_are_written_over(monkeypatch, capacity, room, noise):
    """Far more frames than there is room for; what is drawn is the newest, and right."""
    monkeypatch.setattr(frame_store, "frame_slots", lambda transitions: transitions + room)
    memory, slow, ids = replay(3, 2, capacity, batch_size=8), SlowReplay(3, 2), counter()
    samplers = [Sampler(i, image(3), 4, 2, noise) for i in range(2)]
    for turn in range(120):
        rollout = samplers[turn % 2].collect(ids)
        memory.add(rollout, 0)
        slow.add(rollout)
        if turn > 10:
            assert 8 <= len(memory) <= capacity
            compare(memory, slow, batches=1)
    seen = compare(memory, slow, batches=400)
    assert len(seen) == len(memory)
    assert seen <= set(sorted(slow.transitions)[-capacity - 16 :])
    if noise.terminates == 0.0 and room > 40:
        assert len(memory) == capacity
    if noise.terminates == 0.9:  # two frames per transition
        assert len(memory) < 0.7 * (capacity + room)


def test_a_sampler_that_fell_far_behind_begins_a_new_stream(monkeypatch):
    """Its waiting windows are lost, since their frames are; what follows is right."""
    monkeypatch.setattr(frame_store, "frame_slots", lambda transitions: transitions + 40)
    memory, slow, ids = replay(3, 2, 60, batch_size=8), SlowReplay(3, 2), counter()
    slowest, fast = Sampler(0, image(3), 4, 1), Sampler(1, image(3), 4, 2)
    for _ in range(3):
        for sampler in (slowest, *[fast] * 15):
            rollout = sampler.collect(ids)
            memory.add(rollout, 0)
            slow.add(rollout)
            if len(memory) >= 8:
                compare(memory, slow, batches=2)
    assert len(memory) == 60


@pytest.mark.parametrize("capacity", [100, 40, 250])
def test_it_goes_on_exactly_and_fits_other_capacities(capacity):
    memory, slow, ids = replay(4, 2, 100), SlowReplay(4, 2), counter()
    sampler = Sampler(0, image(4), 5, 2)
    for _ in range(150):
        rollout = sampler.collect(ids)
        memory.add(rollout, 0)
        slow.add(rollout)
    state = dict(memory.state_dict())
    trees.assert_plain(state, "the state")
    restored = replay(4, 2, capacity)
    restored.load_state_dict(trees.through_a_checkpoint(state))
    assert len(restored) == min(capacity, 100)
    compare(restored, slow, batches=5)
    for step in range(60):
        rollout = sampler.collect(ids)
        for one in (memory, restored):
            one.add(rollout, 0)
        slow.add(rollout)
        if capacity == 100:
            trees.assert_same(
                vars(next(draws(restored, 1, step))),
                vars(next(draws(memory, 1, step))),
                "after a restart, batches",
            )
    compare(restored, slow, batches=30)
    if capacity == 100:
        trees.assert_same(restored.state_dict(), memory.state_dict(), "after a restart, the state")


def test_loading_a_store_that_lost_frames_forgets_their_transitions(monkeypatch):
    memory, slow, ids = replay(2, 1, 100), SlowReplay(2, 1), counter()
    sampler = Sampler(0, image(2), 5, 2, Noise(terminates=1.0))
    for _ in range(30):
        rollout = sampler.collect(ids)
        memory.add(rollout, 0)
        slow.add(rollout)
    monkeypatch.setattr(frame_store, "frame_slots", lambda transitions: transitions)
    less = replay(2, 1, 100)
    less.load_state_dict(memory.state_dict())
    assert 40 <= len(less) <= 50
    assert len(compare(less, slow)) == len(less)


def test_frames_of_another_environment_are_refused():
    memory = replay(2, 1, 100)
    memory.add(Sampler(0, image(2), 5, 2).collect(counter()), 0)
    state = memory.state_dict()
    wider = ReplayMemory(ArraySpec((2, 2, 4), "uint8", "image", 2), ACTION, ReplaySettings(100, 1))
    with pytest.raises(CheckpointError, match="another environment's shapes"):
        wider.load_state_dict(state)


def test_an_episode_that_a_restart_could_not_repeat_is_not_joined_to_the_one_before():
    """The stream goes on by its numbers, but its first row is another frame: a new episode's."""
    memory, ids = replay(3, 1, 500, batch_size=8), counter()
    sampler = Sampler(0, image(3), 5, 1, Noise(terminates=0.0, truncates=0.0))
    memory.add(sampler.collect(ids), 0)
    rollout = sampler.collect(ids)
    fresh = np.random.default_rng(5).integers(0, 255, rollout.obs.shape).astype(np.uint8)
    fresh[:3] = fresh[0]
    first = rollout.first.copy()
    first[0] = True
    replaced = dataclasses.replace(rollout, obs=fresh, first=first)
    memory.add(replaced, 0)
    batches = list(draws(memory, 40))
    rows = {int(i): obs for batch in batches for i, obs in zip(batch.action, batch.obs)}
    np.testing.assert_array_equal(rows[5], np.concatenate([fresh[0, 0]] * 3))
    np.testing.assert_array_equal(rows[7], np.concatenate([fresh[2, 0], fresh[3, 0], fresh[4, 0]]))


def test_stacked_vectors_and_pictures_of_a_mapping():
    spec = DictSpec(
        (("camera", image(3)), ("speed", ArraySpec((2,))), ("past", ArraySpec((1,), frame_stack=2)))
    )
    env = EnvSpec(spec, ACTION)
    memory = ReplayMemory(spec, ACTION, ReplaySettings(200, 16, 2, GAMMA))
    plain = {}
    environment = NoiseEnvironment(env, 2, Noise(terminates=0.2))
    loop = collect_loop(environment, FakePolicy(env, 2), 6, FakeStreams(), spec)
    for turn in range(6):
        rollout = loop.collect(0, 0)
        ids = np.arange(12, dtype=np.int64).reshape(6, 2) + 12 * turn
        memory.add(dataclasses.replace(rollout, action=ids), 0)
        for name, rows in rollout.observations().items():
            for (t, b), identity in np.ndenumerate(ids):
                plain[name, int(identity)] = rows[t, b]
    for batch in draws(memory, 20):
        assert {name: array.dtype for name, array in batch.obs.items()} == {
            "camera": np.uint8,
            "speed": np.float32,
            "past": np.float32,
        }
        for i, identity in enumerate(batch.action.tolist()):
            for name, rows in batch.obs.items():
                np.testing.assert_array_equal(rows[i], plain[name, identity])
    assert batch.next_obs["camera"].shape == (16, 6, 2, 3)


def test_k03_the_final_observation_survives_an_environment_that_reuses_its_array():
    """One array for all that is handed out: what the last transition leads to is the final frame."""
    spec = EnvSpec(ArraySpec((1, 1, 1), "uint8", "image", frame_stack=2), DiscreteAction(2))

    class OneArray:
        num_envs, seedable = 1, True

        def __init__(self):
            self.array, self.t = np.zeros((1, 1, 1, 1), np.uint8), 0

        def reset(self, index, seed):
            self.t, self.array[:] = 0, 0
            return self.array[0]

        def step(self, action):
            self.t += 1
            self.array[:] = self.t
            ended = np.array([self.t == 3])
            return Step(self.array, np.ones(1, np.float32), np.zeros(1, bool), ended, self.array)

        def close(self):
            pass

    memory = ReplayMemory(spec.observation, spec.action, ReplaySettings(60, 30, 1, GAMMA))
    loop = collect_loop(OneArray(), FakePolicy(spec, 1), 6, FakeStreams(), spec.observation)
    for _ in range(10):
        memory.add(loop.collect(0, 0), 0)
    found = {
        (tuple(obs.ravel().tolist()), tuple(following.ravel().tolist()), float(np.float32(discount)))
        for batch in draws(memory, 10)
        for obs, following, discount in zip(batch.obs, batch.next_obs, batch.discount)
    }
    discount = float(np.float32(GAMMA))
    assert found == {((0, 0), (0, 1), discount), ((0, 1), (1, 2), discount), ((1, 2), (2, 3), discount)}


ATARI = ArraySpec((1, 84, 84), "uint8", "image", frame_stack=4)


def test_a_million_atari_transitions_cost_at_most_7_4_gigabytes():
    needed = reserved_bytes(ATARI, DiscreteAction(18), 1_000_000)
    assert 7_056_000_000 < needed <= 7_400_000_000


@pytest.mark.parametrize(
    "observation", [ATARI, ArraySpec((17,)), DictSpec((("a", ATARI), ("b", ArraySpec((3,)))))]
)
def test_what_is_reserved_is_what_is_said(observation):
    memory = ReplayMemory(observation, DiscreteAction(6), ReplaySettings(500, 1))
    arrays = [memory._rows]
    if memory._frames is not None:
        arrays += [*memory._frames._frames.values(), memory._lifetimes._oldest]
    assert sum(array.nbytes for array in arrays) == reserved_bytes(observation, DiscreteAction(6), 500)


def test_replay_keeps_uint8():
    """K24: 84 x 84 x 3 bytes per observation, whatever is done with it later."""
    observation = ArraySpec((3, 84, 84), "uint8", "image")
    memory = ReplayMemory(observation, DiscreteAction(2), ReplaySettings(2000, 1))
    (frames,) = memory._frames._frames.values()
    assert frames.dtype == np.uint8
    assert frames.nbytes == frame_slots(2000) * 84 * 84 * 3


def test_room_for_final_frames_is_at_most_a_fortieth_and_a_thousand():
    assert [frame_slots(n) for n in (40, 1_000_000)] == [40 + 1 + 1024, 1_026_024]


def test_lifetimes_by_hand():
    """A ring of 6: rows leave from the oldest on, and a late row takes along what was appended before it."""
    lives = Lifetimes(6)
    lives.append(np.arange(4), np.array([0, 2, 5, 9]), held=0)
    assert [lives.remaining(4, 4, oldest) for oldest in (0, 1, 2, 3, 6, 10)] == [4, 3, 3, 2, 1, 0]
    lives.append(np.array([4, 5, 0]), np.array([4, 8, 7]), held=3)  # 4 comes after 5 and 9
    assert [lives.remaining(1, 6, oldest) for oldest in (2, 3, 4, 5, 7, 8)] == [6, 5, 5, 2, 2, 0]
    lives.append(np.array([1]), np.array([1]), held=5)  # further back than all
    assert lives.remaining(2, 6, 1) == 6
    assert lives.remaining(2, 6, 2) == 0
