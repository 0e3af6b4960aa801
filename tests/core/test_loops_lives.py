"""Ends at which the game goes on: a lost life is an episode's end, and yet nothing begins anew."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.api import DiscreteAction, Step
from omnirl.loops.collection import collect_loop
from omnirl.testing.fakes import FakePolicy, FakeStreams, vector_spec

LIVES = 2
SPEC = vector_spec(3, DiscreteAction(2))


class Games:
    """Game b loses a life every ``length[b]`` steps and is over with its second. obs = [seed, step of the game, sum of
    actions], so that it tells whether a game was really repeated."""

    seedable = True

    def __init__(self, *lengths: int, forgets: bool = False) -> None:
        self.num_envs, self._lengths, self._forgets = len(lengths), lengths, forgets
        self._obs = np.zeros((self.num_envs, 3), np.float32)
        self._goes_on = [False] * self.num_envs
        self.begun: list[tuple[int, int]] = []

    def continues(self, index: int) -> bool:
        return self._goes_on[index]

    def reset(self, index: int, seed: int) -> np.ndarray:
        if not self._goes_on[index]:
            self._obs[index] = [seed % 1000, 0, 0]
            self.begun.append((index, seed))
        self._goes_on[index] = False
        return self._obs[index].copy()

    def step(self, action: np.ndarray) -> Step:
        self._obs += np.stack([np.zeros(len(action)), np.ones(len(action)), action], axis=1).astype(
            np.float32
        )
        if self._forgets:
            self._obs[:, 2] += len(self.begun)  # repeats nothing
        lost = np.array([k % length == 0 for k, length in zip(self._obs[:, 1], self._lengths, strict=True)])
        over = np.array(
            [k >= LIVES * length for k, length in zip(self._obs[:, 1], self._lengths, strict=True)]
        )
        self._goes_on = (lost & ~over).tolist()
        obs = self._obs.copy()
        return Step(obs, np.ones(len(obs), np.float32), lost, np.zeros(len(obs), bool), obs)

    def close(self) -> None:
        pass


def collector(games: Games, length: int):
    return collect_loop(games, FakePolicy(SPEC, games.num_envs), length, FakeStreams())


def test_a_life_ends_the_episode_but_the_observations_go_on() -> None:
    games = Games(2)
    rollout = collector(games, 9).collect(0, 0)
    assert rollout.terminated[:, 0].tolist() == [False, True] * 4 + [False]
    assert rollout.first[:, 0].tolist() == [True, False] * 5
    # Steps of the game: 2 lives of 2 steps, then the next game begins at 0.
    assert np.asarray(rollout.obs)[:, 0, 1].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert np.asarray(rollout.final_obs)[:, 1].tolist() == [2, 4, 2, 4]
    # A seed per game, not per life: episodes 0, 1 and 2 of the sub-environment.
    assert games.begun == [(0, FakeStreams().episode_seed(0, k)) for k in range(3)]


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_game_with_lives_is_repeated_exactly(length: int, cut: int) -> None:
    whole = collector(Games(2, 3, 7), length)
    expected = [whole.collect(0, 0) for _ in range(6)]
    before = collector(Games(2, 3, 7), length)
    for _ in range(cut):
        before.collect(0, 0)
    after = collector(Games(2, 3, 7), length)
    assert after.load_state_dict(before.state_dict()) is True
    for rollout in expected[cut:]:
        again = after.collect(0, 0)
        for name in ("obs", "first", "action", "terminated", "final_obs", "final_at"):
            np.testing.assert_array_equal(getattr(again, name), getattr(rollout, name), err_msg=name)


def test_a_game_that_does_not_repeat_is_told() -> None:
    before = collector(Games(2, 3, forgets=True), 5)
    for _ in range(3):
        before.collect(0, 0)
    after = collector(Games(2, 3, forgets=True), 5)
    assert after.load_state_dict(before.state_dict()) is False
