"""The rollout queue: each rollout once, in the update it is due for; a state that brings it all back."""

from __future__ import annotations

import numpy as np
import pytest

from omnirl.api import Clock, Feedback
from omnirl.buffers.rollout_queue import RolloutQueue
from omnirl.testing.rollouts import make_rollout


def clock(update):
    return Clock(update=update, env_steps=0, progress=0.0, seed=0)


def test_an_update_takes_exactly_what_is_due_in_order_of_arrival():
    queue = RolloutQueue()
    for number, due in enumerate([0, 1, 0, 2]):
        queue.add(make_rollout([float(number)], number=number), due)
    assert len(queue) == 4
    assert [r.number for r in queue.next_batch(clock(0))] == [0, 2]
    assert [r.number for r in queue.next_batch(clock(1))] == [1]
    assert len(queue) == 1


def test_a_batch_may_be_empty():
    queue = RolloutQueue()
    queue.add(make_rollout([1.0]), due=5)
    assert queue.next_batch(clock(3)) == ()
    assert len(queue) == 1


def test_a_rollout_whose_update_is_past_is_an_error():
    queue = RolloutQueue()
    queue.add(make_rollout([1.0]), due=2)
    with pytest.raises(RuntimeError, match=r"due at updates \[2\] were still waiting at update 3"):
        queue.next_batch(clock(3))


def test_feedback_changes_nothing():
    queue = RolloutQueue()
    queue.add(make_rollout([1.0]), due=0)
    queue.feedback(Feedback(np.zeros(1, np.int64), np.ones(1, np.float32)))
    assert len(queue.next_batch(clock(0))) == 1


def test_the_state_brings_back_every_field():
    queue = RolloutQueue()
    plain = make_rollout([[1.0, 2.0], [3.0, 4.0]], terminated=[(0, 1)], sampler=3, incarnation=2, number=9)
    full = type(plain)(
        **{
            **vars(plain),
            "obs": {"x": plain.obs, "a/b": plain.obs[..., 0]},
            "final_obs": {"x": plain.final_obs, "a/b": plain.final_obs[:, 0]},
            "extras": {"log_prob": np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)},
            "epoch": 1,
            "version": 7,
            "env_steps": 40,
        }
    )
    for rollout, due in ((plain, 4), (full, 4), (plain, 3)):
        queue.add(rollout, due)
    state = queue.state_dict()
    queue.next_batch(clock(3))
    plain.reward[:] = -1.0  # the state is a copy

    restored = RolloutQueue()
    restored.add(make_rollout([9.0]), due=0)  # what it held before is gone
    restored.load_state_dict(state)
    assert len(restored) == 3
    (third,) = restored.next_batch(clock(3))
    assert third.reward.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    first, second = restored.next_batch(clock(4))
    assert (first.sampler, first.incarnation, first.number) == (3, 2, 9)
    assert (second.epoch, second.version, second.env_steps, second.state0) == (1, 7, 40, None)
    np.testing.assert_array_equal(second.obs["a/b"], full.obs["a/b"], strict=True)
    np.testing.assert_array_equal(second.extras["log_prob"], full.extras["log_prob"], strict=True)
    np.testing.assert_array_equal(second.next_obs()["x"], full.next_obs()["x"], strict=True)
    assert second.final_at.tolist() == [[0, 1]]
