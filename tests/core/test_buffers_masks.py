"""Dictionaries with action masks in replay: the mask of the observation that a window really ends in."""

from __future__ import annotations

import dataclasses

import numpy as np

from omnirl.api import ArraySpec, Clock, DictSpec, DiscreteAction
from omnirl.buffers.n_step import NStep
from omnirl.buffers.replay import ReplayMemory, ReplaySettings
from omnirl.testing.rollouts import make_rollout

SPEC = DictSpec((("t", ArraySpec((1,))), ("action_mask", ArraySpec((3,), "bool"))))


def mask_of(t):
    """Bits of t: no two of eight steps are alike."""
    return (np.asarray(t, np.int64) >> np.arange(3)) & 1 == 1


def masked_rollout(steps=6, **ends):
    """One environment that observes t, with the mask of t; a final observation is half a step past its row."""
    rollout = make_rollout(np.ones(steps), **ends)
    return dataclasses.replace(
        rollout,
        obs={"t": rollout.obs, "action_mask": mask_of(rollout.obs)},
        final_obs={"t": rollout.final_obs, "action_mask": mask_of(np.floor(rollout.final_obs) + 1)},
    )


def test_a_window_ends_with_the_mask_of_the_observation_it_ends_in():
    """n = 2; truncated after step 2, whose final observation 3.5 has the mask of 4, not that of the row after it."""
    (windows,) = NStep(2, 0.9).add(masked_rollout(truncated=[(2, 0)]))
    assert windows.obs["t"].ravel().tolist() == [0, 1, 2, 3, 4]
    assert windows.next_obs["t"].ravel().tolist() == [2, 3.5, 3.5, 5, 6]
    assert windows.next_obs["action_mask"].tolist() == mask_of([[2], [4], [4], [5], [6]]).tolist()


def test_replay_draws_the_masks_of_both_observations():
    memory = ReplayMemory(SPEC, DiscreteAction(3), ReplaySettings(20, 5, n_step=2, gamma=0.9))
    memory.add(masked_rollout(terminated=[(2, 0)]), due=0)
    seen = 0
    for seed in range(10):
        batch = memory.next_batch(Clock(0, 6, 0.0, seed))
        assert batch.obs["action_mask"].dtype == np.bool_
        assert (batch.obs["action_mask"] == mask_of(batch.obs["t"])).all()
        ended = batch.discount == 0
        assert (batch.next_obs["t"][ended] == 3.5).all()
        assert (batch.next_obs["action_mask"][ended] == mask_of(4)).all()
        assert (batch.next_obs["action_mask"][~ended] == mask_of(batch.next_obs["t"][~ended])).all()
        seen += int(ended.sum())
    assert 0 < seen < 50


def test_what_pads_a_row_is_the_same_in_every_run():
    """A mask of 3 leaves a gap before the next number: what lay in memory there before is none of a checkpoint's."""
    states = []
    for leftover in (1, 255):
        for _ in range(50):
            np.full(20 * 40, leftover, np.uint8)  # freed at once, for the next small array to reuse
        memory = ReplayMemory(SPEC, DiscreteAction(3), ReplaySettings(20, 5))
        memory.add(masked_rollout(), due=0)
        states.append(memory.state_dict()["rows"])
    assert (states[0] == states[1]).all()
