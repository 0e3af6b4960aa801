"""PPO, A2C and IMPALA on environments whose right answers are numbers (see omnirl.testing.probes); gamma is 0.9."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from omnirl.api import (
    ActContext,
    ArraySpec,
    DiscreteAction,
    EnvContext,
    EnvSpec,
    PolicyContext,
    Rollout,
)
from omnirl.api.plugin import load_object
from omnirl.testing.environments import PropConfig, build_env, get_env_spec
from omnirl.testing.miniature import Miniature

pytestmark = pytest.mark.probe

LEARNER = {
    "gamma": 0.9,
    "lr": {"kind": "linear", "start": 1e-2, "end": 1e-3},
    "optimizer": "adam",
    "ent_coef": 0.0,
}
NETWORK = {"hidden_sizes": [32, 32]}
SETTINGS = {
    "ppo": {
        "learner": {
            "gamma": 0.9,
            "gae_lambda": 0.9,
            "lr": LEARNER["lr"],
            "epochs": 8,
            "minibatch_size": 32,
            "vf_coef": 1.0,
        },
        "memory": {"unroll_length": 8},
        "network": NETWORK,
    },
    "a2c": {
        "learner": {**LEARNER, "gae_lambda": 0.9},
        "memory": {"unroll_length": 4},
        "network": NETWORK,
    },
    "impala": {
        "learner": {**LEARNER, "vtrace_lambda": 0.9},
        "memory": {"unroll_length": 4, "rollouts_per_update": 1},
        "network": NETWORK,
    },
}


FIXED_POINTS = [
    "vtrace/fixed_point_bandit_rhobar1",
    "vtrace/fixed_point_bandit_rhobar1.5",
    "vtrace/fixed_point_bandit_rhobar100",
]
PPO_STEPS = {
    "probe_p1": 2000,
    "probe_p2": 3000,
    "probe_p3": 3000,
    "probe_p4": 4000,
    "probe_p5": 4000,
    "probe_p6": 6000,
    "probe_p7": 6000,
}


def continuous(algorithm):
    """Of an algorithm that takes one gradient step per rollout: smaller ones on more samples, and noise that stays
    inside the bounds: beyond them the reward is flat, so that whoever goes there once finds no way back."""
    settings = SETTINGS[algorithm]
    if algorithm == "ppo":
        return settings
    lr = {"kind": "linear", "start": 5e-3, "end": 5e-4}
    return {
        **settings,
        "learner": {**settings["learner"], "lr": lr},
        "memory": {**settings["memory"], "unroll_length": 16},
        "policy": {"log_std_init": -0.7},
    }


def value_of(run, obs):
    with torch.no_grad():
        return float(run.learner.network.values(torch.tensor([[obs]], dtype=torch.float32)))


@pytest.mark.parametrize("env_id", PPO_STEPS)
@pytest.mark.parametrize("algorithm", SETTINGS)
def test_values_of_actor_critics(algorithm, env_id, probe, greedy, miniature):
    steps = PPO_STEPS[env_id] if algorithm == "ppo" else 24_000 if env_id == "probe_p6" else 16_000
    run, right = miniature(algorithm, SETTINGS[algorithm], env_id, steps=steps), probe(env_id)
    for obs, values in right.answers.items():
        assert value_of(run, obs) == pytest.approx(values.max(), abs=right.tolerance), obs
        assert greedy(run, obs) == values.argmax()
        if env_id == "probe_p4":
            with torch.no_grad():
                probabilities = torch.softmax(run.learner.network.policy(torch.zeros(1, 1)), 1)[0]
            assert float(probabilities[1]) > 0.95


@pytest.mark.parametrize("env_id", ["probe_c1", "probe_c2", "probe_c3"])
@pytest.mark.parametrize("algorithm", SETTINGS)
def test_actor_critics_find_the_best_continuous_action(algorithm, env_id, probe, greedy, miniature):
    run = miniature(algorithm, continuous(algorithm), env_id, steps=8000 if algorithm == "ppo" else 32_000)
    for obs, best in probe(env_id).answers.items():
        assert greedy(run, obs) == pytest.approx(best, abs=probe(env_id).tolerance)


@pytest.mark.parametrize("algorithm", SETTINGS)
def test_actor_critics_reach_the_bound(algorithm, greedy, miniature):
    run = miniature(
        algorithm, continuous(algorithm), "probe_c4", steps=8000 if algorithm == "ppo" else 32_000
    )
    assert greedy(run, 0.0)[0] > 2.9


@pytest.mark.parametrize(
    ("algorithm", "trace", "unroll_length", "steps"),
    [
        ("ppo", "gae_lambda", 64, 60_000),
        ("a2c", "gae_lambda", 16, 100_000),
        ("impala", "vtrace_lambda", 16, 100_000),
    ],
)
def test_values_of_a_frozen_uniform_policy(algorithm, trace, unroll_length, steps, golden, miniature):
    """A great entropy bonus holds the policy at its uniform beginning; the values are those of a linear
    system."""
    case = golden("mdp/chain5_v_uniform_policy")
    settings = SETTINGS[algorithm]
    learner = {**settings["learner"], "ent_coef": 100.0, "max_grad_norm": None, trace: 0.5}
    if algorithm == "ppo":
        learner["minibatch_size"] = 128
    memory = {**settings["memory"], "unroll_length": unroll_length}
    run = miniature(
        algorithm, {"learner": learner, "memory": memory, "network": NETWORK}, "chain5", steps=steps
    )
    with torch.no_grad():
        outputs, values = run.learner.network(torch.eye(5))
    np.testing.assert_allclose(torch.softmax(outputs, 1).numpy(), 0.5, atol=0.02)
    np.testing.assert_allclose(values.numpy(), case["expected"]["v"], atol=0.03)


def bandit_rollout(action, reward, log_prob):
    """Steps [T, B] that each are an episode, of the one state there is."""
    steps, envs = action.shape
    ended = np.ones((steps, envs), bool)
    return Rollout(
        obs=np.zeros((steps + 1, envs, 1), np.float32),
        first=np.ones((steps + 1, envs), bool),
        action=action,
        reward=reward.astype(np.float32),
        terminated=ended,
        truncated=~ended,
        final_obs=np.zeros((steps * envs, 1), np.float32),
        final_at=np.argwhere(ended),
        extras={"log_prob": log_prob.astype(np.float32)},
    )


@pytest.mark.parametrize("name", ["soft_bandit/alpha0.5", "soft_bandit/alpha0.1"])
def test_a2cs_entropy_coefficient_has_its_sign_and_scale(golden, name, specs, learner_context, clock):
    """A bandit of three arms: the policy ends at softmax(r / alpha), the optimum of reward plus alpha entropy."""
    case = golden(name)
    rewards = np.array(case["inputs"]["rewards"], np.float32)
    spec = EnvSpec(ArraySpec((1,)), DiscreteAction(len(rewards)))
    lr = {"kind": "linear", "start": 1e-2, "end": 0}
    keys = {**LEARNER, "lr": lr, "ent_coef": case["inputs"]["alpha"], "normalize_advantages": False}
    config = load_object(specs["a2c"].config).model_validate({"learner": keys, "network": NETWORK})
    learner = load_object(specs["a2c"].learner)(config, spec, learner_context)
    policy = load_object(specs["a2c"].policy)(config, spec, PolicyContext("sampler", 0, 1, 64))
    row = np.zeros((64, 1), np.float32)
    for update in range(600):
        policy.set_weights(learner.get_weights())
        samples = []
        for t in range(4):
            rng = np.random.default_rng(1000 * update + t)
            samples.append(policy.sample_action(row, ActContext(rng, 0, 0.0, np.zeros(64, bool))))
        action = np.stack([sample.action for sample in samples])
        outputs = np.stack([sample.extras["outputs"] for sample in samples])
        log_prob = policy.finish({"action": action, "outputs": outputs})["log_prob"]
        rollout = bandit_rollout(action, rewards[action], log_prob)
        learner.learn((rollout,), dataclasses.replace(clock(update), progress=update / 600))
    with torch.no_grad():
        pi = torch.softmax(learner.network.policy(torch.zeros(1, 1)), 1)[0].numpy()
    np.testing.assert_allclose(pi, case["expected"]["pi"], atol=0.03)


def off_policy_value(specs, learner_context, clock, inputs, acting_log_prob):
    """The value that IMPALA learns of a bandit whose arms were pulled as often as ``mu`` says, under a policy that the
    learner holds at ``pi``."""
    spec = EnvSpec(ArraySpec((1,)), DiscreteAction(2))
    keys = {
        "lr": {"kind": "linear", "start": 3e-3, "end": 0},
        "rho_bar": inputs["rho_bar"],
        "pg_rho_bar": 1e-9,  # the policy stays
        "ent_coef": 0.0,
        "gamma": 0.9,
    }
    config = load_object(specs["impala"].config).model_validate({"learner": keys, "network": NETWORK})
    learner = load_object(specs["impala"].learner)(config, spec, learner_context)
    weight, bias = learner.network.policy.pairs[-1]
    weight.data.zero_()
    bias.data.copy_(torch.log(torch.tensor(inputs["pi"])))
    action = np.tile([0, 1], (4, 8))
    reward = np.array(inputs["rewards"])[action]
    rollout = bandit_rollout(action, reward, np.log(np.array(acting_log_prob))[action])
    for update in range(300):
        learner.learn((rollout,), dataclasses.replace(clock(update), progress=update / 300))
    with torch.no_grad():
        outputs, values = learner.network(torch.zeros(1, 1))
    np.testing.assert_allclose(torch.softmax(outputs, 1)[0], inputs["pi"], atol=1e-4)
    return float(values)


@pytest.mark.parametrize("name", FIXED_POINTS)
def test_impalas_value_depends_on_rho_bar(golden, name, specs, learner_context, clock):
    case = golden(name)
    inputs = case["inputs"]
    value = off_policy_value(specs, learner_context, clock, inputs, inputs["mu"])
    assert value == pytest.approx(case["expected"]["value_fixed_point"], abs=0.03)


def test_ratios_of_one_would_be_biased(golden, specs, learner_context, clock):
    """Were the log-probabilities those of the learning policy, the value would be that of the acting one: 0."""
    inputs = golden("vtrace/fixed_point_bandit_rhobar1")["inputs"]
    value = off_policy_value(specs, learner_context, clock, inputs, inputs["pi"])
    assert value == pytest.approx(0.0, abs=0.03)


class Lagging(Miniature):
    """The sampler gets new weights at every eighth update only."""

    def weights(self):
        if self.updates % 8 == 0:
            self._held = super().weights()
        return self._held


def test_impala_learns_from_a_policy_of_up_to_seven_updates_ago(specs, probe, greedy):
    env = PropConfig(id="probe_p5")
    environment = build_env(env, EnvContext("sampler", 0, 8))
    run = Lagging(specs["impala"], SETTINGS["impala"], get_env_spec(env), environment, total_updates=504).run(
        504
    )
    for obs, values in probe("probe_p5").answers.items():
        assert value_of(run, obs) == pytest.approx(values.max(), abs=0.1)
        assert greedy(run, obs) == values.argmax()
    assert max(row["approx_kl"] for row in run.metrics) > 1e-3  # the acting policy was another
