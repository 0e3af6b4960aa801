"""Atari: the preprocessing, lives that end training episodes but no games, and exact repetition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ale_py", reason="the extra atari is not installed")
pytest.importorskip("cv2", reason="the extra atari is not installed")

from omnirl.api.algorithm import ActContext
from omnirl.api.data import ActionSample
from omnirl.api.environment import EnvContext
from omnirl.api.errors import ConfigError
from omnirl.api.specs import ArraySpec, DiscreteAction
from omnirl.envs.gymnasium.backend import build_env, get_env_spec
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.making import make
from omnirl.loops.collection import collect_loop

FIRE, LIVES = 1, 5


def breakout(*wrappers: Any, **kwargs: Any) -> GymnasiumConfig:
    return GymnasiumConfig.model_validate(
        {"id": "ALE/Breakout-v5", "wrappers": list(wrappers), "kwargs": kwargs}
    )


def test_pong_needs_nothing_but_its_id() -> None:
    spec = get_env_spec(GymnasiumConfig(id="ALE/Pong-v5"))
    assert spec.observation == ArraySpec((3, 210, 160), "uint8", layout="image")
    assert spec.action == DiscreteAction(6)


def test_the_preprocessed_picture() -> None:
    assert get_env_spec(breakout("atari")).observation == ArraySpec((1, 84, 84), "uint8", layout="image")
    coloured = breakout({"atari": {"grey": False, "screen_size": 42}})
    assert get_env_spec(coloured).observation == ArraySpec((3, 42, 42), "uint8", layout="image")


def play(env: Any, steps: int, seed: int = 0) -> list[tuple[float, bool, bool, int, bool]]:
    """Random steps: (reward, terminated, truncated, lives, whether the game goes on); reset after each end."""
    rng = np.random.default_rng(seed)
    rows = []
    env.reset(seed=seed)
    for _ in range(steps):
        _, reward, terminated, truncated, info = env.step(int(rng.integers(4)))
        rows.append((float(reward), terminated, truncated, info["lives"], env.get_wrapper_attr("continues")))
        if terminated or truncated:
            env.reset(seed=seed)
    return rows


def test_a_lost_life_ends_the_episode_and_only_the_last_one_the_game() -> None:
    rows = play(make(breakout("atari"), training=True), 700)
    ends = [(lives, goes_on) for _, terminated, _, lives, goes_on in rows if terminated]
    assert ends[: LIVES + 1] == [(4, True), (3, True), (2, True), (1, True), (0, False), (4, True)]
    assert not any(truncated for _, _, truncated, _, _ in rows)


def test_in_evaluation_an_episode_is_a_whole_game_for_its_own_points() -> None:
    training, evaluation = (make(breakout("atari"), training=training) for training in (True, False))
    rows = play(evaluation, 700, seed=3)
    assert {lives for _, terminated, _, lives, _ in rows if terminated} == {0}
    # Rows of bricks further up pay 4 and 7; a sign is what training sees.
    assert {reward for reward, *_ in play(training, 700, seed=3)} == {0.0, 1.0}


def test_rewards_are_clipped_to_their_sign_in_training_only() -> None:
    config = GymnasiumConfig.model_validate({"id": "ALE/MsPacman-v5", "wrappers": ["atari"]})

    def seen(training: bool) -> set[float]:
        env = make(config, training=training)
        env.reset(seed=1)
        return {float(env.step(3)[1]) for _ in range(150)}

    assert seen(True) == {0.0, 1.0}
    assert max(seen(False)) >= 10


def test_life_loss_clipping_and_fire_can_be_turned_off() -> None:
    env = make(breakout({"atari": {"life_loss": False, "fire": False}}), training=True)
    env.reset(seed=0)
    # Nobody presses FIRE, so no ball ever moves and no life is lost.
    steps = [env.step(0) for _ in range(150)]
    assert [step[4]["lives"] for step in steps] == [LIVES] * 150


def test_fire_begins_every_life_in_evaluation_too() -> None:
    env = make(breakout("atari"), training=False)
    env.reset(seed=0)
    lives = [env.step(0)[4]["lives"] for _ in range(200)]
    assert lives[-1] <= 2  # without FIRE the second ball would never fall


def test_a_time_limit_of_the_game_is_a_truncation() -> None:
    env = make(breakout("atari", max_num_frames_per_episode=200), training=False)
    env.reset(seed=0)
    ends = [step[2:4] for step in (env.step(0) for _ in range(60)) if step[2] or step[3]]
    assert ends[0] == (False, True)


def test_a_game_repeats_exactly_from_its_seed_whatever_was_played_before() -> None:
    config = breakout("atari")  # with the sticky actions that v5 registers

    def screens(environment: Any, seed: int) -> bytes:
        rng = np.random.default_rng(5)
        rows = [environment.reset(0, seed).copy()]
        rows += [np.array(environment.step(rng.integers(4, size=1)).obs) for _ in range(40)]
        return b"".join(row.tobytes() for row in rows)

    fresh, used = (build_env(config, EnvContext("evaluator", 0, 1)) for _ in range(2))
    others = [screens(used, seed) for seed in (1, 2, 3)]
    assert len(set(others)) == 3
    assert screens(fresh, 4) == screens(used, 4)


class Streams:
    def policy(self, number: int) -> np.random.Generator:
        return np.random.default_rng(number)

    def episode_seed(self, index: int, episode: int) -> int:
        return 100 * index + episode

    def progress(self, env_steps: int) -> float:
        return 0.0


class RandomPolicy:
    def sample_action(self, obs: Any, act: ActContext) -> ActionSample:
        return ActionSample(act.rng.integers(4, size=len(obs)))

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Any) -> None:
        assert not state


def test_a_game_in_which_lives_were_lost_is_resumed_exactly() -> None:
    """The state is that of games, not of lives: their seeds, and the actions since they began."""

    def collector() -> Any:
        environment = build_env(breakout("atari"), EnvContext("sampler", 0, 2))
        return collect_loop(environment, RandomPolicy(), 75, Streams())  # type: ignore[arg-type]

    whole = collector()
    lost = whole.collect(0, 0).terminated
    for _ in range(20):  # until a life of a game that is still going on was lost
        state = whole.state_dict()
        ages = len(state["actions"]) - state["starts"]  # of the games, in steps
        if any(lost[-age:, index].any() for index, age in enumerate(ages.tolist()) if age):
            break
        lost = np.concatenate([lost, whole.collect(0, 0).terminated])
    else:
        pytest.fail("no life was lost")
    assert state["episodes"].max() < lost.sum(axis=0).max()
    resumed = collector()
    assert resumed.load_state_dict(state) is True
    left, right = whole.collect(0, 0), resumed.collect(0, 0)
    for name in ("obs", "first", "action", "reward", "terminated", "final_obs", "final_at"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name


def test_sticky_actions_are_as_likely_as_the_registration_or_the_arguments_say() -> None:
    def stickiness(config: GymnasiumConfig) -> float:
        env = make(config)
        try:
            return float(env.get_wrapper_attr("repeat_action_probability"))
        except AttributeError:
            return 0.0

    assert stickiness(breakout("atari")) == 0.25
    assert stickiness(breakout("atari", repeat_action_probability=0.1)) == 0.1
    assert stickiness(breakout("atari", repeat_action_probability=0.0)) == 0.0


def test_arguments_that_are_the_wrappers_own_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        make(breakout("atari", frameskip=4, obs_type="ram"))
    assert caught.value.lines == (
        "env.kwargs.frameskip: the atari wrapper skips frames itself: leave this out",
        "env.kwargs.obs_type: the atari wrapper reads the screen itself: leave this out",
    )


def test_the_preprocessing_comes_first() -> None:
    with pytest.raises(ConfigError, match=r"env.wrappers.1.atari: must be the first wrapper"):
        make(breakout({"crop": {"top": 10}}, "atari"))
