"""What a lost life means, frame by frame, on a game that is written down: no emulator is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium
import pytest
from gymnasium import spaces

from omnirl.envs.gymnasium import atari, wrappers
from omnirl.envs.gymnasium.atari import Lives
from omnirl.envs.gymnasium.wrapper_config import Atari, AtariEntry

NOOP, FIRE, LEFT = 0, 1, 2


class Game(gymnasium.Env[Any, Any]):
    """Step k shows k, pays 10 ** k and leaves ``lives[k]``; over after the last. ``played`` notes what was done."""

    observation_space = spaces.Discrete(100)
    action_space = spaces.Discrete(3)

    def __init__(self, *lives: int, meanings: tuple[str, ...] = ("NOOP", "FIRE", "LEFT")) -> None:
        self.lives, self.meanings = lives, meanings
        self.played: list[int | str] = []
        self.k = 0

    def get_action_meanings(self) -> tuple[str, ...]:
        return self.meanings

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        self.k = 0
        self.played.append(f"reset {seed}")
        return 0, {"lives": self.lives[0]}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.k += 1
        self.played.append(action)
        over = self.k == len(self.lives) - 1
        return self.k, 10.0**self.k, over, False, {"lives": self.lives[self.k]}


def stepped(env: Lives) -> tuple[int, float, bool, bool]:
    """What a step to the left shows and pays, whether it ends the episode, and whether the game goes on."""
    observation, reward, terminated, truncated, _ = env.step(LEFT)
    assert not truncated
    return observation, reward, terminated, env.continues


def test_a_lost_life_ends_the_episode_and_the_next_reset_goes_on_with_a_frame_of_the_new_life() -> None:
    game = Game(3, 3, 2, 2, 2, 0)
    env = Lives(game, end_episode=True, fire=False)
    assert env.reset(seed=7)[0] == 0
    assert [stepped(env), stepped(env)] == [(1, 10.0, False, False), (2, 100.0, True, True)]
    assert env.reset(seed=8)[0] == 3
    assert not env.continues
    assert [stepped(env), stepped(env)] == [(4, 10.0**4, False, False), (5, 10.0**5, True, False)]
    assert env.reset(seed=9)[0] == 0
    assert game.played == ["reset 7", LEFT, LEFT, NOOP, LEFT, LEFT, "reset 9"]


def test_no_lives_shown_for_a_while_are_no_lost_life() -> None:
    env = Lives(Game(3, 0, 3, 3), end_episode=True, fire=False)
    env.reset()
    assert [stepped(env)[2:], stepped(env)[2:], stepped(env)[2:]] == [
        (False, False),
        (False, False),
        (True, False),
    ]


def test_a_game_that_is_over_with_the_first_frame_of_a_life_begins_anew() -> None:
    game = Game(2, 1, 0)
    env = Lives(game, end_episode=True, fire=False)
    env.reset(seed=1)
    assert stepped(env)[2:] == (True, True)
    assert env.reset(seed=2)[0] == 0
    assert game.played == ["reset 1", LEFT, NOOP, "reset 2"]
    assert not env.continues


def test_fire_is_pressed_at_each_life_and_what_it_pays_is_paid() -> None:
    game = Game(3, 3, 3, 2, 2, 2)
    env = Lives(game, end_episode=False, fire=True)
    assert env.reset(seed=1)[0] == 1
    assert [stepped(env), stepped(env)] == [(2, 100.0, False, False), (4, 1000.0 + 10000.0, False, False)]
    assert game.played == ["reset 1", FIRE, LEFT, LEFT, FIRE]


def test_fire_is_pressed_in_the_frame_of_the_new_life() -> None:
    game = Game(3, 3, 2, 2, 2)
    env = Lives(game, end_episode=True, fire=True)
    env.reset(seed=1)
    assert stepped(env)[2:] == (True, True)
    assert env.reset(seed=2)[0] == 3
    assert game.played == ["reset 1", FIRE, LEFT, FIRE]


def test_a_game_without_fire_is_left_alone() -> None:
    game = Game(3, 3, 2, 2, meanings=("NOOP", "UP", "LEFT"))
    env = Lives(game, end_episode=False, fire=True)
    env.reset(seed=1)
    stepped(env)
    stepped(env)
    assert game.played == ["reset 1", LEFT, LEFT]


def test_each_parameter_of_the_preprocessing_goes_where_it_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def preprocessing(env: Any, **parameters: Any) -> Any:
        given.update(parameters)
        return env

    monkeypatch.setattr(atari, "AtariPreprocessing", preprocessing)
    parameters = Atari(noop_max=7, frame_skip=2, screen_size=40, grey=False)
    atari.preprocess(Game(3, 3), parameters, 0.0, training=True)
    assert given == {"noop_max": 7, "frame_skip": 2, "screen_size": 40, "grayscale_obs": False}
    game = {"frameskip": 1, "obs_type": "rgb", "repeat_action_probability": 0.0}
    assert atari.arguments(parameters) == game


@pytest.mark.parametrize(
    ("clipped", "training", "reward"), [(True, True, 1.0), (True, False, 10.0), (False, True, 10.0)]
)
def test_rewards_are_clipped_in_training_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, clipped: bool, training: bool, reward: float
) -> None:
    monkeypatch.setattr(wrappers, "preprocess", lambda env, *_: env)
    game = Game(3, 3, 3)
    game.spec = SimpleNamespace(entry_point="ale_py.env:AtariEnv")  # type: ignore[assignment]
    entry = AtariEntry.model_validate({"atari": {"clip_reward": clipped}})
    env = wrappers.wrap(game, (entry,), training)
    env.reset()
    assert env.step(LEFT)[1] == reward
