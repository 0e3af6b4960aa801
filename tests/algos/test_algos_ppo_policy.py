"""PPO's policy, its agreement with the learner, and the closed-form optimum that the two reach."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from omnirl.algorithms.ppo import Config, Learner, Policy
from omnirl.api import (
    ActContext,
    ArraySpec,
    ConfigError,
    ContinuousAction,
    DictSpec,
    DiscreteAction,
    EnvSpec,
    MultiDiscreteAction,
    PolicyContext,
    Rollout,
)

BOX = EnvSpec(ArraySpec((3,)), ContinuousAction((-2.0, -float("inf")), (4.0, float("inf"))))
MULTI = EnvSpec(ArraySpec((3,)), MultiDiscreteAction((2, 3)))
IMAGES = EnvSpec(ArraySpec((1, 36, 36), "uint8", "image"), DiscreteAction(2))
NORMALIZED = {"normalize_observations": True, "normalize_returns": True}


def config(**learner):
    return Config.model_validate({"learner": {"epochs": 2, "minibatch_size": 8, **learner}})


def policy_for(spec, learner_config=None, envs=2):
    return Policy(learner_config or config(), spec, PolicyContext("sampler", 0, 1, envs))


def act(seed=0, envs=2):
    return ActContext(np.random.default_rng(seed), 0, 0.0, np.zeros(envs, bool))


@pytest.fixture
def make_ppo(vector_spec, learner_context):
    """``make_ppo(**keys of the learner section)`` -> a Learner for three features and two actions."""
    return lambda **learner: Learner(config(**learner), vector_spec, learner_context)


@pytest.mark.parametrize("learner", [{}, NORMALIZED])
@pytest.mark.parametrize("spec", [EnvSpec(ArraySpec((3,)), DiscreteAction(2)), MULTI, BOX])
def test_probability_ratio_begins_at_one(spec, learner, learner_context, clock, acted_rollout):
    """In lock-step the acting and the learning network agree, normaliser included, at every update.

    With learning rate 0 the log ratios of the last epoch are those of the beginning.
    """
    setup = config(lr=0.0, **learner)
    ppo, policy = Learner(setup, spec, learner_context), policy_for(spec, setup)
    for update in range(3):
        policy.set_weights(ppo.get_weights())
        rollout = acted_rollout(policy, seed=update, number=update)
        ppo.observe(rollout)
        ppo.learn((rollout,), clock(update))
        metrics = ppo.metrics()
        assert metrics["approx_kl"] == pytest.approx(0.0, abs=1e-10)
        assert metrics["clip_fraction"] == 0.0
        samples = ppo._samples((dataclasses.replace(rollout),))
        assert len(samples) == 16


def test_ratio_is_one_within_1e5_sample_by_sample(vector_spec, make_ppo, acted_rollout):
    ppo, policy = make_ppo(), policy_for(vector_spec)
    policy.set_weights(ppo.get_weights())
    samples = ppo._samples((acted_rollout(policy),))
    outputs, _ = ppo.backpropagation.forward(samples.observations)
    log_prob = ppo._likelihood(outputs.numpy(), samples.action.numpy()).log_prob
    ratio = np.exp(log_prob - samples.log_prob.numpy())
    np.testing.assert_allclose(ratio, 1.0, atol=1e-5)


@pytest.mark.parametrize("spec", [EnvSpec(ArraySpec((3,)), DiscreteAction(2)), MULTI, BOX])
def test_policy_is_strict_about_names(spec, learner_context):
    setup = config(normalize_observations=True)
    weights = dict(Learner(setup, spec, learner_context).get_weights())
    policy = policy_for(spec, setup)
    policy.set_weights(weights)
    renamed = {name.replace("layers.0.weight", "layers.0.wait"): array for name, array in weights.items()}
    with pytest.raises(KeyError, match="wait"):
        policy.set_weights(renamed)
    with pytest.raises(KeyError, match="normalizer"):
        policy.set_weights({name: array for name, array in weights.items() if name != "normalizer.mean"})
    with pytest.raises(ValueError, match="shape"):
        policy.set_weights({**weights, "policy.layers.0.bias": np.zeros(1, np.float32)})


def test_policy_acts_with_the_statistics_of_its_version(vector_spec, make_rollout, learner_context, clock):
    setup = config(normalize_observations=True)
    ppo, policy = Learner(setup, vector_spec, learner_context), policy_for(vector_spec, setup)
    rollout = make_rollout(8, 2)
    rollout = dataclasses.replace(rollout, obs=rollout.obs * 5 + 100)
    ppo.observe(rollout)
    assert ppo.get_weights()["normalizer.mean"].tolist() == [0.0, 0.0, 0.0]  # pending until the update
    ppo.learn((rollout,), clock(0))
    rows = rollout.obs[:-1].reshape(-1, 3).astype(np.float64)  # the last row belongs to the next rollout
    np.testing.assert_allclose(ppo.get_weights()["normalizer.mean"], rows.mean(0), rtol=1e-5)
    np.testing.assert_allclose(ppo.get_weights()["normalizer.scale"], 1 / rows.std(0), rtol=1e-4)
    policy.set_weights(ppo.get_weights())
    shown = policy.sample_action(rollout.obs[0], act()).extras["outputs"]
    with torch.no_grad():
        expected = ppo.network.policy(torch.tensor((rollout.obs[0] - rows.mean(0)) / rows.std(0)).float())
    np.testing.assert_allclose(shown, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("spec", [EnvSpec(ArraySpec((3,)), DiscreteAction(2)), MULTI, BOX])
def test_actions_have_the_specs_shape_and_dtype_and_repeat(spec, learner_context):
    policy = policy_for(spec)
    policy.set_weights(Learner(config(), spec, learner_context).get_weights())
    obs = np.ones((2, 3), np.float32)
    first, again = policy.sample_action(obs, act(4)).action, policy.sample_action(obs, act(4)).action
    greedy = policy.choose_action(obs, act(5))
    for action in (first, greedy):
        assert action.shape == (2, *spec.action.shape)
        assert action.dtype == np.dtype(spec.action.dtype)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(greedy, policy.choose_action(obs, act(6)))
    assert policy.state_dict() == {}


def test_other_observation_dtypes_and_shapes_are_flattened(learner_context):
    spec = EnvSpec(ArraySpec((2, 3), "float64"), DiscreteAction(2))
    policy = policy_for(spec)
    policy.set_weights(Learner(config(), spec, learner_context).get_weights())
    assert policy.choose_action(np.zeros((2, 2, 3)), act()).shape == (2,)


def test_images_train_and_act(learner_context, clock, make_rollout):
    setup = Config.model_validate(
        {"network": {"kind": "cnn", "hidden_sizes": [16]}, "learner": {"epochs": 1}}
    )
    ppo, policy = Learner(setup, IMAGES, learner_context), policy_for(IMAGES, setup)
    policy.set_weights(ppo.get_weights())
    images = np.random.default_rng(0).integers(0, 256, (5, 2, 1, 36, 36), np.uint8)
    samples = [policy.sample_action(row, act()) for row in images[:-1]]
    rows = {
        "action": np.stack([s.action for s in samples]),
        "outputs": np.stack([s.extras["outputs"] for s in samples]),
    }
    rollout = dataclasses.replace(
        make_rollout(4, 2),
        obs=images,
        action=rows["action"],
        extras=policy.finish(rows),
        final_obs=np.empty((0, 1, 36, 36), np.uint8),
    )
    ppo.learn((rollout,), clock(0))
    metrics = ppo.metrics()
    assert np.isfinite(metrics["policy_loss"])
    assert metrics["nonfinite_updates"] == 0.0


@pytest.mark.parametrize(
    ("spec", "modules", "line"),
    [
        (IMAGES, {"network": {"kind": "mlp"}}, "modules.network.kind: mlp takes vectors"),
        (
            EnvSpec(ArraySpec((3,)), DiscreteAction(2)),
            {"network": {"kind": "cnn"}},
            "modules.network.kind: cnn takes",
        ),
        (
            IMAGES,
            {"network": {"kind": "cnn"}, "learner": {"normalize_observations": True}},
            "modules.learner.normalize_observations",
        ),
        (
            EnvSpec(DictSpec((("a", ArraySpec((3,))), ("b", IMAGES.observation))), DiscreteAction(2)),
            {"network": {"kind": "mlp"}},
            "modules.network.kind: mlp takes vectors",
        ),
        (
            EnvSpec(DictSpec((("a", ArraySpec((3,))),)), DiscreteAction(2)),
            {"network": {"kind": "cnn"}},
            "modules.network.kind: cnn takes images",
        ),
    ],
)
def test_a_network_that_does_not_fit_is_refused_in_one_line(spec, modules, line, learner_context):
    with pytest.raises(ConfigError) as raised:
        Learner(Config.model_validate(modules), spec, learner_context)
    assert len(raised.value.lines) == 1
    assert raised.value.lines[0].startswith(line)


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
