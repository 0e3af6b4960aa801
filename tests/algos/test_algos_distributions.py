"""Log-probabilities, entropies and samples, in numpy and in torch, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from omnirl.algorithms.shared.acting.action_head import (
    CategoricalHead,
    GaussianHead,
    action_scale,
    num_outputs,
)
from omnirl.algorithms.shared.acting.distributions import (
    NoiseBlock,
    categorical_log_prob,
    gaussian_log_prob,
    gumbel,
    normal,
)
from omnirl.algorithms.shared.training import likelihoods
from omnirl.api import ContinuousAction, DiscreteAction, MultiDiscreteAction

INF = float("inf")


def test_categorical_in_numpy_and_torch(golden):
    case = golden("categorical/logprob_entropy_kl")
    logits, actions = np.array(case["inputs"]["logits"], np.float32), np.array(case["inputs"]["actions"])
    np.testing.assert_allclose(
        categorical_log_prob(logits, actions), case["expected"]["log_prob"], rtol=1e-5, atol=1e-5
    )
    log_prob, entropy, _ = likelihoods.categorical(torch.tensor(logits), torch.tensor(actions).unsqueeze(1))
    np.testing.assert_allclose(log_prob.numpy(), case["expected"]["log_prob"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(entropy.numpy(), case["expected"]["entropy"], rtol=1e-5, atol=1e-5)


def test_gaussian_in_numpy_and_torch(golden):
    case = golden("diag_gaussian/logprob_entropy_kl")
    mean, log_std, action = (
        np.array(case["inputs"][key], np.float32)[None] for key in ("mean", "log_std", "action")
    )
    expected = case["expected"]
    np.testing.assert_allclose(gaussian_log_prob(mean, log_std[0], action), [expected["log_prob"]], rtol=1e-5)
    log_prob, entropy, _ = likelihoods.gaussian(
        torch.tensor(mean), torch.tensor(log_std[0]), torch.tensor(action)
    )
    np.testing.assert_allclose(log_prob.numpy(), [expected["log_prob"]], rtol=1e-5)
    np.testing.assert_allclose(entropy.numpy(), [expected["entropy"]], rtol=1e-5)


def test_several_choices_are_independent():
    """log pi and entropy are sums: two positions of 2 and 3 uniform choices."""
    logits = torch.zeros(1, 5)
    log_prob, entropy, _ = likelihoods.multi_categorical(logits, torch.tensor([[1, 2]]), (2, 3))
    assert float(log_prob) == pytest.approx(-np.log(6.0))
    assert float(entropy) == pytest.approx(np.log(6.0))


def test_gradients_equal_autograds():
    """Of a sum of log-probabilities and entropies with weights, for each distribution; numpy's are the same."""
    rng = torch.Generator().manual_seed(0)
    outputs, log_std = torch.randn(9, 5, generator=rng), torch.randn(5, generator=rng)
    weights, d_entropy = torch.randn(9, generator=rng), 0.3
    cases = {
        "categorical": (torch.randint(5, (9, 1), generator=rng), likelihoods.categorical, ()),
        "multi": (
            torch.randint(2, (9, 2), generator=rng),
            likelihoods.multi_categorical,
            ((2, 3),),
        ),
        "gaussian": (torch.randn(9, 5, generator=rng), likelihoods.gaussian, ()),
    }
    for name, (action, distribution, rest) in cases.items():
        leaves = (outputs.clone().requires_grad_(), log_std.clone().requires_grad_())
        arguments = leaves if name == "gaussian" else leaves[:1]
        log_prob, entropy, gradient = distribution(*arguments, action, *rest)
        ((weights * log_prob).sum() + d_entropy * entropy.sum()).backward()
        with torch.no_grad():
            d_outputs, d_log_std = gradient(weights, d_entropy)
        torch.testing.assert_close(d_outputs, leaves[0].grad, rtol=1e-5, atol=1e-5)
        plain = distribution(*(leaf.detach().numpy() for leaf in arguments), action.numpy(), *rest)
        in_numpy = (plain.log_prob, plain.entropy, plain.gradient(weights.numpy(), d_entropy)[0])
        for actual, expected in zip(in_numpy, (log_prob, entropy, d_outputs), strict=True):
            assert isinstance(actual, np.ndarray)
            np.testing.assert_allclose(actual, expected.detach().numpy(), rtol=1e-5, atol=1e-5)
        assert (d_log_std is None) == (name != "gaussian")
        if d_log_std is not None:
            torch.testing.assert_close(d_log_std, leaves[1].grad, rtol=1e-5, atol=1e-5)


