"""Frames and windows of Gymnasium's environments, and why there are none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from omnirl.api.environment import EnvContext
from omnirl.api.errors import ConfigError
from omnirl.envs.gymnasium.backend import BACKEND
from omnirl.envs.gymnasium.config import GymnasiumConfig

FRAMES = EnvContext("evaluator", 0, 1, "frames")
WINDOW = EnvContext("evaluator", 0, 1, "window")
NO_DISPLAY = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")


class Drawn(gymnasium.Env[Any, Any]):
    """A picture whose red says how many steps were made; what it draws may be changed."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 12}  # noqa: RUF012 - as gymnasium.Env declares it
    picture: Any = None

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space, self.action_space = spaces.Box(-1, 1, (1,)), spaces.Discrete(2)
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return np.zeros(1, np.float32), 0.0, False, False, {}

    def render(self) -> Any:
        if self.picture is not None:
            return self.picture() if callable(self.picture) else self.picture
        return np.full((4, 6, 3), (self.steps, 0, 0), np.uint8)


def refused(name: str, context: EnvContext, **keys: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        BACKEND.build_env(GymnasiumConfig(id=name, **keys), context)
    (line,) = caught.value.lines
    return line


def test_a_picture_is_drawn_whatever_the_configuration_says(register: Callable[..., str]) -> None:
    environment: Any = BACKEND.build_env(GymnasiumConfig(id=register(entry_point=Drawn)), FRAMES)
    environment.reset(0, 0)
    environment.step(np.zeros(1, np.int64))
    picture = environment.render()
    assert picture.dtype == np.uint8
    assert picture.tolist() == [[[1, 0, 0]] * 6] * 4
    assert environment.frames_per_second == 12.0


@pytest.mark.parametrize(
    ("metadata", "rate"), [({}, 30.0), ({"render_fps": 0}, 30.0), ({"render_fps": 2.5}, 2.5)]
)
def test_without_a_usable_rate_it_is_30(
    register: Callable[..., str], monkeypatch: pytest.MonkeyPatch, metadata: dict[str, Any], rate: float
) -> None:
    monkeypatch.setattr(Drawn, "metadata", {"render_modes": ["rgb_array"], **metadata})
    environment: Any = BACKEND.build_env(GymnasiumConfig(id=register(entry_point=Drawn)), FRAMES)
    assert environment.frames_per_second == rate


def test_an_environment_that_draws_nothing_is_refused(count: Any, register: Callable[..., str]) -> None:
    name = register(entry_point=count)
    assert refused(name, FRAMES) == f"env.id: {name!r} cannot render rgb_array (it cannot render at all)"


@pytest.mark.parametrize(
    ("picture", "found"),
    [
        ("  @ . .", "str"),
        ([], "list"),
        (np.zeros((4, 6), np.uint8), "uint8 [4, 6]"),
        (np.full((4, 6, 3), 1.5), "float64 [4, 6, 3]"),
        (np.zeros((4, 6, 4), np.uint8), "uint8 [4, 6, 4]"),
    ],
)
def test_a_picture_that_is_none_is_told(
    register: Callable[..., str], monkeypatch: pytest.MonkeyPatch, picture: Any, found: str
) -> None:
    monkeypatch.setattr(Drawn, "picture", staticmethod(lambda: picture))
    name = register(entry_point=Drawn)
    environment: Any = BACKEND.build_env(GymnasiumConfig(id=name), FRAMES)
    environment.reset(0, 0)
    with pytest.raises(ConfigError) as caught:
        environment.render()
    assert caught.value.lines == (
        f"env.id: {name!r} draws {found} with render_mode rgb_array, not uint8 [height, width, 3]",
    )


def test_a_picture_of_fractions_is_one_of_bytes(
    register: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Drawn, "picture", np.full((2, 2, 3), (0.0, 0.5, 1.0)))
    environment: Any = BACKEND.build_env(GymnasiumConfig(id=register(entry_point=Drawn)), FRAMES)
    environment.reset(0, 0)
    picture = environment.render()
    assert (picture.dtype, picture.tolist()) == (np.uint8, [[[0, 128, 255]] * 2] * 2)


def test_whatever_drawing_raises_becomes_one_line(
    register: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("no\n  context")

    monkeypatch.setattr(Drawn, "picture", staticmethod(fail))
    name = register(entry_point=Drawn)
    environment: Any = BACKEND.build_env(GymnasiumConfig(id=name), FRAMES)
    environment.reset(0, 0)
    with pytest.raises(ConfigError) as caught:
        environment.render()
    assert caught.value.lines == (f"env.id: {name!r} cannot draw: RuntimeError: no context",)


@pytest.mark.parametrize(
    ("keys", "context"), [({}, WINDOW), ({"render_mode": "human"}, EnvContext("evaluator", 0, 2))]
)
def test_a_window_without_a_display_points_to_record(
    monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], context: EnvContext
) -> None:
    for name in NO_DISPLAY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    line = (
        "env.render_mode: human opens a window, and there is no display (neither DISPLAY nor WAYLAND_DISPLAY is "
        "set); omnirl record writes a video instead"
    )
    assert refused("CartPole-v1", context, **keys) == line


def test_samplers_need_no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NO_DISPLAY:
        monkeypatch.delenv(name, raising=False)
    BACKEND.build_env(
        GymnasiumConfig(id="CartPole-v1", render_mode="human"), EnvContext("sampler", 0, 2)
    ).close()


def test_cart_pole_is_drawn_without_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygame")
    for name in NO_DISPLAY:
        monkeypatch.delenv(name, raising=False)
    environment: Any = BACKEND.build_env(GymnasiumConfig(id="CartPole-v1"), FRAMES)
    environment.reset(0, 0)
    picture = environment.render()
    environment.close()
    assert (picture.shape, environment.frames_per_second) == ((400, 600, 3), 50.0)
    cart = picture[:, 280:320]  # it stands in the middle
    assert (cart == (0, 0, 0)).all(axis=2).any()
    assert (picture[0] == 255).all()  # the sky is white


FILM = """
import os, tempfile
from omnirl.api.environment import EnvContext
from omnirl.envs.gymnasium.backend import BACKEND
from omnirl.envs.gymnasium.config import GymnasiumConfig
environment = BACKEND.build_env(GymnasiumConfig(id="CartPole-v1"), EnvContext("evaluator", 0, 1, "frames"))
environment.reset(0, 0)
print(environment.render().shape, os.environ["XDG_RUNTIME_DIR"] == tempfile.gettempdir())
"""


def test_without_a_display_nothing_is_said_about_it() -> None:
    """In a process of its own: pygame looks for a display once."""
    pytest.importorskip("pygame")
    absent = (*NO_DISPLAY, "XDG_RUNTIME_DIR")
    variables = {name: value for name, value in os.environ.items() if name not in absent}
    done = subprocess.run(
        [sys.executable, "-c", FILM], env=variables, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("(400, 600, 3) True\n", "")


def test_cart_pole_opens_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    environment: Any = BACKEND.build_env(GymnasiumConfig(id="CartPole-v1"), WINDOW)
    environment.reset(0, 0)
    assert pygame.display.get_surface().get_size() == (600, 400)
    environment.close()
    assert pygame.display.get_init() == 0


class Row(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Exists as a vector environment only; draws all its rows."""

    metadata = {"render_modes": ["rgb_array"], "autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}  # noqa: RUF012

    def __init__(self, num_envs: int, render_mode: str | None = None) -> None:
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_observation_space, self.single_action_space = spaces.Box(-1, 1, (1,)), spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return np.zeros((1, 1), np.float32), {}

    def render(self) -> Any:
        return (np.full((2, 2, 3), 9, np.uint8),)


def test_a_vector_environment_shows_its_row(register: Callable[..., str]) -> None:
    name = register(vector_entry_point=Row)
    environment: Any = BACKEND.build_env(GymnasiumConfig(id=name), FRAMES)
    environment.reset(0, 0)
    assert environment.render().tolist() == [[[9] * 3] * 2] * 2
