"""Learning probes of the value learners, see omnirl.testing.probes; gamma is 0.9.

The tolerances are those of the published ladder. Prioritized replay, several steps and distributions change how fast
a value is learnt, never which.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from omnirl.algorithms.c51 import Config as C51Config
from omnirl.algorithms.c51 import Learner as C51Learner
from omnirl.algorithms.qr_dqn import Config as QRConfig
from omnirl.algorithms.qr_dqn import Learner as QRLearner
from omnirl.api import ArraySpec, DiscreteAction, EnvSpec, Transitions

pytestmark = pytest.mark.probe


def settings(lr=5e-3, memory=(), **learner):
    return {
        "learner": {
            "gamma": 0.9,
            "lr": {"kind": "linear", "start": lr, "end": 1e-4},
            "target_update_interval": 25,
            "steps_per_update": 2,
            **learner,
        },
        "memory": {
            "capacity": 5000,
            "batch_size": 32,
            "warmup_steps": 100,
            "unroll_length": 4,
            **dict(memory),
        },
        "policy": {"epsilon": 0.3},
        "network": {"hidden_sizes": [32, 32]},
    }


# Atoms 0.25 apart; quantiles of a loss that is plain from 0.001 on, so that their mean is the value.
SETTINGS = {
    "dqn": settings(),
    "ddqn": settings(),
    "dueling_dqn": settings(),
    "per_dqn": settings(),
    "c51": settings(num_atoms=45, v_min=-1, v_max=10),
    "qr_dqn": settings(num_quantiles=8),
}
PROBES = [f"probe_p{number}" for number in range(1, 8)]
STEPS = {"probe_p1": 1500, "probe_p2": 2500, "probe_p3": 3000, "probe_p4": 2500, "probe_p5": 3000}


def action_values(run, obs):
    """[n] of one observation, by the learner's network."""
    with torch.no_grad():
        outputs = run.learner.network(torch.from_numpy(np.float32([obs])))[0]
    if isinstance(run.learner, C51Learner):
        outputs = torch.softmax(outputs.view(-1, 45), 1) @ torch.linspace(-1, 10, 45)
    elif isinstance(run.learner, QRLearner):
        outputs = outputs.view(-1, 8).mean(1)
    return outputs.numpy()


@pytest.mark.parametrize("env_id", PROBES)
@pytest.mark.parametrize("algorithm", SETTINGS)
def test_values(algorithm, env_id, probe, miniature):
    run, right = (
        miniature(algorithm, SETTINGS[algorithm], env_id, steps=STEPS.get(env_id, 5000)),
        probe(env_id),
    )
    for obs, values in right.answers.items():
        np.testing.assert_allclose(action_values(run, [obs]), values, atol=right.tolerance, err_msg=f"{obs}")


@pytest.mark.parametrize("algorithm", SETTINGS)
def test_every_value_of_the_chain(algorithm, golden, miniature):
    expected = golden("mdp/chain5_qstar")["expected"]["q_star"]
    modules = {**SETTINGS[algorithm], "policy": {"epsilon": 1.0}}
    run = miniature(algorithm, modules, "chain5", steps=12_000)
    learned = np.array([action_values(run, row) for row in np.eye(5)])
    np.testing.assert_allclose(learned, expected, atol=0.05)


@pytest.mark.parametrize("algorithm", SETTINGS)
def test_the_best_actions_of_the_chain_with_several_steps(algorithm, golden, miniature):
    """The values are those of the behaviour too, so it is nearly greedy and only the best action is asked for."""
    expected = golden("mdp/chain5_qstar")["expected"]["q_star"]
    modules = SETTINGS[algorithm]
    modules = {**modules, "memory": {**modules["memory"], "n_step": 3}, "policy": {"epsilon": 0.1}}
    run = miniature(algorithm, modules, "chain5", steps=12_000)
    learned = np.array([action_values(run, row) for row in np.eye(5)])
    np.testing.assert_array_equal(learned.argmax(1), np.argmax(expected, 1))


