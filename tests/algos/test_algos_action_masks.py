"""Action masks: illegal actions have probability 0, are never the greatest, and are bootstrapped from by nobody."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from omnirl.algorithms.shared.acting.action_masks import ILLEGAL, LegalActions
from omnirl.algorithms.shared.off_policy.targets import greatest_target_value
from omnirl.algorithms.shared.off_policy.transition_tensors import action_tensor, transition_tensors
from omnirl.algorithms.shared.training import likelihoods
from omnirl.algorithms.shared.training.torch_masks import legal_logits, legal_values
from omnirl.algorithms.shared.values.exploration import nth_legal
from omnirl.algorithms.shared.values.losses import squared_loss, temporal_difference_loss
from omnirl.api import (
    ActContext,
    ArraySpec,
    DictSpec,
    DiscreteAction,
    EnvContext,
    EnvSpec,
    LearnerContext,
    MultiDiscreteAction,
    PolicyContext,
    SpaceError,
    Transitions,
    load_object,
)
from omnirl.loops.evaluation import evaluation_loop
from omnirl.networks.joined import joined
from omnirl.testing.environments import PropConfig, build_env
from omnirl.testing.fakes import FakeStreams

LOGITS = [1.0, 2.0, 3.0, 4.0]
MASK = [True, False, True, False]
# Of the two legal logits 1 and 3: p = 1 / (1 + e^2) and e^2 / (1 + e^2).
P_FIRST = 1.0 / (1.0 + math.exp(2.0))
ENTROPY = -(P_FIRST * math.log(P_FIRST) + (1.0 - P_FIRST) * math.log(1.0 - P_FIRST))
FOUR, FIVE = DiscreteAction(4), MultiDiscreteAction((3, 2))


def masked_spec(action, size):
    return EnvSpec(
        DictSpec((("x", ArraySpec((2,))), ("action_mask", ArraySpec((size,), "bool")))), action, id="maze"
    )


def policy_of(algorithms, name, spec, num_envs=2, modules=None):
    """A policy with its learner's first weights."""
    algorithm = algorithms[name]
    config = load_object(algorithm.config).model_validate(modules or {})
    learner = load_object(algorithm.learner)(config, spec, LearnerContext(0, 1, None, "cpu", 1, 3))
    policy = load_object(algorithm.policy)(config, spec, PolicyContext("sampler", 3, 4, num_envs))
    policy.set_weights(learner.get_weights())
    return policy


def observed(mask, num_envs=2):
    mask = np.array(mask, bool)
    return {
        "x": np.ones((num_envs, 2), np.float32),
        "action_mask": np.broadcast_to(mask, (num_envs, mask.shape[-1])),
    }


def acting(rng=None, num_envs=2):
    return ActContext(rng or np.random.default_rng(0), 0, 0.0, np.zeros(num_envs, bool))


# ------------------------------------------------------------------------------------------------ distributions


def test_the_numbers_of_a_masked_distribution():
    logits, mask = torch.tensor([LOGITS, LOGITS]), torch.tensor([MASK, MASK])
    found = likelihoods.categorical(legal_logits(logits, mask), torch.tensor([[0], [2]]))
    assert found.log_prob.tolist() == pytest.approx([math.log(P_FIRST), math.log(1 - P_FIRST)], abs=1e-6)
    assert found.entropy.tolist() == pytest.approx([ENTROPY, ENTROPY], abs=1e-6)
    assert pytest.approx(0.365334, abs=1e-6) == ENTROPY
    probabilities = torch.softmax(legal_logits(logits, mask), 1)
    assert probabilities[:, [1, 3]].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_the_gradient_is_that_of_the_legal_actions_alone():
    """By hand from the logits [1, 3] alone: d log p(0) = [1 - p, -(1 - p)]; nothing at the illegal ones."""
    logits, mask = torch.tensor([LOGITS]), torch.tensor([MASK])
    likelihood = likelihoods.categorical(legal_logits(logits, mask), torch.tensor([[0]]))
    gradient, _ = likelihood.gradient(torch.ones(1), 0.0)
    assert gradient.tolist()[0] == pytest.approx([1 - P_FIRST, 0.0, P_FIRST - 1, 0.0], abs=1e-6)
    entropic, _ = likelihood.gradient(torch.zeros(1), 1.0)
    # dH / dz_i = -p_i (log p_i + H)
    by_hand = [-p * (math.log(p) + ENTROPY) for p in (P_FIRST, 1 - P_FIRST)]
    assert entropic.tolist()[0] == pytest.approx([by_hand[0], 0.0, by_hand[1], 0.0], abs=1e-6)


def test_masks_of_several_choices_stand_one_after_the_other():
    logits = torch.tensor([[0.0, 5.0, 0.0, 7.0, 1.0]])
    mask = torch.tensor([[True, False, True, False, True]])
    found = likelihoods.multi_categorical(legal_logits(logits, mask), torch.tensor([[2, 1]]), (3, 2))
    assert found.log_prob.item() == pytest.approx(math.log(0.5))  # and log 1 of the only second digit
    assert found.entropy.item() == pytest.approx(math.log(2.0))


