"""Learning probes: environments so small that the right answer is a number (see omnirl.testing.probes).

gamma is 0.9. Each isolates one mistake; the tolerances are those of the published ladder.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.probe

PPO = {
    "learner": {
        "gamma": 0.9,
        "gae_lambda": 0.9,
        "lr": {"kind": "linear", "start": 1e-2, "end": 1e-3},
        "epochs": 8,
        "minibatch_size": 32,
        "vf_coef": 1.0,
    },
    "memory": {"unroll_length": 8},
    "network": {"hidden_sizes": [32, 32]},
}
DQN = {
    "learner": {
        "gamma": 0.9,
        "lr": {"kind": "linear", "start": 5e-3, "end": 1e-4},
        "target_update_interval": 25,
        "steps_per_update": 2,
    },
    "memory": {"capacity": 5000, "batch_size": 32, "warmup_steps": 100, "unroll_length": 4},
    "policy": {"epsilon": 0.3},
    "network": {"hidden_sizes": [32, 32]},
}
SETTINGS = {"ppo": PPO, "dqn": DQN}
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
STEPS = {"probe_p1": 2000, "probe_p2": 3000, "probe_p3": 3000, "probe_p6": 6000, "probe_p7": 6000}
BEST_ACTIONS = {"probe_p4": {0.0: 1}, "probe_p5": {1.0: 1, -1.0: 0}}


def action_values(run, obs):
    with torch.no_grad():
        outputs = run.learner.network(torch.tensor([[obs]], dtype=torch.float32))
    return outputs[0].numpy()


def greedy(run, obs):
    from omnirl.api import ActContext

    rows = np.full((8, 1), obs, np.float32)
    act = ActContext(np.random.default_rng(0), 0, 1.0, np.zeros(8, bool))
    return run.policy.choose_action(rows, act)[0]


@pytest.mark.parametrize("env_id", VALUES)
@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_values(algorithm, env_id, miniature):
    run = miniature(algorithm, SETTINGS[algorithm], env_id, steps=STEPS.get(env_id, 4000))
    for obs, expected in VALUES[env_id].items():
        if algorithm == "ppo":
            with torch.no_grad():
                value = float(run.learner.network.values(torch.tensor([[obs]], dtype=torch.float32)))
        else:
            value = float(action_values(run, obs).max())
        assert value == pytest.approx(expected, abs=TOLERANCES.get(env_id, 0.1)), obs
    for obs, best in BEST_ACTIONS.get(env_id, {}).items():
        assert greedy(run, obs) == best
    assert all(np.isfinite(list(row.values())).all() for row in run.metrics)


def test_ppo_becomes_certain_of_the_better_action(miniature):
    run = miniature("ppo", PPO, "probe_p4", steps=4000)
    with torch.no_grad():
        probability = torch.softmax(run.learner.network.policy(torch.zeros(1, 1)), 1)[0, 1]
    assert float(probability) > 0.95


@pytest.mark.parametrize(
    ("env_id", "best", "tolerance"),
    [
        ("probe_c1", {0.0: 0.5}, 0.1),
        ("probe_c2", {1.0: 0.5, -1.0: -0.5}, 0.1),
        ("probe_c3", {0.0: 2.5}, 0.15),
    ],
)
def test_continuous_actions_find_the_optimum(env_id, best, tolerance, miniature):
    run = miniature("ppo", PPO, env_id, steps=8000)
    for obs, expected in best.items():
        assert greedy(run, obs)[0] == pytest.approx(expected, abs=tolerance)


def test_continuous_actions_reach_the_bound(miniature):
    run = miniature("ppo", PPO, "probe_c4", steps=8000)
    assert greedy(run, 0.0)[0] > 2.9
    assert all(np.isfinite(list(row.values())).all() for row in run.metrics)


def test_dqn_learns_every_value_of_the_chain(golden, miniature):
    case = golden("mdp/chain5_qstar")
    settings = {**DQN, "policy": {"epsilon": 1.0}}
    run = miniature("dqn", settings, "chain5", steps=12_000)
    with torch.no_grad():
        learned = run.learner.network(torch.eye(5)).numpy()
    np.testing.assert_allclose(learned, case["expected"]["q_star"], atol=0.05)


def test_ppo_estimates_the_value_of_a_frozen_uniform_policy(golden, miniature):
    """A great entropy bonus holds the policy at its uniform beginning; the values are those of a linear
    system."""
    case = golden("mdp/chain5_v_uniform_policy")
    learner = {
        **PPO["learner"],
        "ent_coef": 100.0,
        "max_grad_norm": None,
        "gae_lambda": 0.5,
        "minibatch_size": 128,
    }
    run = miniature(
        "ppo", {**PPO, "learner": learner, "memory": {"unroll_length": 64}}, "chain5", steps=60_000
    )
    with torch.no_grad():
        outputs, values = run.learner.network(torch.eye(5))
    np.testing.assert_allclose(torch.softmax(outputs, 1).numpy(), 0.5, atol=0.02)
    np.testing.assert_allclose(values.numpy(), case["expected"]["v"], atol=0.03)
