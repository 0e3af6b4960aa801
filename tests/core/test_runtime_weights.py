"""Packing: what comes out is what went in, as views of one aligned buffer."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.api import Rollout
from omnirl.runtime.weights import pack, pack_rollout, unpack_rollout


def test_arrays_come_back_equal_and_aligned() -> None:
    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "scalar": np.array(3.5),
        "empty": np.empty((0, 4), np.float32),
        "flags": np.array([True, False, True]),
        "strided": np.arange(12, dtype=np.int64).reshape(3, 4)[:, ::2],
    }
    packed = pack(arrays)
    out = packed.arrays()
    assert list(out) == list(arrays)
    for name, array in arrays.items():
        assert out[name].dtype == array.dtype
        np.testing.assert_array_equal(out[name], array)
    assert all(offset % 64 == 0 for _, _, _, offset in packed.layout)


def test_a_pack_is_a_copy() -> None:
    array = np.zeros(3)
    packed = pack({"a": array})
    array[:] = 1
    np.testing.assert_array_equal(packed.arrays()["a"], np.zeros(3))


def rollout(obs: object, final: object) -> Rollout:
    return Rollout(
        obs=obs,  # type: ignore[arg-type]
        first=np.zeros((3, 1), bool),
        action=np.ones((2, 1), np.int64),
        reward=np.array([[1.0], [2.0]], np.float32),
        terminated=np.array([[False], [True]]),
        truncated=np.zeros((2, 1), bool),
        final_obs=final,  # type: ignore[arg-type]
        final_at=np.array([[1, 0]]),
        extras={"log_prob": np.array([[-0.5], [-0.25]], np.float32)},
        sampler=3,
        incarnation=1,
        number=7,
        epoch=2,
        version=40,
        env_steps=99,
    )


@pytest.mark.parametrize("mapping", [False, True])
def test_a_rollout_crosses_whole(mapping: bool) -> None:
    obs, final = np.arange(6, dtype=np.float32).reshape(3, 1, 2), np.full((1, 2), 9, np.float32)
    sent = rollout({"a/b": obs} if mapping else obs, {"a/b": final} if mapping else final)
    got = unpack_rollout(pack_rollout(sent))
    for name in ("sampler", "incarnation", "number", "epoch", "version", "env_steps"):
        assert getattr(got, name) == getattr(sent, name)
    for name in ("first", "action", "reward", "terminated", "truncated", "final_at"):
        np.testing.assert_array_equal(getattr(got, name), getattr(sent, name))
    np.testing.assert_array_equal(got.extras["log_prob"], sent.extras["log_prob"])
    nexts = got.next_obs()
    nexts = nexts["a/b"] if isinstance(nexts, dict) else nexts
    np.testing.assert_array_equal(nexts[:, 0], [[2, 3], [9, 9]])  # type: ignore[call-overload]
