"""DQN's memory, and the pacing that keeps it filled."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from omnirl.algorithms.dqn import Config, Memory
from omnirl.algorithms.dqn.config import data_flow
from omnirl.api import (
    ConfigError,
    FlowContext,
    MemoryContext,
)


def config(memory=None, policy=None, **learner):
    return Config.model_validate({"learner": learner, "memory": memory or {}, "policy": policy or {}})


@pytest.mark.parametrize("name", ["nstep/n1", "nstep/n3_term_at_2_trunc_at_5"])
def test_memory_gives_the_right_n_step_transitions(golden, name, make_rollout, vector_spec, clock):
    """Rewards, discounts and next observations of every complete window, drawn until each was seen."""
    case = golden(name)
    given = case["inputs"]
    steps = len(given["rewards"])
    setup = config({"n_step": given["n"], "batch_size": 64, "capacity": 100}, gamma=given["gamma"])
    memory = Memory(setup, vector_spec, MemoryContext(0, 1, lambda array, op: array))
    rollout = make_rollout(steps, 1, rewards=np.array(given["rewards"], np.float32)[:, None])
    obs = np.repeat(np.arange(steps + 1, dtype=np.float32), 3).reshape(steps + 1, 1, 3)
    flags = [np.array(given[key], bool)[:, None] for key in ("terminated", "truncated")]
    ends = np.argwhere(flags[0] | flags[1])
    rollout = dataclasses.replace(
        rollout,
        obs=obs,
        terminated=flags[0],
        truncated=flags[1],
        final_at=ends,
        final_obs=obs[ends[:, 0] + 1, 0] + 100.0,  # not the row that follows
    )
    memory.add(rollout, due=0)
    memory.add(make_rollout(64, 1, seed=1, number=5), due=0)  # a batch's worth, of another stream
    batches = [memory.next_batch(clock(n)) for n in range(40)]
    found = {}
    for batch in batches:
        for row in range(64):
            first = batch.obs[row, 0]
            if first == int(first) and (batch.obs[row] == first).all():
                found[int(first)] = (batch.reward[row], batch.discount[row], batch.next_obs[row, 0])
    end_rows = set((ends[:, 0] + 1).tolist())
    for expected in case["expected"]["transitions"]:
        if not expected["window_complete"]:
            continue
        reward, discount, following = found.pop(expected["t"])
        assert reward == pytest.approx(expected["n_step_return"], rel=1e-5)
        assert discount == pytest.approx(expected["bootstrap_discount"], rel=1e-5)
        index = expected["next_obs_index"]
        assert following == index + (100.0 if index in end_rows else 0.0)


def test_k07_a_window_ends_with_its_episode(make_rollout, vector_spec, clock):
    """n = 3, gamma 0.9, rewards 1, 2, 4, terminated at index 1: return 2.8 without a bootstrap."""
    setup = config({"n_step": 3, "batch_size": 1, "capacity": 10_000}, gamma=0.9)
    memory = Memory(setup, vector_spec, MemoryContext(0, 1, lambda array, op: array))
    rollout = make_rollout(3, 1, rewards=np.array([[1.0], [2.0], [4.0]], np.float32))
    terminated = np.array([[False], [True], [False]])
    finals = {"final_at": np.array([[1, 0]]), "final_obs": np.full((1, 3), 9.0, np.float32)}
    memory.add(dataclasses.replace(rollout, terminated=terminated, **finals), due=0)
    rewards = set()
    for n in range(50):
        batch = memory.next_batch(clock(n))
        rewards.add(round(float(batch.reward[0]), 4))
        assert batch.discount[0] == 0.0
    assert rewards == {2.8, 2.0}


def test_pacing_of_the_zoo_setting():
    """train_freq 256, gradient_steps 128: an update per 2 steps, at most two rollouts of 256 ahead."""
    flow = data_flow(config({"unroll_length": 256}, steps_per_update=2), FlowContext(1, 1))
    assert not flow.bounded_lag  # replay learns from data of any age: a late rollout is not dropped
    assert (flow.unroll_length, flow.steps_per_update, flow.warmup_steps, flow.max_lead) == (
        256,
        2,
        1000,
        256,
    )


def test_lead_is_rounded_up():
    flow = data_flow(
        config({"unroll_length": 3}, steps_per_update=4), FlowContext(num_envs=1, num_samplers=3)
    )
    assert flow.max_lead == 5  # ceil(2 * 3 * 3 / 4)


def test_warm_up_must_hold_the_first_batch_and_fit_the_replay():
    setup = config({"batch_size": 64, "n_step": 3, "warmup_steps": 111, "capacity": 112})
    with pytest.raises(ConfigError) as raised:
        data_flow(setup, FlowContext(num_envs=8, num_samplers=2))
    assert raised.value.lines == (
        "modules.memory.warmup_steps: 111 is less than the first batch needs, "
        "112 = batch_size 64 + 2 samplers x 8 environments x n_step 3",
    )
    enough = config({"batch_size": 64, "n_step": 3, "warmup_steps": 112, "capacity": 112})
    assert data_flow(enough, FlowContext(num_envs=8, num_samplers=2)).warmup_steps == 112


def test_all_mistakes_are_told_at_once():
    setup = config({"batch_size": 64, "warmup_steps": 60, "capacity": 50})
    with pytest.raises(ConfigError) as raised:
        data_flow(setup, FlowContext(num_envs=1, num_samplers=1))
    assert [line.split(" ")[:2] for line in raised.value.lines] == [
        ["modules.memory.batch_size:", "64"],
        ["modules.memory.warmup_steps:", "60"],
    ]
