"""Images of Gymnasium: layout declared or inferred and told, pixels in the dtype that they are counted in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from omnirl.api import ArraySpec, ConfigError, DictSpec, EnvContext
from omnirl.envs.gymnasium.backend import build_env, get_env_spec
from omnirl.envs.gymnasium.composite import observation_codec
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.images import Images, mistakes, notes
from omnirl.envs.gymnasium.spaces import UnsupportedSpaceError


def box(shape: tuple[int, ...], dtype: Any = np.uint8, low: float = 0, high: float = 255) -> spaces.Box:
    return spaces.Box(low, high, shape, dtype)


def encoded(space: spaces.Box, images: Images, observation: Any) -> tuple[ArraySpec, Any]:
    spec, encode = observation_codec(space, images)
    assert isinstance(spec, ArraySpec)
    row = np.zeros(spec.shape, spec.dtype)
    encode(observation, row)
    return spec, row


@pytest.mark.parametrize(
    ("shape", "target", "told"),
    [
        ((84, 84, 1), (1, 84, 84), "1 channel of 84 x 84 uint8 pixels (inferred)"),
        ((84, 84), (1, 84, 84), "1 channel of 84 x 84 uint8 pixels (inferred)"),
        ((3, 84, 96), (3, 84, 96), "3 channels of 84 x 96 uint8 pixels (inferred)"),
        ((210, 160, 3), (3, 210, 160), "3 channels of 210 x 160 uint8 pixels (inferred)"),
        ((4, 84, 84), (4, 84, 84), "4 channels of 84 x 84 uint8 pixels (inferred)"),
    ],
)
def test_an_inferred_layout_is_right_and_told(
    shape: tuple[int, ...], target: tuple[int, ...], told: str
) -> None:
    spec, _ = observation_codec(box(shape))
    assert spec == ArraySpec(target, "uint8", "image")
    assert notes(spec, Images()) == (f"images: {told}",)


@pytest.mark.parametrize("shape", [(3, 3, 3), (84, 84, 12), (4, 84, 3)])
def test_an_unclear_layout_asks_for_it(shape: tuple[int, ...]) -> None:
    with pytest.raises(UnsupportedSpaceError, match=r"unclear: set env\.layout to hwc .* or chw"):
        observation_codec(box(shape))


@pytest.mark.parametrize(("layout", "target"), [("hwc", (3, 2, 4)), ("chw", (2, 4, 3))])
def test_a_declared_layout_decides_every_pixels_place(layout: Any, target: tuple[int, ...]) -> None:
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    spec, row = encoded(box((2, 4, 3)), Images(layout), picture)
    assert spec == ArraySpec(target, "uint8", "image")
    expected = picture if layout == "chw" else np.stack([picture[:, :, c] for c in range(3)])
    assert np.array_equal(row, expected)
    assert notes(spec, Images(layout))[0].endswith(f"(env.layout: {layout})")


@pytest.mark.parametrize(
    ("dtype", "high", "stored", "brightest"),
    [
        (np.bool_, 1, "bool", True),
        (np.uint8, 1, "bool", True),
        (np.int64, 255, "uint8", 255),
        (np.uint8, 255, "uint8", 255),
        (np.float32, 1, "float32", 1.0),
        (np.float64, 1, "float32", 1.0),
    ],
)
def test_pixels_keep_their_values(dtype: Any, high: float, stored: str, brightest: float) -> None:
    """MinAtar's pictures of bool or float in 10 x 10 x C need no other scale than theirs."""
    picture = np.full((10, 10, 6), high, dtype)
    picture[3, 4, 5] = 0
    spec, row = encoded(box((10, 10, 6), dtype, high=high), Images("hwc"), picture)
    assert spec == ArraySpec((6, 10, 10), stored, "image")
    assert row.max() == brightest
    assert np.argwhere(row == 0).tolist() == [[5, 3, 4]]


@pytest.mark.parametrize(
    ("space", "reason"),
    [
        (box((9, 9, 3), np.float32), r"float32 pixels in \[0, 255\], and images are floats in \[-1, 1\]"),
        (box((9, 9, 3), np.float32, -np.inf, np.inf), r"float32 pixels in \[-inf, inf\]"),
        (
            box((9, 9, 3), np.int16, -1, 255),
            r"int16 pixels in \[-1, 255\], and images are whole numbers in \[0",
        ),
    ],
)
def test_pixels_of_an_unclear_scale_are_refused(space: spaces.Box, reason: str) -> None:
    with pytest.raises(UnsupportedSpaceError, match=reason):
        observation_codec(space, Images("hwc"))


