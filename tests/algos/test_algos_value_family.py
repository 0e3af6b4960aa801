"""What distinguishes the value learners: their targets, their feedback, their keys, and how samplers explore."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch

from omnirl.algorithms import c51, ddqn, dqn, dueling_dqn, per_dqn, qr_dqn
from omnirl.algorithms.c51 import config as c51_config
from omnirl.algorithms.per_dqn import config as per_config
from omnirl.api import ActContext, Clock, Feedback, MemoryContext, PolicyContext, Transitions, value_at

PACKAGES = {
    "dqn": dqn,
    "ddqn": ddqn,
    "dueling_dqn": dueling_dqn,
    "per_dqn": per_dqn,
    "c51": c51,
    "qr_dqn": qr_dqn,
}


def batch_of(seed=0, count=16, weight=1.0):
    rng = np.random.default_rng(seed)
    return Transitions(
        obs=rng.standard_normal((count, 3)).astype(np.float32),
        action=rng.integers(0, 2, count),
        reward=rng.standard_normal(count).astype(np.float32),
        next_obs=rng.standard_normal((count, 3)).astype(np.float32),
        discount=np.where(rng.random(count) < 0.2, 0.0, 0.99).astype(np.float32),
        index=np.arange(count) + 100,
        weight=np.full(count, weight, np.float32),
    )


def learner_of(name, spec, context, **learner):
    package = PACKAGES[name]
    return package.Learner(package.Config.model_validate({"learner": learner}), spec, context)


def with_other_target(learner):
    """So that it matters which network chooses and which values."""
    rng = torch.Generator().manual_seed(9)
    learner.target_parameters.values.add_(
        0.3 * torch.randn(learner.target_parameters.values.shape, generator=rng)
    )
    return learner


def errors_of(learner, batch, choose):
    """r + discount Q_target(s', argmax Q_chooser(s')) - Q(s, a), by plain networks."""
    online, target = learner.network, learner.target_network
    chooser = {"online": online, "target": target}[choose]
    with torch.no_grad():
        following = torch.from_numpy(batch.next_obs)
        best = chooser(following).argmax(1)
        values = target(following)[torch.arange(16), best].numpy()
        taken = online(torch.from_numpy(batch.obs)).numpy()[np.arange(16), batch.action]
    return batch.reward + batch.discount * values - taken


@pytest.mark.parametrize(
    ("name", "choose"),
    [("dqn", "target"), ("ddqn", "online"), ("dueling_dqn", "online"), ("per_dqn", "online")],
)
def test_which_network_chooses_the_next_action(name, choose, vector_spec, learner_context, clock):
    learner = with_other_target(learner_of(name, vector_spec, learner_context))
    batch = batch_of()
    expected = errors_of(learner, batch, choose)
    other = errors_of(learner, batch, {"online": "target", "target": "online"}[choose])
    learner.learn(batch, clock(0))
    found = learner.metrics()["td_error"]
    assert found == pytest.approx(np.abs(expected).mean(), rel=1e-5)
    assert abs(found - np.abs(other).mean()) > 1e-3


@pytest.mark.parametrize(
    ("name", "size", "outputs"),
    [
        # Atoms -1, 0, 1: masses of 1/2, 0, 1/2 and of 0, 1/2, 1/2, after logits that are not normalised.
        ("c51", {"num_atoms": 3, "v_min": -1.0, "v_max": 1.0}, [[90.0, 0.0, 90.0], [0.0, 5.0, 5.0]]),
        # Means 10 / 3 and 4, against the greatest and the middle quantile.
        ("qr_dqn", {"num_quantiles": 3}, [[5.0, 0.0, 5.0], [4.0, 4.0, 4.0]]),
    ],
)
def test_a_distribution_is_judged_by_its_mean(name, size, outputs, vector_spec):
    package = PACKAGES[name]
    config = package.Config.model_validate({"learner": size, "network": {"hidden_sizes": [4]}})
    policy = package.Policy(config, vector_spec, PolicyContext("evaluator", 0, 1, 2))
    bias = np.array(outputs, np.float32).reshape(-1)
    zeros = {"layers.0.weight": (4, 3), "layers.0.bias": (4,), "layers.1.weight": (6, 4)}
    weights = {part: np.zeros(shape, np.float32) for part, shape in zeros.items()}
    policy.set_weights({**weights, "layers.1.bias": bias})
    act = ActContext(np.random.default_rng(0), 0, 0.0, np.zeros(2, bool))
    assert policy.choose_action(np.zeros((2, 3), np.float32), act).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("name", "size", "online", "target", "errors"),
    [
        # Means of quantiles: the online network has 3 and 0, the target network 10 and 12.
        ("qr_dqn", {"num_quantiles": 2}, [2, 4, 0, 0], [9, 11, 10, 14], {"target": 12.0, "online": 10.0}),
        # Means over the atoms 0 and 1: 0.993 and 0.5, and 1 / (1 + 1 / e) = 0.731 and 1 / (1 + 1 / e^2) = 0.881.
        (
            "c51",
            {"num_atoms": 2, "v_min": 0.0, "v_max": 1.0},
            [0, 5, 0, 0],
            [0, 1, 0, 2],
            {"target": 0.380797, "online": 0.231059},
        ),
    ],
)
@pytest.mark.parametrize("choose", ["target", "online"])
def test_the_distribution_is_that_of_the_action_that_the_named_network_prefers(
    choose, name, size, online, target, errors, vector_spec, learner_context, clock
):
    """The online network prefers the first action, the target network the second, which was taken, for no reward."""
    learner = learner_of(name, vector_spec, learner_context, next_action=choose, **size)
    for network, bias in ((learner.network, online), (learner.target_network, target)):
        parameters = list(network.parameters())
        for parameter in parameters:
            parameter.data.zero_()
        parameters[-1].data.copy_(torch.tensor(bias, dtype=torch.float32))
    ones = np.ones(16, np.float32)
    batch = dataclasses.replace(batch_of(), action=ones.astype(np.int64), reward=0 * ones, discount=ones)
    learner.learn(batch, clock(0))
    assert learner.metrics()["td_error"] == pytest.approx(errors[choose], rel=1e-5)


@pytest.mark.parametrize("name", PACKAGES)
def test_only_prioritized_replay_is_told_the_errors(name, vector_spec, learner_context, clock):
    learner = with_other_target(learner_of(name, vector_spec, learner_context))
    batch = batch_of(weight=0.5)
    feedback = learner.learn(batch, clock(0))
    if name != "per_dqn":
        assert feedback is None
        return
    fresh = with_other_target(learner_of(name, vector_spec, learner_context))
    np.testing.assert_array_equal(feedback.index, batch.index)
    # |error|, not multiplied by the weights, and not clipped.
    np.testing.assert_allclose(
        feedback.priority, np.abs(errors_of(fresh, batch, "online")), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("name", PACKAGES)
def test_weights_multiply_the_loss(name, vector_spec, learner_context, clock):
    losses = []
    for weight in (1.0, 0.5):
        learner = learner_of(name, vector_spec, learner_context)
        learner.learn(batch_of(weight=weight), clock(0))
        losses.append(learner.metrics()["loss"])
    assert losses[1] == pytest.approx(losses[0] / 2, rel=1e-5)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_parameters_gradient_is_that_of_the_weighted_loss(name, vector_spec, learner_context, clock):
    """The slopes that are fed to the network by hand, against differences of the loss."""
    learner = with_other_target(learner_of(name, vector_spec, learner_context, lr=0.0, max_grad_norm=None))
    if name == "dueling_dqn":
        learner.network._scale = None  # a rescaled gradient is no derivative
    batch = dataclasses.replace(batch_of(), weight=np.linspace(0.2, 1.0, 16, dtype=np.float32))
    values = learner.parameters.values

    def loss_at(shift):
        values.add_(shift)
        learner.learn(batch, clock(0))
        values.sub_(shift)
        return learner.metrics()["loss"]

    # A direction with a gradient: that of the gradient itself.
    loss_at(torch.zeros_like(values))
    gradient = learner.parameters.gradient.clone()
    direction = gradient / gradient.norm()
    step = 1e-2
    difference = (loss_at(step * direction) - loss_at(-step * direction)) / (2 * step)
    # Where the online network chooses too, a step may change its choice, which is no part of the gradient.
    tolerance = 0.1 if name in ("ddqn", "dueling_dqn", "per_dqn") else 0.03
    assert difference == pytest.approx(float(gradient.norm()), rel=tolerance)


@pytest.mark.parametrize("name", ["dqn", "ddqn", "per_dqn"])
def test_numpy_and_torch_make_the_same_update(name, vector_spec, learner_context, clock):
    """What is done in numpy on the CPU is done with tensors elsewhere."""
    states = []
    for in_numpy in (True, False):
        learner = with_other_target(learner_of(name, vector_spec, learner_context, target_update_interval=2))
        assert learner._in_numpy
        learner._in_numpy = in_numpy
        batches = [batch_of(seed, weight=0.5) for seed in range(4)]
        batches[1].reward[0] = np.inf
        feedback = [learner.learn(batch, clock(update)) for update, batch in enumerate(batches)][-1]
        states.append(
            (learner.parameters.values, learner.target_parameters.values, learner.metrics(), feedback)
        )
    (ours, targets, metrics, told), (theirs, their_targets, their_metrics, their_told) = states
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(targets, their_targets)
    assert metrics == pytest.approx(their_metrics, rel=1e-5)
    assert metrics["nonfinite_updates"] == 1
    if told is not None:
        np.testing.assert_allclose(told.priority, their_told.priority, rtol=1e-5)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_restored_learner_goes_on_bit_for_bit(name, vector_spec, learner_context, clock, trees_equal):
    keys = {"target_update_interval": 3, "lr": {"kind": "linear", "start": 1e-2, "end": 0}}
    original = learner_of(name, vector_spec, learner_context, **keys)
    for update in range(4):
        original.learn(batch_of(update), clock(update))
    restored = learner_of(name, vector_spec, dataclasses.replace(learner_context, seed=99), **keys)
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    for learner in (original, restored):
        for update in range(4, 9):
            learner.learn(batch_of(update), clock(update))
    assert trees_equal(restored.state_dict(), original.state_dict())


@pytest.mark.parametrize("name", PACKAGES)
def test_a_nonfinite_batch_changes_nothing_but_counts(name, vector_spec, learner_context, clock, trees_equal):
    learner = learner_of(name, vector_spec, learner_context, target_update_interval=1)
    learner.learn(batch_of(), clock(0))
    before = copy.deepcopy(learner.state_dict())
    bad = batch_of(1)
    bad.reward[3] = np.nan
    learner.learn(bad, clock(1))
    after = learner.state_dict()
    for part in ("parameters", "target_parameters", "optimizer"):
        assert trees_equal(after[part], before[part])
    assert learner.nonfinite_in_row == 1


@pytest.mark.parametrize("name", PACKAGES)
def test_samplers_explore_by_the_ladder(name, golden, vector_spec):
    """epsilon^(1 + 7 i / (N - 1)), as often as that over many steps."""
    case = golden("dqn/apex_epsilons")
    given, package = case["inputs"], PACKAGES[name]
    config = package.Config.model_validate(
        {
            "policy": {"epsilon": given["base"], "ladder_alpha": given["alpha"]},
            "memory": {"unroll_length": 500},
        }
    )
    act = ActContext(np.random.default_rng(0), 0, 0.0, np.zeros(40, bool))
    for index, expected in enumerate(case["expected"]["eps"]):
        policy = package.Policy(config, vector_spec, PolicyContext("sampler", index, given["n"], 40))
        assert policy._explore.epsilon(act) == pytest.approx(expected, rel=1e-6)


# ---------------------------------------------------------------- prioritized replay


def test_per_memory_is_the_replay_of_its_section(golden, make_rollout, vector_spec):
    """Probabilities, weights of a batch and the greatest priority of new transitions, as the goldens have them."""
    case = golden("per/proportional")
    given, expected = case["inputs"], case["expected"]
    memory = per_memory(vector_spec, capacity=8, batch_size=8, alpha=given["alpha"], beta=given["beta"])
    memory.add(make_rollout(8, 1), due=0)
    memory.feedback(Feedback(np.arange(8), np.abs(given["td_errors"])))
    priorities = memory._tree.get(np.arange(8))
    np.testing.assert_allclose(priorities, expected["priorities"], rtol=1e-9)
    assert memory._tree.total == pytest.approx(expected["total"], rel=1e-9)
    batch = memory.next_batch(Clock(0, 0, 0.0, 3))
    weights = np.array(expected["weights_unnormalised"])[batch.index]
    np.testing.assert_allclose(batch.weight, weights / weights.max(), rtol=1e-5)
    # Of the golden's own batch, divided by its greatest and not by that of the whole replay.
    drawn = np.array(expected["weights_unnormalised"])[given["batch_indices"]]
    np.testing.assert_allclose(drawn / drawn.max(), expected["weights_batch_norm_batch_max"], rtol=1e-9)


def per_memory(spec, **memory):
    config = per_dqn.Config.model_validate({"memory": memory})
    return per_dqn.Memory(config, spec, MemoryContext(0, 1, lambda array, op: array))


def test_per_memory_adds_with_the_greatest_priority(golden, make_rollout, vector_spec):
    case = golden("per/max_priority_insert")
    expected = case["expected"]
    memory = per_memory(vector_spec, capacity=8, batch_size=1, alpha=case["inputs"]["alpha"])
    stored, greatest = [], []
    for number, step in enumerate(case["inputs"]["sequence"]):
        if step == "add":
            memory.add(make_rollout(1, 1, number=number), due=0)
            stored.append(float(memory._tree.get(np.array([len(memory) - 1]))[0]))
        else:
            _, slot, error = step.replace("idx", "").replace("td=", "").split()
            memory.feedback(Feedback(np.array([int(slot)]), np.array([float(error)])))
        greatest.append(memory._greatest)
    np.testing.assert_allclose(stored, expected["stored_p_alpha_of_each_add"], rtol=1e-9)
    np.testing.assert_allclose(greatest, expected["raw_max_after"], rtol=1e-9)


def test_beta_rises_to_one_over_the_run_by_default(golden):
    case = golden("per/beta_schedule")
    beta = per_config.MemoryConfig().beta
    for step, expected in zip(case["inputs"]["steps"], case["expected"]["beta"], strict=True):
        clock = Clock(step, 0, min(1.0, step / case["inputs"]["total"]), 0)
        assert value_at(beta, clock) == pytest.approx(expected)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_memory_makes_n_step_transitions(name, make_rollout, vector_spec, clock):
    """Rewards 1, 2, 4 at gamma 0.5 and n 3: the first window is 1 + 1 + 1 with a discount of 1/8."""
    package = PACKAGES[name]
    config = package.Config.model_validate(
        {"memory": {"n_step": 3, "batch_size": 1, "capacity": 10}, "learner": {"gamma": 0.5}}
    )
    memory = package.Memory(config, vector_spec, MemoryContext(0, 1, lambda array, op: array))
    memory.add(make_rollout(3, 1, rewards=np.array([[1.0], [2.0], [4.0]], np.float32)), due=0)
    batch = memory.next_batch(clock(0))
    assert (batch.reward[0], batch.discount[0]) == (3.0, 0.125)


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize(
    ("name", "section", "keys", "message"),
    [
        ("c51", "learner", {"v_min": 5, "v_max": 5}, r"v_max \(5\) must be greater than v_min \(5\)"),
        ("c51", "learner", {"num_atoms": 1}, "greater than or equal to 2"),
        ("c51", "learner", {"next_action": "both"}, "target"),
        ("c51", "learner", {"loss": "huber"}, "loss"),
        ("qr_dqn", "learner", {"kappa": -1}, "kappa"),
        ("qr_dqn", "learner", {"num_quantiles": 0}, "num_quantiles"),
        ("per_dqn", "memory", {"alpha": 1.5}, "alpha"),
        ("per_dqn", "memory", {"priority_epsilon": 0}, "priority_epsilon"),
        ("per_dqn", "memory", {"beta": {"kind": "linear", "start": 0.4, "end": 1.2}}, "reaches 1.2"),
        ("dqn", "memory", {"alpha": 0.5}, "alpha"),
        ("ddqn", "network", {"rescale_gradient": True}, "rescale_gradient"),
    ],
)
def test_keys_out_of_range_are_refused(name, section, keys, message):
    with pytest.raises(ValueError, match=message):
        PACKAGES[name].Config.model_validate({section: keys})


def test_defaults_of_the_distributions_are_the_papers():
    assert c51_config.LearnerConfig().adam_epsilon == pytest.approx(0.01 / 32)
    assert (c51_config.LearnerConfig().num_atoms, c51_config.LearnerConfig().v_max) == (51, 10.0)
