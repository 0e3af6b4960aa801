"""Flat parameters and optimizers: the same numbers as torch.optim over a hundred steps."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from omnirl.algorithms.shared.off_policy.targets import follow_
from omnirl.algorithms.shared.training.flat_optimizers import FlatAdam, FlatRMSprop
from omnirl.algorithms.shared.training.flat_parameters import FlatParameters, clip_gradient_
from omnirl.networks.initialization import generator
from omnirl.networks.mlp import MLP

CPU = torch.device("cpu")
ONE, ZERO = torch.ones(()), torch.zeros(())


def network(seed=0):
    net = MLP((3, 8, 2), "tanh")
    net.init_orthogonal(generator(seed), output_gain=1.0)
    return net


@pytest.mark.parametrize(
    ("flat", "reference"),
    [
        (lambda p: FlatAdam(p, 1e-5), lambda p: torch.optim.Adam(p, lr=3e-3, eps=1e-5)),
        (
            lambda p: FlatAdam(p, 1e-8, (0.5, 0.9)),
            lambda p: torch.optim.Adam(p, lr=3e-3, eps=1e-8, betas=(0.5, 0.9)),
        ),
        (
            lambda p: FlatRMSprop(p, "torch", 1e-5, 0.99),
            lambda p: torch.optim.RMSprop(p, lr=3e-3, eps=1e-5, alpha=0.99),
        ),
    ],
)
def test_a_hundred_steps_equal_torch_optim(flat, reference):
    ours, theirs = network(), network()
    parameters = FlatParameters(ours, CPU)
    flat, reference = flat(parameters), reference(theirs.parameters())
    data = torch.randn(100, 16, 3, generator=generator(1))
    for inputs in data:
        parameters.gradient.zero_()
        ours(inputs).square().mean().backward()
        norm = clip_gradient_(parameters.gradient, 0.5)
        flat.step(3e-3, ONE)
        reference.zero_grad()
        theirs(inputs).square().mean().backward()
        expected_norm = torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        reference.step()
        torch.testing.assert_close(norm, expected_norm, rtol=1e-4, atol=1e-7)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


class OneNumber:
    """A flat buffer of one parameter."""

    def __init__(self, value):
        self.values, self.gradient = torch.tensor([value]), torch.zeros(1)


@pytest.mark.parametrize(("form", "key"), [("torch", "torch"), ("tf", "tf_like")])
def test_rmsprop_in_both_forms(golden, form, key):
    case = golden("optim/rmsprop_torch_vs_tf")
    given = case["inputs"]
    parameters = OneNumber(given["x0"])
    optimizer = FlatRMSprop(parameters, form, given["eps"], given["alpha"])
    for gradient, expected in zip(given["grads"], case["expected"][key], strict=True):
        parameters.gradient.fill_(gradient)
        optimizer.step(given["lr"], ONE)
        assert float(parameters.values) == pytest.approx(expected, rel=1e-5)


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="keras"):
        FlatRMSprop(OneNumber(1.0), "keras")


@pytest.mark.parametrize(
    "build", [lambda p: FlatAdam(p), lambda p: FlatRMSprop(p, "torch"), lambda p: FlatRMSprop(p, "tf")]
)
def test_a_step_that_is_not_finite_changes_nothing(build):
    parameters = FlatParameters(network(), CPU)
    optimizer = build(parameters)
    parameters.gradient.fill_(0.1)
    optimizer.step(1e-2, ONE)
    before = parameters.values.clone(), copy.deepcopy(optimizer.state_dict())
    parameters.gradient.fill_(float("nan"))
    optimizer.step(1e-2, ZERO)
    assert torch.equal(parameters.values, before[0])
    for name, array in optimizer.state_dict().items():
        np.testing.assert_array_equal(array, before[1][name])


def test_clip_is_of_the_norm_over_all_parameters(golden):
    case = golden("optim/clip_grad_norm")
    flat = torch.tensor(np.concatenate([np.ravel(g) for g in case["inputs"]["grads"]]))
    norm = clip_gradient_(flat, case["inputs"]["max_norm"])
    assert float(norm) == pytest.approx(case["expected"]["total_norm"])
    expected = np.concatenate([np.ravel(g) for g in case["expected"]["clipped"]])
    np.testing.assert_allclose(flat.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("limit", [None, 5.0, 14.0])
def test_a_gradient_within_the_limit_stays(limit):
    flat = torch.tensor([3.0, 4.0])
    assert float(clip_gradient_(flat, limit)) == 5.0
    # At the limit itself the 1e-6 of torch's formula makes it a little shorter.
    np.testing.assert_allclose(flat.numpy(), [3.0, 4.0], rtol=1e-6)


class OnAnotherDevice(torch.Tensor):
    """A tensor of this host that says it is on a GPU, where numbers are not looked at."""

    device = torch.device("cuda")


@pytest.mark.parametrize("kind", [torch.Tensor, OnAnotherDevice])
def test_a_gradient_that_is_not_finite_does_not_stay_between_the_parameters(kind):
    """One NaN among the gradients of a weight and a bias: a gap of the buffer stays 0, and once they are written anew
    the norm is theirs alone."""
    parameters = FlatParameters(MLP((1, 1), "tanh"), CPU)
    gradient = parameters.gradient.as_subclass(kind)
    gradient[0], gradient[16] = float("nan"), 1.0
    assert torch.isnan(clip_gradient_(gradient, 0.5))
    gradient[0], gradient[16] = 3.0, 4.0
    assert float(clip_gradient_(gradient, 0.5)) == 5.0
    assert parameters.gradient.sum() == pytest.approx(0.5 * 7 / 5, rel=1e-5)


def test_target_follows(golden):
    case = golden("polyak/three_steps")
    online, target = OneNumber(0.0), OneNumber(0.0)
    online.values, target.values = (torch.tensor(case["inputs"][k]) for k in ("online", "target"))
    for step in range(case["inputs"]["k"]):
        follow_(target, online, torch.tensor(case["inputs"]["tau"]))
        if step == 0:
            np.testing.assert_allclose(target.values.numpy(), case["expected"]["after_1"], rtol=1e-5)
    np.testing.assert_allclose(target.values.numpy(), case["expected"]["after_3"], rtol=1e-5)
    follow_(target, online, ONE)
    assert target.values.tolist() == case["expected"]["tau1_is_hard_copy"]


def test_all_parameters_are_views_of_one_buffer():
    net = network()
    before = {name: tensor.detach().clone() for name, tensor in net.named_parameters()}
    parameters = FlatParameters(net, CPU)
    for name, tensor in net.named_parameters():
        assert torch.equal(tensor, before[name])
        assert tensor.untyped_storage().data_ptr() == parameters.values.untyped_storage().data_ptr()
        assert tensor.grad.untyped_storage().data_ptr() == parameters.gradient.untyped_storage().data_ptr()
        assert tensor.data_ptr() % 64 == parameters.values.data_ptr() % 64
    parameters.values.zero_()
    assert not any(tensor.any() for tensor in net.parameters())


def test_arrays_are_copies_and_load_is_strict():
    parameters = FlatParameters(network(), CPU)
    arrays = parameters.arrays()
    parameters.values.zero_()
    assert np.abs(arrays["layers.0.weight"]).sum() > 0
    parameters.load(arrays)
    for name, array in parameters.arrays().items():
        np.testing.assert_array_equal(array, arrays[name])
    with pytest.raises(KeyError, match=r"missing \['layers.0.weight'\], unexpected \['layers.9.weight'\]"):
        parameters.load({name.replace("0.weight", "9.weight"): a for name, a in arrays.items()})
    with pytest.raises(ValueError, match=r"layers.0.bias: shape \(1,\)"):
        parameters.load({**arrays, "layers.0.bias": np.zeros(1, np.float32)})


def test_a_state_of_another_size_is_refused():
    optimizer = FlatAdam(FlatParameters(network(), CPU))
    state = optimizer.state_dict()
    with pytest.raises(ValueError, match="first"):
        optimizer.load_state_dict({**state, "first": np.zeros(3, np.float32)})
