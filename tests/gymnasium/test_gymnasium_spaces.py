"""Spaces: which spec each becomes, the values on both sides, and the refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from omnirl.api.specs import ArraySpec, ContinuousAction, DiscreteAction, MultiDiscreteAction
from omnirl.envs.gymnasium.spaces import UnsupportedSpaceError, action_codec, array_codec


def encoded(space: spaces.Space[Any], observation: Any) -> tuple[ArraySpec, np.ndarray[Any, Any]]:
    spec, encode = array_codec(space)
    row = np.full(spec.shape, 9, spec.dtype)
    encode(observation, row)
    return spec, row


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int64, np.uint8, np.bool_])
def test_a_flat_box_of_any_dtype_is_a_float32_vector(dtype: Any) -> None:
    spec, row = encoded(spaces.Box(0, 1, (3,), dtype), np.array([0, 1, 1], dtype))
    assert spec == ArraySpec((3,), "float32", "vector")
    assert row.dtype == np.float32
    assert row.tolist() == [0.0, 1.0, 1.0]


def test_a_float64_observation_is_rounded_to_float32_once() -> None:
    _, row = encoded(spaces.Box(-1, 1, (1,), np.float64), np.array([0.1]))
    assert row[0] == np.float32(0.1)


def test_a_box_of_two_axes_is_flattened_row_by_row() -> None:
    spec, row = encoded(spaces.Box(-9, 9, (2, 3)), np.arange(6.0, dtype=np.float32).reshape(2, 3))
    assert spec.shape == (6,)
    assert row.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_box_without_axes_is_one_number() -> None:
    spec, row = encoded(spaces.Box(-9, 9, ()), np.float32(4))
    assert spec.shape == (1,)
    assert row.tolist() == [4]


@pytest.mark.parametrize("observation", [np.zeros(()), np.zeros(1), np.zeros(4), np.zeros((3, 1)), 0.0])
def test_an_observation_of_another_shape_is_refused_and_not_broadcast(observation: Any) -> None:
    with pytest.raises(ValueError, match=r"its space says \(3,\)"):
        encoded(spaces.Box(-1, 1, (3,)), observation)


def test_an_observation_that_is_a_list_is_read() -> None:
    assert encoded(spaces.Box(-1, 1, (2,)), [0.5, -0.5])[1].tolist() == [0.5, -0.5]


def test_a_discrete_observation_is_one_hot_from_its_start() -> None:
    spec, row = encoded(spaces.Discrete(3, start=-1), np.int64(0))
    assert spec == ArraySpec((3,))
    assert row.tolist() == [0, 1, 0]
    assert encoded(spaces.Discrete(3, start=-1), 1)[1].tolist() == [0, 0, 1]


@pytest.mark.parametrize("observation", [-2, 2])
def test_a_discrete_observation_outside_its_space_is_refused(observation: int) -> None:
    with pytest.raises(ValueError, match="outside its space"):
        encoded(spaces.Discrete(3, start=-1), observation)


def test_a_multi_discrete_observation_is_one_hot_vectors_side_by_side() -> None:
    spec, row = encoded(spaces.MultiDiscrete([2, 3]), np.array([1, 2]))
    assert spec.shape == (5,)
    assert row.tolist() == [0, 1, 0, 0, 1]


def test_a_multi_binary_observation_is_a_vector_of_0_and_1() -> None:
    spec, row = encoded(spaces.MultiBinary(3), np.array([1, 0, 1], np.int8))
    assert spec == ArraySpec((3,))
    assert row.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("shape", "target"),
    [((5, 6, 3), (3, 5, 6)), ((3, 5, 6), (3, 5, 6)), ((5, 6), (1, 5, 6)), ((5, 6, 1), (1, 5, 6))],
)
def test_an_image_is_uint8_with_its_channels_first(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    picture = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    spec, row = encoded(spaces.Box(0, 255, shape, np.uint8), picture)
    assert spec == ArraySpec(target, "uint8", "image")
    expected = picture.transpose(2, 0, 1) if shape[-1] in (1, 3) else picture.reshape(target)
    assert np.array_equal(row, expected)


@pytest.mark.parametrize("shape", [(3, 84, 3), (84, 84, 84)])
def test_an_image_with_unclear_channels_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UnsupportedSpaceError, match="which axis holds the channels"):
        array_codec(spaces.Box(0, 255, shape, np.uint8))


def test_actions_of_a_discrete_space_begin_at_its_start() -> None:
    space = spaces.Discrete(3, start=-1)
    spec, decode = action_codec(space)
    assert spec == DiscreteAction(3)
    own = list(decode(np.array([0, 1, 2])))
    assert own == [-1, 0, 1]
    assert all(space.contains(action) for action in own)
    assert {type(action) for action in own} == {type(space.sample())}


def test_a_multi_discrete_action_of_two_axes_is_flattened_and_shifted() -> None:
    space = spaces.MultiDiscrete(np.array([[2, 3], [4, 5]]), start=np.array([[0, 1], [0, -1]]))
    spec, decode = action_codec(space)
    assert spec == MultiDiscreteAction((2, 3, 4, 5))
    (own,) = decode(np.array([[1, 2, 3, 0]]))
    assert own.tolist() == [[1, 3], [3, -1]]
    assert space.contains(own)


def test_a_multi_binary_action_is_a_choice_of_two_per_position() -> None:
    space = spaces.MultiBinary([2, 2])
    spec, decode = action_codec(space)
    assert spec == MultiDiscreteAction((2, 2, 2, 2))
    (own,) = decode(np.array([[1, 0, 0, 1]]))
    assert own.tolist() == [[1, 0], [0, 1]]
    assert space.contains(own)


def test_a_box_action_is_clipped_to_each_bound_and_reshaped() -> None:
    space = spaces.Box(np.array([[-1.0, -2.0]], np.float32), np.array([[0.5, 3.0]], np.float32))
    spec, decode = action_codec(space)
    assert spec == ContinuousAction((-1.0, -2.0), (0.5, 3.0))
    own = list(decode(np.array([[9, 9], [-9, -9], [0.25, 1]], np.float32)))
    assert [action.tolist() for action in own] == [[[0.5, 3.0]], [[-1.0, -2.0]], [[0.25, 1.0]]]
    assert all(space.contains(action) for action in own)


def test_the_largest_float32_action_lies_inside_a_float64_box() -> None:
    space = spaces.Box(-0.3, 0.1, (1,), np.float64)  # float32(0.1) is greater than 0.1
    spec, decode = action_codec(space)
    assert isinstance(spec, ContinuousAction)
    (own,) = decode(spec.bounds()[1][None])
    assert own.dtype == np.float64
    assert own[0] == 0.1
    assert space.contains(own)


def test_an_unbounded_box_stays_unbounded_and_is_not_clipped() -> None:
    spec, decode = action_codec(spaces.Box(-np.inf, np.inf, (2,)))
    assert isinstance(spec, ContinuousAction)
    assert not spec.bounded
    (own,) = decode(np.array([[1e30, -1e30]], np.float32))
    assert own.tolist() == [np.float32(1e30), np.float32(-1e30)]


def test_actions_share_no_memory_with_what_was_given() -> None:
    given = np.array([[0.5]], np.float32)
    _, decode = action_codec(spaces.Box(-1, 1, (1,)))
    (own,) = decode(given)
    own[0] = 0
    assert given[0, 0] == 0.5


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (spaces.Box(0, 255, (3,), np.uint8), "action space Box(0, 255, (3,), uint8) is a Box of uint8"),
        (spaces.Dict({"a": spaces.Discrete(2)}), "action space Dict('a': Discrete(2)) is not supported"),
        (spaces.Tuple([spaces.Discrete(2)]), "action space Tuple(Discrete(2)) is not supported"),
        (spaces.Box(-1, 1, (0,)), "action space Box([], [], (0,), float32) is empty: it has no numbers"),
        (spaces.Text(4), "action space Text("),
    ],
)
def test_other_action_spaces_are_refused_by_name(space: spaces.Space[Any], text: str) -> None:
    with pytest.raises(UnsupportedSpaceError) as caught:
        action_codec(space)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({f"entry{i}": spaces.Box(-1, 1, (2,)) for i in range(9)}),
        spaces.Tuple([spaces.Discrete(2)]),
        spaces.Text(4),
        spaces.Sequence(spaces.Discrete(2)),
    ],
)
def test_other_observation_spaces_are_refused_in_one_line(space: spaces.Space[Any]) -> None:
    with pytest.raises(UnsupportedSpaceError) as caught:
        array_codec(space)
    assert str(caught.value).startswith(f"the observation space {type(space).__name__}(")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
