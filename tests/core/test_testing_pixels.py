"""The small pictures of the testing backend: known best returns, and single frames that do not tell the motion."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.api import ArraySpec, DiscreteAction
from omnirl.testing import BackendSuite
from omnirl.testing.environments import BACKEND, PropConfig, build_single, get_env_spec
from omnirl.testing.pixels import Motion, Pixels


class TestPictures(BackendSuite):
    spec = BACKEND
    environments = {  # noqa: RUF012
        "pixels": {"id": "pixels", "length": 5},
        "motion, stacked": {"id": "motion", "frame_stack": 3},
        "vectors, stacked": {"id": "chain5", "frame_stack": 2},
    }


def side(picture):
    return int(picture[0].max(axis=0).argmax() >= picture.shape[2] // 2)


def way(before, after):
    size = after.shape[2]
    moved = (after[0].max(axis=0).argmax() - before[0].max(axis=0).argmax()) % size
    return int(moved == 1)


def test_who_sees_the_side_gets_one_per_step():
    env, total = Pixels(length=6), 0.0
    for episode in range(5):
        picture = env.reset(episode)
        for t in range(6):
            picture, reward, terminated, truncated = env.step(np.int64(side(picture)))
            total += reward
            assert (terminated, truncated) == (False, t == 5)
    assert total == 30.0


def test_who_sees_two_frames_gets_all_but_the_first_reward():
    env = Motion(length=8, size=10)
    for episode in range(5):
        before, total, action = env.reset(episode), 0.0, 0
        for _ in range(8):
            after, reward, _, _ = env.step(np.int64(action))
            total += reward
            action, before = way(before, after), after
        assert total == 7.0


def test_a_single_frame_does_not_tell_the_way():
    """Over all starts each place is as often left for the left as for the right."""
    env, ways = Motion(size=4), {}
    for seed in range(2000):
        before = env.reset(seed)
        ways.setdefault(before.tobytes(), []).append(way(before, env.step(np.int64(0))[0]))
    assert len(ways) == 16
    assert all(0.3 < np.mean(seen) < 0.7 for seen in ways.values())


def test_their_spec():
    spec = get_env_spec(PropConfig(id="motion", size=12, frame_stack=4))
    assert spec.observation == ArraySpec((1, 12, 12), "uint8", "image", frame_stack=4)
    assert spec.action == DiscreteAction(2)
    picture = build_single(PropConfig(id="pixels")).reset(0)
    assert (picture.dtype, picture.shape, picture.sum()) == (np.uint8, (1, 10, 10), 255)


def test_other_environments_have_no_size():
    with pytest.raises(ValueError, match="chain5 does not take size"):
        PropConfig(id="chain5", size=3)