def test_undeclared_floats_and_bools_stay_flat_numbers() -> None:
    for space in (box((10, 10, 4), np.bool_, high=1), box((10, 10, 4), np.float32, high=1)):
        assert observation_codec(space)[0] == ArraySpec((400,))


def test_an_image_of_another_shape_is_refused() -> None:
    _, encode = observation_codec(box((5, 6, 3)))
    with pytest.raises(ValueError, match=r"has the shape \(5, 6\), its space says \(5, 6, 3\)"):
        encode(np.zeros((5, 6), np.uint8), np.zeros((3, 5, 6), np.uint8))


def test_frames_are_stacked_of_one_array_and_of_the_images_of_several() -> None:
    images = Images(frame_stack=4)
    assert observation_codec(box((84, 84)), images)[0] == ArraySpec((1, 84, 84), "uint8", "image", 4)
    assert observation_codec(box((3,), np.float32), images)[0] == ArraySpec((3,), frame_stack=4)
    several = spaces.Dict(camera=box((8, 8, 3)), speed=box((2,), np.float32))
    spec, _ = observation_codec(several, images)
    assert spec == DictSpec(
        (("camera", ArraySpec((3, 8, 8), "uint8", "image", 4)), ("speed", ArraySpec((2,))))
    )
    assert notes(spec, images) == (
        "images camera: 3 channels of 8 x 8 uint8 pixels (inferred), 4 frames stacked",
    )


def test_what_is_asked_for_and_not_there_is_told() -> None:
    flat = observation_codec(spaces.Dict(a=box((2,), np.float32)), Images("hwc", 2))[0]
    assert mistakes(flat, Images("hwc", 2)) == [
        "env.layout: hwc is for arrays of three axes, and no observation is one (use auto)",
        "env.frame_stack: of several observations only images are stacked, and none is one (use 1)",
    ]
    assert mistakes(observation_codec(box((5, 5)))[0], Images()) == []


@pytest.mark.parametrize(("frames", "told"), [(49, False), (50, True), (100, True)])
def test_a_stack_that_no_batch_has_room_for_is_refused(frames: int, told: bool) -> None:
    """210 x 160 x 3 are 100,800 numbers a frame, and 5,000,000 / 100,800 is 49.6."""
    images = Images("auto", frames)
    lines = mistakes(observation_codec(box((210, 160, 3)), images)[0], images)
    assert lines == told * [
        f"env.frame_stack: {frames} frames make observations of {frames * 100_800:,} numbers, which a network sees as "
        f"{20 if frames == 50 else 40} MB each: use at most 49, or smaller frames (wrappers resize and grey)"
    ]


class Camera(gymnasium.Env[Any, Any]):
    """Counts in its pixels; episodes of five steps."""

    action_space = spaces.Discrete(2)

    def __init__(self, shape: tuple[int, ...] = (84, 84, 1)) -> None:
        self.observation_space = box(shape)
        self.t = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.t = 0
        return np.zeros(self.observation_space.shape, np.uint8), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return np.full(self.observation_space.shape, self.t, np.uint8), 1.0, False, self.t == 5, {}


@pytest.fixture(autouse=True)
def camera() -> Iterator[None]:
    gymnasium.register("images/Camera-v0", Camera)
    yield
    del gymnasium.registry["images/Camera-v0"]


def test_the_backend_says_stacks_and_hands_out_single_frames() -> None:
    config = GymnasiumConfig(id="images/Camera-v0", frame_stack=4, layout="hwc", vectorization="inline")
    spec = get_env_spec(config)
    assert spec.observation == ArraySpec((1, 84, 84), "uint8", "image", frame_stack=4)
    assert spec.notes == ("images: 1 channel of 84 x 84 uint8 pixels (env.layout: hwc), 4 frames stacked",)
    env = build_env(config, EnvContext("sampler", 0, 2))
    assert np.asarray(env.reset(0, 0)).shape == (1, 84, 84)
    env.reset(1, 0)
    obs = np.asarray(env.step(np.zeros(2, np.int64)).obs)
    assert (obs.shape, obs.dtype, obs.max()) == ((2, 1, 84, 84), np.uint8, 1)
    env.close()


def test_mistakes_of_the_configuration_are_placed() -> None:
    with pytest.raises(ConfigError, match=r"env\.id: 'images/Camera-v0': .* set env\.layout to hwc"):
        get_env_spec(GymnasiumConfig(id="images/Camera-v0", kwargs={"shape": (3, 3, 3)}))
    with pytest.raises(ConfigError, match=r"^env\.layout: chw is for arrays of three axes"):
        get_env_spec(GymnasiumConfig(id="CartPole-v1", layout="chw"))
    with pytest.raises(ValueError, match="frame_stack"):
        GymnasiumConfig(id="CartPole-v1", frame_stack=0)