def test_one_legal_action_is_certain():
    logits, mask = torch.tensor([[-50.0, 80.0]]), torch.tensor([[True, False]])
    found = likelihoods.categorical(legal_logits(logits, mask), torch.tensor([[0]]))
    assert (found.log_prob.item(), found.entropy.item()) == (0.0, 0.0)


# ------------------------------------------------------------------------------------------------------ acting


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_illegal_actions_are_never_taken(specs, name):
    modules = {"policy": {"epsilon": 0.5}} if name == "dqn" else {}
    policy = policy_of(specs, name, masked_spec(FOUR, 4), num_envs=500, modules=modules)
    rng = np.random.default_rng(1)
    masks = rng.random((500, 4)) < 0.3
    masks[np.arange(500), rng.integers(4, size=500)] = True
    obs = {"x": rng.standard_normal((500, 2)).astype(np.float32), "action_mask": masks}
    for action in (
        policy.choose_action(obs, acting(num_envs=500)),
        *(policy.sample_action(obs, acting(np.random.default_rng(i), 500)).action for i in range(5)),
    ):
        assert masks[np.arange(500), action].all()
        assert set(action.tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_the_mask_is_no_input(specs, name):
    """With other masks that allow the same actions nothing changes, and the weights have no room for one."""
    policy = policy_of(specs, name, masked_spec(FOUR, 4))
    plain = EnvSpec(ArraySpec((2,)), FOUR)
    assert policy._names == policy_of(specs, name, plain)._names
    all_legal = policy.choose_action(observed([True] * 4), acting())
    best = int(all_legal[0])
    others = [action == best or action == (best + 1) % 4 for action in range(4)]
    assert policy.choose_action(observed(others), acting()).tolist() == all_legal.tolist()
    without = policy_of(specs, name, plain).choose_action(observed([True] * 4)["x"], acting())
    assert without.tolist() == all_legal.tolist()


def test_ppos_log_probabilities_are_those_of_the_legal_actions(specs):
    policy = policy_of(specs, "ppo", masked_spec(FOUR, 4))
    sample = policy.sample_action(observed(MASK), acting())
    outputs = sample.extras["outputs"]
    assert (outputs[:, [1, 3]] == np.float32(ILLEGAL)).all()
    kept = policy.finish({"outputs": outputs[None], "action": sample.action[None]})["log_prob"]
    first, second = outputs[0, 0], outputs[0, 2]
    log_total = np.logaddexp(first, second)
    by_hand = [(first if action == 0 else second) - log_total for action in sample.action]
    assert kept[0].tolist() == pytest.approx(by_hand, abs=1e-6)


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_a_mask_that_allows_nothing_names_the_sampler_and_the_environment(specs, name):
    policy = policy_of(specs, name, masked_spec(FOUR, 4))
    obs = observed([[True] * 4, [False] * 4])
    for act in (policy.choose_action, policy.sample_action):
        with pytest.raises(SpaceError) as caught:
            act(obs, acting())
        assert caught.value.lines == ("sampler 3, environment 1 (maze): action_mask allows no action",)


def test_each_of_several_choices_needs_a_legal_action(specs):
    policy = policy_of(specs, "ppo", masked_spec(FIVE, 5))
    samples = [
        policy.sample_action(observed([False, False, True, True, True]), acting()).action for _ in range(9)
    ]
    assert {tuple(row) for row in np.concatenate(samples).tolist()} <= {(2, 0), (2, 1)}
    with pytest.raises(SpaceError) as caught:
        policy.choose_action(observed([True, True, True, False, False]), acting())
    assert caught.value.lines == (
        "sampler 3, environment 0 (maze): action_mask allows no action at position 1",
    )


def test_without_a_mask_nothing_is_looked_for():
    legal = LegalActions(EnvSpec(ArraySpec((2,)), FOUR), PolicyContext("sampler", 0, 1, 2))
    assert legal.mask(np.zeros((2, 2))) is None


@pytest.mark.parametrize(
    ("share", "action"), [(0.0, 0), (0.33, 0), (0.34, 2), (0.66, 2), (0.67, 3), (0.999999, 3)]
)
def test_random_actions_are_drawn_from_the_legal_ones_alike(share, action):
    assert nth_legal(np.array([[True, False, True, True]]), np.array([share])).tolist() == [action]


def test_dqn_explores_legal_actions_alike(specs):
    policy = policy_of(
        specs, "dqn", masked_spec(FOUR, 4), num_envs=3000, modules={"policy": {"epsilon": 1.0}}
    )
    action = policy.sample_action(observed([True, False, True, True], 3000), acting(num_envs=3000)).action
    counts = np.bincount(action, minlength=4)
    assert counts[1] == 0
    assert counts[[0, 2, 3]] == pytest.approx(1000, abs=100)  # four standard deviations


# ------------------------------------------------------------------------------------------------------ targets


def transitions(next_masks, discount):
    count = len(next_masks)
    rows = {"x": np.zeros((count, 2), np.float32), "action_mask": np.ones((count, 3), bool)}
    return Transitions(
        obs=rows,
        action=np.zeros(count, np.int64),
        reward=np.ones(count, np.float32),
        next_obs={**rows, "action_mask": np.array(next_masks)},
        discount=np.array(discount, np.float32),
        index=np.arange(count),
        weight=np.ones(count, np.float32),
    )


def test_the_target_is_the_greatest_legal_value_of_the_next_state():
    """r = 1, gamma 0.9, Q_target(s') = [1, 5, 3]: 5.5 with all legal, 3.7 without the second; a terminal state and
    one where nothing is legal are worth nothing: 1."""
    spec = masked_spec(DiscreteAction(3), 3)
    masks = [[True] * 3, [True, False, True], [True, False, False], [False] * 3, [False] * 3]
    batch = transitions(masks, [0.9, 0.9, 0.9, 0.0, 0.9])
    tensors = transition_tensors(
        batch, joined(spec.observation), action_tensor(spec.action, torch.device("cpu")), torch.device("cpu")
    )
    assert tensors.obs.shape == (5, 2)
    loss = temporal_difference_loss(greatest_target_value, squared_loss)
    result = loss(
        tensors,
        torch.zeros(5),
        lambda obs: torch.zeros(len(obs), 3),
        lambda obs: torch.tensor([[1.0, 5.0, 3.0]]).expand(len(obs), 3),
    )
    assert result.error.tolist() == pytest.approx([5.5, 3.7, 1.9, 1.0, 1.0])


def test_the_action_of_the_online_network_is_a_legal_one_too():
    """What double Q-learning asks: argmax over legal values only, even where all of them are very low."""
    mask = torch.tensor([[False, True, True]])
    values = legal_values(lambda obs: torch.tensor([[9.0, -1e9, -2e9]]), mask)(torch.zeros(1, 2))
    assert values.argmax(1).tolist() == [1]


def test_a_batch_without_masks_has_none():
    batch = transitions([[True] * 3], [0.9])
    plain = dataclasses.replace(batch, obs=batch.obs["x"], next_obs=batch.next_obs["x"])
    device = torch.device("cpu")
    tensors = transition_tensors(plain, ArraySpec((2,)), action_tensor(DiscreteAction(3), device), device)
    assert tensors.next_mask is None


# ----------------------------------------------------------------------------------------------------- learning

PPO = {
    "learner": {"lr": 1e-2, "gamma": 0.9, "minibatch_size": 64, "ent_coef": 0.01},
    "memory": {"unroll_length": 16},
}
DQN = {
    "learner": {"lr": 3e-3, "gamma": 0.9, "target_update_interval": 25, "steps_per_update": 2},
    "memory": {"capacity": 5000, "batch_size": 32, "warmup_steps": 100, "unroll_length": 4},
    "policy": {"epsilon": 0.3},
    "network": {"hidden_sizes": [32, 32]},
}


def returns(policy, env_id, seed=9):
    """Of 200 episodes of deterministic actions; the environment raises at an illegal one."""
    environment = build_env(PropConfig(id=env_id), EnvContext("evaluator", 0, 8))
    return [episode.total_reward for episode in evaluation_loop(environment, policy, 200, FakeStreams(seed))]


class BestOfMenu:
    """Takes the greatest legal action."""

    def choose_action(self, obs, act):
        return 3 - obs["action_mask"][:, ::-1].argmax(axis=1)


@pytest.mark.probe
@pytest.mark.parametrize(("algorithm", "modules", "steps"), [("ppo", PPO, 60 * 128), ("dqn", DQN, 1700)])
def test_the_best_legal_action_is_learned(miniature, algorithm, modules, steps):
    run = miniature(algorithm, modules, "menu", steps=steps)
    assert returns(run.policy, "menu") == returns(BestOfMenu(), "menu")


@pytest.mark.probe
def test_masked_digits_are_learned(miniature):
    run = miniature("ppo", PPO, "masked_digits", steps=60 * 128)
    assert set(returns(run.policy, "masked_digits")) == {2.0}


@pytest.mark.probe
@pytest.mark.parametrize("n_step", [1, 2])
def test_dqn_values_a_state_by_its_legal_actions(miniature, n_step):
    """Q(s0) = [0, 0.9]. Where illegal actions are bootstrapped from, both are 0.9 (with n_step 1)."""
    modules = {**DQN, "memory": {**DQN["memory"], "n_step": n_step}}
    run = miniature("dqn", modules, "fork", steps=1700)
    with torch.no_grad():
        values = run.learner.network(torch.zeros(1, 1))
    assert values[0].tolist() == pytest.approx([0.0, 0.9], abs=0.02)
    assert set(returns(run.policy, "fork")) == {1.0}
