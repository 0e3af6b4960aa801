"""PPO against the closed-form optimum of an entropy-regularised bandit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from omnirl.algorithms.ppo import Config, Learner, Policy
from omnirl.api import (
    ActContext,
    ArraySpec,
    DiscreteAction,
    EnvSpec,
    PolicyContext,
    Rollout,
)


def config(**learner):
    return Config.model_validate({"learner": {"epochs": 2, "minibatch_size": 8, **learner}})


def policy_for(spec, learner_config=None, envs=2):
    return Policy(learner_config or config(), spec, PolicyContext("sampler", 0, 1, envs))


def act(seed=0, envs=2):
    return ActContext(np.random.default_rng(seed), 0, 0.0, np.zeros(envs, bool))


@pytest.mark.probe
@pytest.mark.parametrize("name", ["soft_bandit/alpha0.5", "soft_bandit/alpha0.1"])
def test_entropy_coefficient_has_its_sign_and_scale(golden, name, learner_context, clock):
    """A bandit of three arms: the policy ends at softmax(r / alpha), the optimum of reward plus alpha
    entropy."""
    case = golden(name)
    rewards = np.array(case["inputs"]["rewards"], np.float32)
    spec = EnvSpec(ArraySpec((1,)), DiscreteAction(len(rewards)))
    lr = {"kind": "linear", "start": 1e-2, "end": 0}
    setup = config(
        lr=lr, ent_coef=case["inputs"]["alpha"], normalize_advantages=False, gamma=0.9, minibatch_size=256
    )
    ppo, policy = Learner(setup, spec, learner_context), policy_for(spec, setup, envs=64)
    obs = np.zeros((5, 64, 1), np.float32)
    ended, places = np.ones((4, 64), bool), np.argwhere(np.ones((4, 64), bool))
    for update in range(500):
        policy.set_weights(ppo.get_weights())
        samples = [policy.sample_action(row, act(1000 * update + t, 64)) for t, row in enumerate(obs[:-1])]
        rows = {
            "action": np.stack([sample.action for sample in samples]),
            "outputs": np.stack([sample.extras["outputs"] for sample in samples]),
        }
        rollout = Rollout(
            obs=obs,
            first=np.ones((5, 64), bool),
            action=rows["action"],
            reward=rewards[rows["action"]],
            terminated=ended,
            truncated=~ended,
            final_obs=np.zeros((256, 1), np.float32),
            final_at=places,
            extras=policy.finish(rows),
        )
        ppo.learn((rollout,), dataclasses.replace(clock(update), progress=update / 500))
    with torch.no_grad():
        pi = torch.softmax(ppo.network.policy(torch.zeros(1, 1)), 1)[0].numpy()
    np.testing.assert_allclose(pi, case["expected"]["pi"], atol=0.03)
