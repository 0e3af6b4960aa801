"""Learning probes of the actor-critic algorithms with replay (see omnirl.testing.probes). gamma is 0.9.

An entropy bonus moves the values, so SAC's and TQC's temperature is fixed at 1e-3 here.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from omnirl.algorithms.sac import Config, Learner
from omnirl.algorithms.sac.discrete import soft_value
from omnirl.algorithms.tqc import Config as TQCConfig
from omnirl.algorithms.tqc import Learner as TQCLearner
from omnirl.api import ArraySpec, ContinuousAction, DiscreteAction, EnvSpec, Transitions

pytestmark = pytest.mark.probe


def settings(quantiles=None, **learner):
    return {
        "learner": {
            "gamma": 0.9,
            "tau": 0.05,
            "lr": {"kind": "linear", "start": 5e-3, "end": 1e-4},
            "steps_per_update": 2,
            **learner,
        },
        "memory": {"capacity": 5000, "batch_size": 64, "warmup_steps": 200, "unroll_length": 4},
        "network": {"hidden_sizes": [32, 32], **({"num_quantiles": quantiles} if quantiles else {})},
    }


SETTINGS = {
    "sac": settings(temperature=1e-3),
    "ddpg": settings(),
    "td3": settings(),
    "tqc": settings(temperature=1e-3),
}


def wide(algorithm):
    """For rewards down to -20, where the actor moves far before the critics know anything.

    Adam's steps are as long whatever the gradient, so with the learning rate of the other probes the actor is at a
    bound of its tanh, where it has no gradient, before the critics have fitted -20. That is the problem's, not the
    code's: with those settings DDPG and TD3 written out with torch.optim miss 2.5 with 7 and 8 of 10 seeds, these
    with 7 and 3.
    """
    learner = {
        **SETTINGS[algorithm]["learner"],
        "lr": {"kind": "linear", "start": 2e-3 if algorithm == "ddpg" else 1e-3, "end": 1e-4},
        "steps_per_update": 1,
    }
    return {
        "learner": learner,
        "memory": {**SETTINGS[algorithm]["memory"], "batch_size": 128},
        "network": {**SETTINGS[algorithm]["network"], "hidden_sizes": [64, 64]},
    }


def critics(run, obs, actions):
    """[M, N, outputs] at unit actions [N, 1]."""
    rows = torch.full((len(actions), 2), obs)
    rows[:, 1] = torch.as_tensor(actions)
    with torch.no_grad():
        return run.learner.networks.critics(rows).numpy()


@pytest.mark.parametrize("env_id", [f"probe_{name}_continuous" for name in ("p2", "p3", "p6", "p7")])
@pytest.mark.parametrize("algorithm", SETTINGS)
def test_values_whatever_the_action(algorithm, env_id, probe, miniature):
    run, right = miniature(algorithm, SETTINGS[algorithm], env_id, steps=2200), probe(env_id)
    for obs, value in right.answers.items():
        values = critics(run, obs, [-0.5, 0.0, 0.5]).mean((0, 2))
        np.testing.assert_allclose(values, np.repeat(value, 3), atol=right.tolerance)


@pytest.mark.parametrize("env_id", ["probe_c1", "probe_c2", "probe_c3"])
@pytest.mark.parametrize("algorithm", SETTINGS)
def test_actions_find_the_optimum(algorithm, env_id, probe, greedy, miniature):
    settings = wide(algorithm) if env_id == "probe_c3" else SETTINGS[algorithm]
    run, right = miniature(algorithm, settings, env_id, steps=2200), probe(env_id)
    for obs, best in right.answers.items():
        assert greedy(run, obs) == pytest.approx(best, abs=right.tolerance)


@pytest.mark.parametrize("algorithm", SETTINGS)
def test_actions_reach_the_bound(algorithm, greedy, miniature):
    assert greedy(miniature(algorithm, SETTINGS[algorithm], "probe_c4", steps=2200), 0.0)[0] > 2.9


def test_tqc_learns_a_distribution_of_returns(golden, miniature):
    """+1 with probability 0.3, else -1, two steps ahead: as quantiles, where the loss is that of quantiles."""
    case = golden("mdp/two_step_return_distribution")
    given = case["inputs"]
    modules = settings(
        given["n_quantiles"], gamma=given["gamma"], temperature=1e-6, kappa=1e-3, dropped_quantiles=0
    )
    run = miniature("tqc", modules, "two_step_continuous", steps=3000)
    for obs, name in ((1.0, "s1"), (0.0, "s0")):
        found = np.sort(critics(run, obs, [0.0]).mean((0, 1)))
        # The seventh stands for 0.65, so near the jump at 0.7 that a finite sample may put it either side.
        expected = np.array(case["expected"][f"quantiles_{name}"])
        np.testing.assert_allclose(np.delete(found, [6, 7]), np.delete(expected, [6, 7]), atol=0.1)
        assert found.mean() == pytest.approx(case["expected"][f"mean_{name}"], abs=0.1)


def test_tqc_with_a_wide_kappa_learns_no_quantiles(golden, learner_context, clock):
    """Where returns are within kappa the loss has another fixed point, whose mean is not the value: the golden's."""
    case = golden("mdp/two_step_qr_kappa1")
    given, expected = case["inputs"], case["expected"]
    lr = {"kind": "linear", "start": 5e-3, "end": 0}
    modules = settings(given["N"], temperature=1e-6, dropped_quantiles=0, lr=lr)
    spec = EnvSpec(ArraySpec((1,)), ContinuousAction((-1.0,), (1.0,)))
    learner = TQCLearner(TQCConfig.model_validate(modules), spec, learner_context)
    rewards = np.float32(
        [1.0] * 30 + [-1.0] * 70
    )  # exactly the probabilities, so that nothing is left to chance
    zeros = np.zeros(100, np.float32)
    for update in range(1000):
        action = np.random.default_rng(update).uniform(-1, 1, (100, 1)).astype(np.float32)
        batch = Transitions(zeros[:, None], action, rewards, zeros[:, None], zeros, zeros, zeros + 1)
        learner.learn(batch, clock(update))
    with torch.no_grad():
        found = np.sort(learner.networks.critics(torch.zeros(1, 2)).mean((0, 1)))
    np.testing.assert_allclose(found, expected["theta_s1"], atol=0.02)
    assert found.mean() == pytest.approx(expected["mean"], abs=0.02)