def one_state_learner(learner, config, context, **keys):
    """A learner of one state and one action, without a bootstrap."""
    lr = {"kind": "linear", "start": 1e-2, "end": 0}
    modules = {"learner": {"lr": lr, **keys}, "network": {"hidden_sizes": [32]}}
    return learner(config.model_validate(modules), EnvSpec(ArraySpec((1,)), DiscreteAction(1)), context)


def certain_batch(rewards):
    rewards = np.float32(rewards)
    zeros = np.zeros(len(rewards), np.float32)
    action = np.zeros(len(rewards), np.int64)
    return Transitions(zeros[:, None], action, rewards, zeros[:, None], zeros, action, zeros + 1)


def test_c51_learns_a_distribution_of_returns(golden, miniature):
    """+1 with probability 0.3, else -1, two steps ahead: total variation from the exact masses below 0.05."""
    case = golden("mdp/two_step_return_distribution")
    given, expected = case["inputs"], case["expected"]
    keys = {"num_atoms": given["n_atoms"], "v_min": given["v_min"], "v_max": given["v_max"]}
    modules = settings(gamma=given["gamma"], **keys)
    run = miniature("c51", modules, "two_step", steps=6000)
    for obs, name in ((1.0, "s1"), (0.0, "s0")):
        with torch.no_grad():
            found = run.learner.network(torch.tensor([[obs]])).softmax(1)[0].numpy()
        assert np.abs(found - expected[f"probs_{name}"]).sum() / 2 < 0.05
        assert found @ np.array(expected["atoms"]) == pytest.approx(expected[f"mean_{name}"], abs=0.1)


def test_qr_dqn_learns_the_quantiles_of_returns(golden, miniature):
    case = golden("mdp/two_step_return_distribution")
    given, expected = case["inputs"], case["expected"]
    modules = settings(gamma=given["gamma"], num_quantiles=given["n_quantiles"], kappa=1e-3)
    run = miniature("qr_dqn", modules, "two_step", steps=6000)
    for obs, name in ((1.0, "s1"), (0.0, "s0")):
        with torch.no_grad():
            found = np.sort(run.learner.network(torch.tensor([[obs]]))[0].numpy())
        # The seventh and eighth stand for 0.65 and 0.75: a finite sample may put the jump at 0.7 either side.
        exact = np.array(expected[f"quantiles_{name}"])
        np.testing.assert_allclose(np.delete(found, [6, 7]), np.delete(exact, [6, 7]), atol=0.1)


def test_qr_dqn_with_a_wide_kappa_learns_no_quantiles(golden, learner_context, clock):
    """Where returns are within kappa the loss has another fixed point, whose mean is not the value: the golden's."""
    case = golden("mdp/two_step_qr_kappa1")
    given, expected = case["inputs"], case["expected"]
    learner = one_state_learner(
        QRLearner, QRConfig, learner_context, num_quantiles=given["N"], kappa=given["kappa"]
    )
    batch = certain_batch([1.0] * 30 + [-1.0] * 70)
    for update in range(1000):
        learner.learn(batch, clock(update))
    with torch.no_grad():
        found = learner.network(torch.zeros(1, 1))[0].numpy()
    np.testing.assert_allclose(found, expected["theta_s1"], atol=0.02)
    assert found.mean() == pytest.approx(expected["mean"], abs=0.01)
    assert abs(found.mean() - expected["true_mean"]) > 0.05


def test_c51_learns_the_exact_masses_of_certain_rewards(learner_context, clock):
    """Rewards on atoms and one between two: their shares of a batch, the one between divided in proportion."""
    learner = one_state_learner(C51Learner, C51Config, learner_context, num_atoms=5, v_min=-2, v_max=2)
    batch = certain_batch([-2.0] * 50 + [0.25] * 40 + [5.0] * 10)
    for update in range(1000):
        learner.learn(batch, clock(update))
    with torch.no_grad():
        found = learner.network(torch.zeros(1, 1)).softmax(1)[0].numpy()
    np.testing.assert_allclose(found, [0.5, 0.0, 0.3, 0.1, 0.1], atol=0.02)