def test_categorical_samples_follow_the_softmax():
    """20,000 samples of softmax([0, 1, 2]) = [.0900, .2447, .6652]; three standard errors are below 0.011."""
    head = CategoricalHead(DiscreteAction(3), num_envs=2000, rows=10)
    rng = np.random.default_rng(0)
    outputs = np.tile(np.array([0.0, 1.0, 2.0], np.float32), (2000, 1))
    actions = np.concatenate([head.sample(outputs, rng).action for _ in range(10)])
    np.testing.assert_allclose(np.bincount(actions) / 20000, [0.0900, 0.2447, 0.6652], atol=0.011)


def test_gaussian_samples_have_mean_and_deviation_in_environment_units():
    """Bounds [-2, 4] have centre 1 and half range 3: mean 1 + 3 * 0.5, deviation 3 * exp(-1)."""
    head = GaussianHead(ContinuousAction((-2.0,), (4.0,)), num_envs=20000, rows=1)
    head.set_log_std(np.array([-1.0], np.float32))
    actions = head.sample(np.full((20000, 1), 0.5, np.float32), np.random.default_rng(0)).action
    assert actions.dtype == np.float32
    assert actions.mean() == pytest.approx(2.5, abs=0.03)
    assert actions.std() == pytest.approx(3 * np.exp(-1.0), abs=0.03)
    assert actions.max() > 4.0  # the sample itself is not clipped


def test_mode_of_a_multi_discrete_action():
    head = CategoricalHead(MultiDiscreteAction((2, 3)), num_envs=2, rows=1)
    outputs = np.array([[0, 1, 5, 0, 0], [1, 0, 0, 0, 2]], np.float32)
    assert head.mode(outputs).tolist() == [[1, 0], [0, 2]]
    sample = head.sample(outputs, np.random.default_rng(0))
    assert sample.action.shape == (2, 2)
    uniform = np.zeros((1, 2, 5), np.float32)
    np.testing.assert_allclose(head.log_prob(uniform, np.zeros((1, 2, 2), np.int64)), -np.log(6.0), rtol=1e-6)


@pytest.mark.parametrize(
    ("low", "high", "center", "half"),
    [
        (-2.0, 4.0, 1.0, 3.0),
        (-INF, INF, 0.0, 1.0),
        (0.0, INF, 0.0, 1.0),
        (-3.4e38, 3.4e38, 0.0, 1.0),  # the largest float32: bounds in name only
        (1.0, 1.0, 0.0, 1.0),
    ],
)
def test_only_sensible_bounds_scale(low, high, center, half):
    actual_center, actual_half = action_scale(ContinuousAction((low,), (high,)))
    assert (float(actual_center[0]), float(actual_half[0])) == (center, half)


@pytest.mark.parametrize(
    ("spec", "outputs"),
    [
        (DiscreteAction(4), 4),
        (MultiDiscreteAction((2, 3)), 5),
        (ContinuousAction((0.0, 0.0), (1.0, 1.0)), 2),
    ],
)
def test_number_of_outputs(spec, outputs):
    assert num_outputs(spec) == outputs


@pytest.mark.parametrize("draw", [gumbel, normal])
def test_noise_of_a_rollout_depends_on_its_generator_alone(draw):
    """A rollout of 3 of the 4 rows of a block leaves one behind: it must not reach the next rollout."""
    block = NoiseBlock(draw, rows=4, shape=(2,))
    first = np.random.default_rng(0)
    for _ in range(3):
        block.next(first)
    second = np.random.default_rng(1)
    after = [block.next(second).copy() for _ in range(6)]
    fresh, same = NoiseBlock(draw, rows=4, shape=(2,)), np.random.default_rng(1)
    expected = [fresh.next(same).copy() for _ in range(6)]
    np.testing.assert_array_equal(after, expected)
    assert len({row.tobytes() for row in after}) == 6


def test_gumbel_noise_is_finite_for_an_exponential_of_zero():
    class Zeros:
        def standard_exponential(self, shape, dtype):
            return np.zeros(shape, dtype)

    assert np.isfinite(gumbel(Zeros(), (2,))).all()


def test_a_log_std_of_another_size_is_refused():
    head = GaussianHead(ContinuousAction((0.0,), (1.0,)), 1, 1)
    with pytest.raises(ValueError, match="log_std"):
        head.set_log_std(np.zeros(2, np.float32))