@pytest.mark.parametrize("env_id", [f"probe_p{number}" for number in range(1, 8)])
def test_discrete_sac_learns_every_value(env_id, probe, greedy, miniature):
    run, right = miniature("sac", SETTINGS["sac"], env_id, steps=2200), probe(env_id)
    for obs, expected in right.answers.items():
        with torch.no_grad():
            values = run.learner.networks.critics(torch.tensor([[obs]])).mean(0)[0].numpy()
            logits = run.learner.networks.actor(torch.tensor([[obs]]))[0]
        if len(expected) == 2:  # the worse action is hardly ever tried in the end
            assert float(torch.softmax(logits, 0)[int(expected.argmax())]) > 0.95
            assert greedy(run, obs) == expected.argmax()
            values, expected = values.max(), expected.max()
        np.testing.assert_allclose(values, expected, atol=right.tolerance)


@pytest.mark.parametrize("name", ["soft_bandit/alpha0.5", "soft_bandit/alpha0.1"])
def test_discrete_sac_reaches_the_soft_optimum_of_a_bandit(name, golden, learner_context, clock):
    """pi = softmax(r / alpha), whatever policy tried the arms: the sign and the scale of the entropy."""
    case = golden(name)
    rewards, alpha = np.array(case["inputs"]["rewards"], np.float32), case["inputs"]["alpha"]
    setup = Config.model_validate(settings(temperature=alpha, lr={"kind": "linear", "start": 1e-2, "end": 0}))
    sac = Learner(setup, EnvSpec(ArraySpec((1,)), DiscreteAction(3)), learner_context)
    zeros = np.zeros(64, np.float32)
    for update in range(1000):
        arms = np.random.default_rng(update).integers(0, 3, 64)
        batch = Transitions(zeros[:, None], arms, rewards[arms], zeros[:, None], zeros, arms, zeros + 1)
        sac.learn(batch, clock(update))
    with torch.no_grad():
        logits, values = (
            sac.networks.actor(torch.zeros(1, 1)),
            sac.networks.critics(torch.zeros(1, 1)).mean(0),
        )
        value, _, _ = soft_value(logits, values, torch.tensor(alpha))
    np.testing.assert_allclose(torch.softmax(logits[0], 0), case["expected"]["pi"], atol=0.03)
    assert float(value) == pytest.approx(case["expected"]["v_soft"], abs=0.03)
