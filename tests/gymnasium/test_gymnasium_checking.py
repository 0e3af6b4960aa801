"""omnirl envs check on raw environments of Gymnasium: each mistake is found, named and mended in one line."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from omnirl.api.environment import EnvFinding
from omnirl.envs.gymnasium.backend import BACKEND
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.run import check_environment

OK = np.zeros(2, np.float32)


class Sound(gymnasium.Env[Any, Any]):
    """Nothing is wrong with it; episodes of 5 steps. A subclass does one thing wrong."""

    observation_space: Any = spaces.Box(-1, 1, (2,), np.float32)
    action_space: Any = spaces.Discrete(2)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        return self.observation(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.observation(), self.reward(), *self.ends(), self.told()

    def observation(self) -> Any:
        return OK.copy()

    def reward(self) -> Any:
        return 1.0

    def ends(self) -> tuple[Any, Any]:
        return self.steps >= 5, False

    def told(self) -> Any:
        return {}


def returning(method: str, value: Any) -> type[Sound]:
    """An environment whose ``method`` returns ``value``, from the third step on where that is a function of it."""

    def give(self: Sound) -> Any:
        return value(self) if callable(value) else value

    return type("Wrong", (Sound,), {method: give})


def at_step_3(wrong: Any, right: Any) -> Callable[[Sound], Any]:
    return lambda self: wrong if self.steps == 3 else right


@pytest.fixture
def found(register: Callable[..., str]) -> Callable[..., list[EnvFinding]]:
    """``found(environment, **keys)`` -> the findings in 20 steps; their texts are single lines."""

    def check(environment: Any, steps: int = 20, **keys: Any) -> list[EnvFinding]:
        assert BACKEND.check is not None
        findings = list(BACKEND.check(GymnasiumConfig(id=register(entry_point=environment), **keys), steps))
        for finding in findings:
            assert finding.text
            assert finding.remedy
            assert "\n" not in finding.text + finding.remedy
        return findings

    return check


def test_a_sound_one_has_no_findings(found: Any) -> None:
    assert found(Sound) == []


def test_stacked_frames_are_looked_at_singly() -> None:
    assert check_environment("CartPole-v1", overrides=["env.frame_stack=4"], steps=300).errors == ()


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1"])
def test_gymnasiums_own_have_no_findings(name: str) -> None:
    assert BACKEND.check is not None
    assert list(BACKEND.check(GymnasiumConfig(id=name), 300)) == []


IMAGE = {"observation_space": spaces.Box(0, 255, (8, 8, 3), np.uint8)}
DICT = {"observation_space": spaces.Dict(a=spaces.Box(-1, 1, (1,)), b=spaces.Discrete(3))}
TUPLE = {"observation_space": spaces.Tuple((spaces.Box(-1, 1, (1,)), spaces.Discrete(3)))}


@pytest.mark.parametrize(
    ("space", "value", "name", "severity", "text"),
    [
        (
            {},
            np.array([0, 3], np.float32),
            "outside",
            "error",
            "step 3: the observation[1] is 3, outside [-1, 1]",
        ),
        (
            {},
            np.array([0, 0.5]),
            "dtype",
            "warning",
            "step 3: the observation is float64, its space says float32",
        ),
        ({}, [0.0, 0.5], "dtype", "warning", "step 3: the observation is a list, not an array"),
        (
            {},
            np.array(["a", "b"]),
            "dtype",
            "error",
            "step 3: the observation is <U1, its space says float32",
        ),
        (
            {},
            np.zeros(3, np.float32),
            "shape",
            "error",
            "step 3: the observation has the shape [3], its space says [2]",
        ),
        ({}, np.array([0, np.nan], np.float32), "finite", "error", "step 3: the observation holds nan"),
        ({}, np.array([-np.inf, 0], np.float32), "finite", "error", "step 3: the observation holds -inf"),
        (
            IMAGE,
            np.zeros((8, 8, 3)),
            "dtype",
            "error",
            "step 3: the observation is float64, its space says uint8",
        ),
        (
            {"observation_space": spaces.Discrete(3)},
            3,
            "outside",
            "error",
            "step 3: the observation is 3, outside its space Discrete(3)",
        ),
        (
            DICT,
            {"a": OK[:1]},
            "entries",
            "error",
            "step 3: the observation has the entries a, its space a, b",
        ),
        (DICT, OK, "entries", "error", "step 3: the observation has a ndarray, its space a, b"),
        (
            DICT,
            {"a": OK[:1] + 2, "b": 0},
            "outside",
            "error",
            "step 3: the observation['a'][0] is 2, outside [-1, 1]",
        ),
        (TUPLE, (OK[:1],), "entries", "error", "step 3: the observation is a tuple, its space has 2 entries"),
        (
            TUPLE,
            (OK[:1], 7),
            "outside",
            "error",
            "step 3: the observation[1] is 7, outside its space Discrete(3)",
        ),
    ],
)
def test_observations_that_are_not_in_their_space(
    found: Any, space: dict[str, Any], value: Any, name: str, severity: str, text: str
) -> None:
    sample = (space.get("observation_space") or Sound.observation_space).sample
    wrong = returning("observation", lambda self: value if self.steps == 3 else sample())
    findings = found(type("Wrong", (wrong,), space))
    assert (findings[0].name, findings[0].severity, findings[0].text) == (name, severity, text)
    assert len(findings) == 1


def test_a_wrong_observation_at_the_reset_is_found_too(found: Any) -> None:
    (finding,) = found(returning("observation", lambda self: OK + 5 if self.steps == 0 else OK.copy()))
    assert finding.text == "the reset: the observation[0] is 5, outside [-1, 1]"
    (finding,) = found(
        returning("observation", lambda self: OK.astype(float) if self.steps == 5 else OK.copy())
    )
    assert finding.text == "step 5: the observation is float64, its space says float32"


def test_a_bound_of_another_precision_is_no_bound_exceeded(found: Any) -> None:
    space = spaces.Box(-0.1, 0.1, (2,), np.float32)
    wrong = returning("observation", np.full(2, 0.1))
    assert [finding.name for finding in found(type("Double", (wrong,), {"observation_space": space}))] == [
        "dtype"
    ]


@pytest.mark.parametrize("nested", [False, True])
def test_one_array_used_again_and_again(found: Any, nested: bool) -> None:
    class Reused(Sound):
        if nested:
            observation_space = spaces.Dict(a=Sound.observation_space)

        def __init__(self, render_mode: str | None = None) -> None:
            super().__init__(render_mode)
            self.buffer = np.zeros(2, np.float32)

        def observation(self) -> Any:
            self.buffer[:] = self.steps / 10
            return {"a": self.buffer} if nested else self.buffer

    (finding,) = found(Reused)
    assert (finding.name, finding.severity) == ("reused", "warning")
    assert finding.text.startswith("step 1 changed the observation that was returned before")
    assert finding.remedy.startswith("return a copy")


def test_one_array_that_never_changes_is_no_harm(found: Any) -> None:
    assert found(returning("observation", OK)) == []


@pytest.mark.parametrize(
    ("reward", "severity", "text"),
    [
        (np.ones(2), "error", "the reward is an array float64 [2], not one number"),
        ([1.0, 2.0], "error", "the reward is a list of 2 values, not one number"),
        (None, "error", "the reward is NoneType, not one number"),
        ("1.5x", "error", "the reward is str 1.5x, not one number"),
        (np.ones(1), "warning", "the reward is an array float64 [1], not a float"),
        (True, "warning", "the reward is bool True, not a float"),
    ],
)
def test_rewards_of_the_wrong_kind(found: Any, reward: Any, severity: str, text: str) -> None:
    (finding,) = found(returning("reward", at_step_3(reward, 0.0)))
    assert (finding.name, finding.severity, finding.text) == ("reward", severity, f"step 3: {text}")


@pytest.mark.parametrize("reward", [1, -2.5, np.float32(1), np.float64(1), np.int64(3)])
def test_numbers_of_all_kinds_are_rewards(found: Any, reward: Any) -> None:
    assert found(returning("reward", reward)) == []


def test_a_reward_that_is_not_finite(found: Any) -> None:
    (finding,) = found(returning("reward", at_step_3(math.inf, 0.0)))
    assert (finding.name, finding.text) == ("finite", "step 3: the reward is inf")


@pytest.mark.parametrize(
    ("ends", "name", "severity", "text"),
    [
        ((None, False), "terminated", "error", "step 3: terminated is NoneType, not a bool"),
        ((False, "no"), "truncated", "error", "step 3: truncated is str no, not a bool"),
        ((0, False), "terminated", "warning", "step 3: terminated is int 0, not a bool"),
        (
            (False, np.zeros(1)),
            "truncated",
            "warning",
            "step 3: truncated is an array float64 [1], not a bool",
        ),
        (
            (np.zeros(2), False),
            "terminated",
            "error",
            "step 3: terminated is an array float64 [2], not a bool",
        ),
    ],
)
def test_ends_that_are_no_bools(found: Any, ends: Any, name: str, severity: str, text: str) -> None:
    (finding,) = found(
        returning("ends", lambda self: ends if self.steps == 3 else (self.steps >= 5, np.False_))
    )
    assert (finding.name, finding.severity, finding.text) == (name, severity, text)
    assert finding.remedy == f"return bool({name})"


def test_an_info_that_is_none(found: Any) -> None:
    (finding,) = found(returning("told", at_step_3(["x"], {})))
    assert (finding.name, finding.text) == ("info", "step 3: info is list, not a dict")


def test_an_episode_that_never_ends(found: Any) -> None:
    endless = returning("ends", (False, False))
    (finding,) = found(endless)
    assert (finding.name, finding.severity) == ("endless", "error")
    assert finding.text.startswith("no episode ended in 10,020 steps")
    assert finding.remedy.startswith("set env.kwargs.max_episode_steps")
    assert found(endless, kwargs={"max_episode_steps": 900}) == []  # later than the 20 steps asked for


def test_the_old_gym(found: Any) -> None:
    class ResetsBare(Sound):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return self.observation()

    class Seedless(Sound):
        def reset(self) -> Any:  # type: ignore[override]
            return self.observation(), {}

    class FourValues(Sound):
        def step(self, action: Any) -> Any:
            return self.observation(), 0.0, True, {}

    (finding,) = found(ResetsBare)
    assert (finding.name, finding.severity) == ("reset", "error")
    assert finding.text == "reset returns an array float32 [2], not (observation, info)"
    (finding,) = found(Seedless)
    assert (finding.name, finding.text[:22]) == ("reset", "reset takes no seed: T")
    assert finding.remedy == "def reset(self, *, seed=None, options=None): super().reset(seed=seed)"
    (finding,) = found(FourValues)
    text = "step returns a tuple of 4 values, not (observation, reward, terminated, truncated, info)"
    assert (finding.name, finding.text) == ("step", text)


@pytest.mark.parametrize("method", ["reset", "step"])
def test_an_environment_that_raises(found: Any, method: str) -> None:
    def fail(self: Any, *args: Any, **kwargs: Any) -> None:
        raise KeyError("arm\nleft")

    (finding,) = found(type("Fails", (Sound,), {method: fail}))
    where = "reset()" if method == "reset" else "step 1"
    assert (finding.name, finding.severity) == ("raises", "error")
    assert finding.text == f"{where}: KeyError: 'arm\\nleft'"


@pytest.mark.parametrize("method", ["reset", "step"])
def test_an_environment_that_leaves_the_process(found: Any, method: str) -> None:
    def leave(self: Any, *args: Any, **kwargs: Any) -> None:
        raise SystemExit(9)

    (finding,) = found(type("Leaves", (Sound,), {method: leave}))
    where = "reset()" if method == "reset" else "step 1"
    assert (finding.name, finding.text) == ("raises", f"{where}: SystemExit: 9")


def test_metrics_that_info_lacks(found: Any) -> None:
    (finding,) = found(returning("told", {"speed": 1.0}), metrics=["speed", "height"])
    assert (finding.name, finding.severity) == ("configuration", "error")
    assert finding.text.startswith("env.metrics: 'height': info of ")


def test_a_missing_frame_rate(found: Any) -> None:
    (finding,) = found(type("Draws", (Sound,), {"metadata": {"render_modes": ["rgb_array"]}}))
    assert (finding.name, finding.severity) == ("render_fps", "warning")
    assert (
        found(type("Draws", (Sound,), {"metadata": {"render_modes": ["rgb_array"], "render_fps": 10}})) == []
    )


def test_of_each_kind_the_first_is_told_and_warnings_do_not_end_the_play(found: Any) -> None:
    findings = found(returning("reward", np.ones(1)))
    assert [(finding.name, finding.text[:6]) for finding in findings] == [("reward", "step 1")]
    noisy = type("Noisy", (returning("reward", np.ones(1)),), {"observation": lambda self: np.zeros(2)})
    assert [finding.name for finding in found(noisy)] == ["dtype", "reward"]


def test_illegal_actions_are_not_tried(found: Any) -> None:
    class OnlyTheSecond(Sound):
        observation_space = spaces.Dict(action_mask=spaces.MultiBinary(2), seen=Sound.observation_space)

        def observation(self) -> Any:
            return {"action_mask": np.array([0, 1], np.int8), "seen": OK.copy()}

        def step(self, action: Any) -> Any:
            assert action == 1
            return super().step(action)

    assert found(OnlyTheSecond) == []
