"""A2C and IMPALA on environments whose right answers are numbers (see omnirl.testing.probes); gamma is 0.9."""

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


def continuous(algorithm):
    """Smaller steps on more samples, and noise that stays inside the bounds: beyond them the reward is flat, so that
    whoever goes there once finds no way back."""
    settings = SETTINGS[algorithm]
    lr = {"kind": "linear", "start": 5e-3, "end": 5e-4}
    return {
        **settings,
        "learner": {**settings["learner"], "lr": lr},
        "memory": {**settings["memory"], "unroll_length": 16},
        "policy": {"log_std_init": -0.7},
    }


# id: observation -> value of the state under the best policy
VALUES = {
    "probe_p1": {0.0: 1.0},
    "probe_p2": {1.0: 1.0, -1.0: -1.0},
    "probe_p3": {0.0: 0.9, 1.0: 1.0},
    "probe_p4": {0.0: 1.0},
    "probe_p5": {1.0: 1.0, -1.0: 1.0},
    "probe_p6": {0.0: 10.0},
    "probe_p7": {0.0: 2.71, 1 / 3: 1.9, 2 / 3: 1.0},
}
TOLERANCES = {"probe_p1": 0.05, "probe_p3": 0.05, "probe_p6": 1.0}
BEST_ACTIONS = {"probe_p4": {0.0: 1}, "probe_p5": {1.0: 1, -1.0: 0}}


def value_of(run, obs):
    with torch.no_grad():
        return float(run.learner.network.values(torch.tensor([[obs]], dtype=torch.float32)))


def greedy(run, obs):
    rows = np.full((8, 1), obs, np.float32)
    act = ActContext(np.random.default_rng(0), 0, 1.0, np.zeros(8, bool))
    return run.policy.choose_action(rows, act)[0]


@pytest.mark.parametrize("env_id", VALUES)
@pytest.mark.parametrize("algorithm", SETTINGS)
def test_values_of_actor_critics(algorithm, env_id, miniature):
    run = miniature(algorithm, SETTINGS[algorithm], env_id, steps=24_000 if env_id == "probe_p6" else 16_000)
    for obs, expected in VALUES[env_id].items():
        assert value_of(run, obs) == pytest.approx(expected, abs=TOLERANCES.get(env_id, 0.1)), obs
    for obs, best in BEST_ACTIONS.get(env_id, {}).items():
        assert greedy(run, obs) == best
    assert all(np.isfinite(list(row.values())).all() for row in run.metrics)


@pytest.mark.parametrize(
    ("env_id", "best", "tolerance"),
    [
        ("probe_c1", {0.0: 0.5}, 0.1),
        ("probe_c2", {1.0: 0.5, -1.0: -0.5}, 0.1),
        ("probe_c3", {0.0: 2.5}, 0.15),
    ],
)
@pytest.mark.parametrize("algorithm", SETTINGS)
def test_actor_critics_find_the_best_continuous_action(algorithm, env_id, best, tolerance, miniature):
    run = miniature(algorithm, continuous(algorithm), env_id, steps=32_000)
    for obs, expected in best.items():
        assert greedy(run, obs)[0] == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("algorithm", SETTINGS)
def test_actor_critics_reach_the_bound(algorithm, miniature):
    run = miniature(algorithm, continuous(algorithm), "probe_c4", steps=32_000)
    assert greedy(run, 0.0)[0] > 2.9
    assert all(np.isfinite(list(row.values())).all() for row in run.metrics)


@pytest.mark.parametrize(("algorithm", "trace"), [("a2c", "gae_lambda"), ("impala", "vtrace_lambda")])
def test_values_of_a_frozen_uniform_policy(algorithm, trace, golden, miniature):
    """A great entropy bonus holds the policy at its uniform beginning; the values are those of a linear
    system."""
    case = golden("mdp/chain5_v_uniform_policy")
    learner = {**LEARNER, "ent_coef": 100.0, "max_grad_norm": None, trace: 0.5}
    memory = {**SETTINGS[algorithm]["memory"], "unroll_length": 16}
    settings = {"learner": learner, "memory": memory, "network": NETWORK}
    run = miniature(algorithm, settings, "chain5", steps=100_000)
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


@pytest.mark.parametrize("name", ["bandit_rhobar1", "bandit_rhobar1.5", "bandit_rhobar100"])
def test_impalas_value_depends_on_rho_bar(golden, name, specs, learner_context, clock):
    case = golden(f"vtrace/fixed_point_{name}")
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


def test_impala_learns_from_a_policy_of_up_to_seven_updates_ago(specs):
    env = PropConfig(id="probe_p5")
    environment = build_env(env, EnvContext("sampler", 0, 8))
    run = Lagging(specs["impala"], SETTINGS["impala"], get_env_spec(env), environment, total_updates=504).run(
        504
    )
    for obs, best in BEST_ACTIONS["probe_p5"].items():
        assert value_of(run, obs) == pytest.approx(1.0, abs=0.1)
        assert greedy(run, obs) == best
    assert max(row["approx_kl"] for row in run.metrics) > 1e-3  # the acting policy was another
