"""Wrappers by configuration: their order, their parameters, and what evaluation never sees."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from pydantic import ValidationError

from omnirl.api.environment import EnvContext
from omnirl.api.errors import ConfigError
from omnirl.api.specs import ArraySpec
from omnirl.envs.gymnasium.backend import build_env, get_env_spec
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.making import make


class Ramp(gymnasium.Env[Any, Any]):
    """Step k shows a picture [6, 5, 3] whose pixel (y, x) is k + 10 y + x, and pays k; ends at step 12."""

    def __init__(self, render_mode: str | None = None) -> None:
        self.observation_space = spaces.Box(0, 255, (6, 5, 3), np.uint8)
        self.action_space = spaces.Discrete(2)
        self.render_mode = render_mode
        self._k = 0

    def _picture(self) -> Any:
        y, x = np.mgrid[:6, :5]
        return np.repeat((self._k + 10 * y + x).astype(np.uint8)[:, :, None], 3, axis=2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._k = 0
        return self._picture(), {}

    def step(self, action: Any) -> tuple[Any, int, bool, bool, dict[str, Any]]:
        self._k += 1
        return self._picture(), self._k, self._k >= 12, False, {}


@pytest.fixture
def ramp(register: Callable[..., str]) -> Callable[..., GymnasiumConfig]:
    name = register(entry_point=Ramp)

    def config(*wrappers: Any) -> GymnasiumConfig:
        return GymnasiumConfig.model_validate({"id": name, "wrappers": list(wrappers)})

    return config


def rewards(config: GymnasiumConfig, role: str, steps: int) -> list[float]:
    environment = build_env(config, EnvContext(role, 0, 1))
    environment.reset(0, 0)
    return [float(environment.step(np.array([0])).reward[0]) for _ in range(steps)]


def test_crop_cuts_the_border_that_it_is_told(ramp: Callable[..., GymnasiumConfig]) -> None:
    env = make(ramp({"crop": {"top": 1, "bottom": 2, "left": 3}}))
    picture, _ = env.reset()
    assert picture[:, :, 0].tolist() == [[13, 14], [23, 24], [33, 34]]
    assert env.observation_space.shape == picture.shape == (3, 2, 3)
    assert env.observation_space.dtype == np.uint8


def test_wrappers_are_applied_in_their_order(ramp: Callable[..., GymnasiumConfig]) -> None:
    # Rewards 1, 2, 3, 4, ...: the sum of two, then a limit of 5; or the limit first, then the sum.
    skip, clip = {"frame_skip": {"frames": 2}}, {"reward_clip": {"low": 0, "high": 5}}
    assert rewards(ramp(skip, clip), "sampler", 3) == [3, 5, 5]
    assert rewards(ramp(clip, skip), "sampler", 3) == [3, 7, 10]


def test_a_frame_skip_repeats_the_action_and_stops_at_the_end(ramp: Callable[..., GymnasiumConfig]) -> None:
    env = make(ramp({"frame_skip": {"frames": 5}}))
    env.reset()
    seen = [env.step(1) for _ in range(3)]
    assert [float(step[1]) for step in seen] == [1 + 2 + 3 + 4 + 5, 6 + 7 + 8 + 9 + 10, 11 + 12]
    assert [step[2] for step in seen] == [False, False, True]
    assert [int(step[0][0, 0, 0]) for step in seen] == [5, 10, 12]


def test_the_maximum_of_the_last_two_frames(register: Callable[..., str]) -> None:
    class Blink(Ramp):
        """Frames of 200 and 100 in turn, beginning with 200."""

        def _picture(self) -> Any:
            return np.full((6, 5, 3), 200 if self._k % 2 else 100, np.uint8)

    name = register(entry_point=Blink)

    def last(**parameters: Any) -> int:
        env = make(GymnasiumConfig.model_validate({"id": name, "wrappers": [{"frame_skip": parameters}]}))
        env.reset()
        return int(env.step(0)[0][0, 0, 0])

    assert last(frames=4) == 100
    assert last(frames=4, max_last_two=True) == 200


def test_a_time_limit_truncates_in_training_and_in_evaluation(ramp: Callable[..., GymnasiumConfig]) -> None:
    for role in ("sampler", "evaluator"):
        environment = build_env(ramp({"time_limit": {"steps": 3}}), EnvContext(role, 0, 1))
        environment.reset(0, 0)
        steps = [environment.step(np.array([0])) for _ in range(2)]
        assert not steps[-1].truncated[0]
        step = environment.step(np.array([0]))
        assert (bool(step.truncated[0]), bool(step.terminated[0])) == (True, False)


@pytest.mark.parametrize(
    ("wrapper", "trained"),
    [
        ({"reward_scale": {"factor": 0.5}}, [0.5, 1, 1.5]),
        ({"reward_scale": {"factor": -2}}, [-2, -4, -6]),
        ("reward_clip", [1, 1, 1]),
        ({"reward_clip": {"low": 2, "high": 2.5}}, [2, 2, 2.5]),
    ],
)
def test_evaluation_sees_the_rewards_as_they_are(
    ramp: Callable[..., GymnasiumConfig], wrapper: Any, trained: list[float]
) -> None:
    assert rewards(ramp(wrapper), "sampler", 3) == trained
    assert rewards(ramp(wrapper), "evaluator", 3) == [1, 2, 3]


def test_flatten_makes_a_vector(ramp: Callable[..., GymnasiumConfig]) -> None:
    assert get_env_spec(ramp("flatten")).observation == ArraySpec((90,))
    environment = build_env(ramp("flatten"), EnvContext("sampler", 0, 1))
    assert np.asarray(environment.reset(0, 0))[:6].tolist() == [0, 0, 0, 1, 1, 1]


def test_grey_and_resize(ramp: Callable[..., GymnasiumConfig]) -> None:
    pytest.importorskip("cv2", reason="the extra image is not installed")
    env = make(ramp("grey", {"resize": {"height": 3, "width": 1}}))
    picture, _ = env.reset()
    # The mean of pairs of rows 0 and 10, 20 and 30, 40 and 50, and of columns 0 to 4; grey rounds down.
    assert picture.shape == (3, 1)
    assert np.abs(picture[:, 0].astype(float) - [7, 27, 47]).max() <= 1
    assert get_env_spec(ramp("grey")).observation == ArraySpec((1, 6, 5), "uint8", layout="image")


class Doubled(gymnasium.RewardWrapper[Any, Any]):
    """Somebody's own wrapper: ``times`` the reward, plus ``plus``."""

    def __init__(self, env: Any, times: float, plus: float = 0.0) -> None:
        super().__init__(env)
        self._times, self._plus = times, plus

    def reward(self, reward: Any) -> float:
        return self._times * float(reward) + self._plus


@pytest.fixture
def own_module(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(sys.modules, "acme_wrappers", sys.modules[__name__])
    return "acme_wrappers"


def test_any_class_by_its_path(ramp: Callable[..., GymnasiumConfig], own_module: str) -> None:
    entry = {"class": f"{own_module}:Doubled", "kwargs": {"times": 2, "plus": 1}}
    for role in ("sampler", "evaluator"):
        assert rewards(ramp(entry), role, 2) == [3, 5]
    assert rewards(ramp({**entry, "training_only": True}), "sampler", 2) == [3, 5]
    assert rewards(ramp({**entry, "training_only": True}), "evaluator", 2) == [1, 2]


@pytest.mark.parametrize(
    ("wrapper", "line"),
    [
        ({"class": "acme_none:Wrapper"}, "class: cannot import 'acme_none:Wrapper': ModuleNotFoundError: "),
        (
            {"class": "acme_wrappers:Nothing"},
            "class: cannot import 'acme_wrappers:Nothing': AttributeError: ",
        ),
        ({"class": "acme_wrappers:Doubled"}, "class: does not fit what it wraps: TypeError: "),
        ({"class": "builtins:repr"}, "class: 'builtins:repr' made a str, not a gymnasium.Env"),
        ({"crop": {"top": 3, "bottom": 3}}, "crop: leaves nothing of a picture of 6 x 5"),
        ({"crop": {"left": 2, "right": 3}}, "crop: leaves nothing of a picture of 6 x 5"),
        ("atari", "atari: is for Atari games (ALE/...) only"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(
    ramp: Callable[..., GymnasiumConfig], own_module: str, wrapper: Any, line: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        get_env_spec(ramp({"time_limit": {"steps": 5}}, wrapper))
    (told,) = caught.value.lines
    assert told.startswith(f"env.wrappers.1.{line}")


def test_the_environment_is_closed_where_a_wrapper_does_not_fit(
    recorder: Any, register: Callable[..., str]
) -> None:
    env = recorder()
    config = {"id": register(entry_point=lambda: env), "wrappers": ["grey"]}
    with pytest.raises(ConfigError, match=r"env.wrappers.0.grey: does not fit"):
        get_env_spec(GymnasiumConfig.model_validate(config))
    assert env.closed


def test_a_missing_image_library_names_the_extra(
    ramp: Callable[..., GymnasiumConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)  # importing it fails, installed or not
    with pytest.raises(ConfigError) as caught:
        make(ramp({"resize": {"height": 3, "width": 3}}))
    assert caught.value.lines == (
        'env.wrappers.0.resize: needs more than is installed; run: pip install "omnirl-gymnasium[image]"',
    )


def test_what_is_written_out_as_json_reads_back_equal(ramp: Callable[..., GymnasiumConfig]) -> None:
    config = ramp(
        "atari",
        {"resize": {"height": 64, "width": 48}},
        {"grey": None},
        {"class": "acme.wrappers:Reach", "kwargs": {"goal": [1, 2]}, "training_only": True},
    )
    written = json.loads(config.model_dump_json(by_alias=True))
    assert written["wrappers"][1:3] == [{"resize": {"height": 64, "width": 48}}, {"grey": {}}]
    assert GymnasiumConfig.model_validate(written) == config


@pytest.mark.parametrize(
    ("wrapper", "place", "text"),
    [
        ("atarii", (), "unknown wrapper 'atarii' (did you mean 'atari'?)"),
        ({"clas": "a:B"}, (), "unknown wrapper 'clas' (did you mean 'class'?)"),
        ("zzz", (), "unknown wrapper 'zzz' (there are: atari, resize, grey, crop, frame_skip, time_limit, "),
        ({"grey": {}, "flatten": {}}, (), "names one wrapper, not several or none (grey, flatten)"),
        ({}, (), "names one wrapper, not several or none (none)"),
        (3, (), "the name of a wrapper"),
        ("resize", ("height",), "Field required"),
        ({"time_limit": {"steps": 0}}, ("steps",), "greater than or equal to 1"),
        ({"time_limit": {"step": 5, "steps": 5}}, ("step",), "Extra inputs are not permitted"),
        ({"atari": {"noop_max": -1}}, ("noop_max",), "greater than or equal to 0"),
        ({"atari": 4}, ("atari",), "valid dictionary"),
        ({"grey": {"weights": 3}}, ("weights",), "Extra inputs are not permitted"),
        ({"crop": {}}, ("crop",), "needs top, bottom, left or right"),
        ({"reward_clip": {"low": 1}}, ("reward_clip",), "low: must be less than high (1), not 1"),
        ({"reward_scale": {"factor": float("nan")}}, ("factor",), "finite number"),
        ({"class": "acme.wrappers"}, ("class",), "must be of the form package.module:Class"),
        ({"class": "a:B", "kwarg": {}}, ("kwarg",), "Extra inputs are not permitted"),
    ],
)
def test_a_mistake_is_told_where_it_is(wrapper: Any, place: tuple[str, ...], text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        GymnasiumConfig.model_validate({"id": "A", "wrappers": ["flatten", wrapper]})
    error = next(error for error in caught.value.errors() if text in error["msg"])
    assert error["loc"][:2] == ("wrappers", 1)
    assert error["loc"][2:][-len(place) :] == place if place else len(error["loc"]) == 2


def test_one_name_is_no_list() -> None:
    with pytest.raises(ValidationError, match=r"must be a list of wrappers, such as \[atari\]"):
        GymnasiumConfig.model_validate({"id": "A", "wrappers": "atari"})


def test_wrappers_need_no_gymnasium_to_be_checked(tmp_path: Path) -> None:
    import subprocess

    code = """
import sys
from omnirl.envs.gymnasium.config import GymnasiumConfig
GymnasiumConfig.model_validate({"id": "A", "wrappers": ["atari", {"class": "a.b:C"}]})
assert not {"gymnasium", "cv2"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


class TwoRewards(Ramp):
    """Pays for two objectives, as the environments of MO-Gymnasium do."""

    reward_space = spaces.Box(-1, 1, (2,))

    def step(self, action: Any) -> Any:
        picture, reward, *rest = super().step(action)
        return picture, np.array([reward, -reward]), *rest


class Weighed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Brings them into one."""

    reward_space = spaces.Box(-1, 1, (1,))

    def step(self, action: Any) -> Any:
        picture, rewards, *rest = self.env.step(action)
        return picture, 3 * rewards[0] + rewards[1], *rest


def test_several_rewards_per_step_need_a_wrapper(register: Callable[..., str], own_module: str) -> None:
    name = register(entry_point=TwoRewards)
    with pytest.raises(ConfigError) as caught:
        get_env_spec(GymnasiumConfig(id=name))
    (line,) = caught.value.lines
    assert line.startswith(f"env.id: {name!r} pays 2 rewards per step, and algorithms take one: ")
    weighed = GymnasiumConfig.model_validate({"id": name, "wrappers": [{"class": f"{own_module}:Weighed"}]})
    assert get_env_spec(weighed).id == name
    assert rewards(weighed, "sampler", 3) == [2, 4, 6]
