"""Networks for images: published sizes, pixels scaled once, the kind that ``auto`` means, acting as learning."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from omnirl.algorithms.shared.acting.observations import network_observation
from omnirl.algorithms.shared.training.torch_network import TorchNetwork
from omnirl.api import ArraySpec, ConfigError, DictSpec, DiscreteAction, EnvSpec
from omnirl.config.models import plain
from omnirl.networks.build import build_network
from omnirl.networks.cnn import ImageFeatures
from omnirl.networks.config import NetworkConfig, ValueNetworkConfig
from omnirl.networks.convolutions import MINATAR, NATURE, Convolutions, smallest
from omnirl.networks.initialization import generator
from omnirl.networks.resnet import ResidualConvolutions
from omnirl.runtime.run_dir import same_configuration

ATARI = ArraySpec((1, 84, 84), "uint8", "image", frame_stack=4)
SMALL = ArraySpec((4, 10, 10), "bool", "image")
KINDS = ["cnn", "resnet", "minatar"]


def image_config(kind, **keys):
    return NetworkConfig.model_validate({"kind": kind, **keys})


def test_the_published_sizes():
    """Mnih et al. 2015: 3136 after the convolutions; Espeholt et al. 2018: 3872; Young and Tian 2019: 1024."""
    shape = ATARI.stacked().shape
    assert shape == (4, 84, 84)
    assert Convolutions(shape, NATURE).output_size == 3136
    assert ResidualConvolutions(shape).output_size == 32 * 11 * 11
    assert Convolutions((4, 10, 10), MINATAR).output_size == 16 * 8 * 8
    sizes = [NetworkConfig.model_validate({"kind": kind}).hidden_sizes for kind in KINDS]
    assert sizes == [(512,), (256,), (128,)]
    # Weights and biases of the three convolutions, of 3136 x 512 and of 512 x 6.
    net = build_network(image_config("cnn"), ATARI.stacked(), 6)
    assert sum(p.numel() for p in net.parameters()) == 8224 + 32832 + 36928 + 1606144 + 3078


def test_resnet_has_fifteen_convolutions_and_equals_torchs_own_modules():
    """Built a second time from nn.Conv2d and nn.MaxPool2d, as figure 3 of Espeholt et al. draws it."""
    net = ResidualConvolutions((3, 21, 18))
    net.init_uniform(generator(0))
    layers = [(section.entry, list(section.blocks)) for section in net.sections]
    assert sum(1 + len(blocks) for _, blocks in layers) == 15

    def conv(layer):
        out, inputs = layer.weight.shape[:2]
        module = nn.Conv2d(inputs, out, 3, padding=1)
        module.weight.data.copy_(layer.weight)
        module.bias.data.copy_(layer.bias)
        return module

    x = torch.rand(2, 3, 21, 18, generator=generator(1))
    y = x
    for entry, (a, b, c, d) in layers:
        y = nn.MaxPool2d(3, 2, 1)(conv(entry)(y))
        for first, second in ((a, b), (c, d)):
            y = y + nn.Sequential(nn.ReLU(), conv(first), nn.ReLU(), conv(second))(y)
    with torch.no_grad():
        torch.testing.assert_close(net(x), nn.ReLU()(y).flatten(1))
    assert net.output_size == net(x).shape[1] == 32 * 3 * 3


@pytest.mark.parametrize(("side", "features"), [(10, 128), (64, 2048), (84, 3872), (96, 4608)])
def test_resnet_takes_pictures_of_any_size(side, features):
    net = ResidualConvolutions((3, side, side))
    assert net.output_size == features
    assert net(torch.zeros(1, 3, side, side)).shape == (1, features)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("dtype", "brightest"), [(torch.uint8, 255), (torch.float32, 1.0), (torch.bool, True)]
)
def test_the_brightest_pixel_is_one(kind, dtype, brightest):
    """uint8 is divided by 255 once; what is in [0, 1] already is not divided again."""
    name = str(dtype).removeprefix("torch.")
    features = ImageFeatures((2, 40, 40), (8,), "relu", kind=kind, dtype=name)
    seen = []
    features.convolutions.register_forward_hook(lambda module, given, _: seen.append(given[0]))
    features.init_uniform(generator(0))
    features(torch.full((3, 2, 40, 40), brightest, dtype=dtype))
    assert seen[0].dtype == torch.float32
    torch.testing.assert_close(seen[0], torch.ones(3, 2, 40, 40))


def test_uint8_images_are_not_written_to():
    features = ImageFeatures((1, 10, 10), (8,), "relu", kind="minatar", dtype="float32")
    features.init_uniform(generator(0))
    pixels = torch.rand(2, 1, 10, 10, generator=generator(1))
    before = pixels.clone()
    assert torch.equal(features(pixels), features(pixels))
    assert torch.equal(pixels, before)


@pytest.mark.parametrize(
    ("observation", "kind", "sizes", "activation"),
    [
        (ArraySpec((4,)), "mlp", (64, 64), "tanh"),
        (ATARI, "cnn", (512,), "relu"),
        (ArraySpec((3, 36, 99), "uint8", "image"), "cnn", (512,), "relu"),
        (ArraySpec((3, 35, 99), "uint8", "image"), "minatar", (128,), "relu"),
        (SMALL, "minatar", (128,), "relu"),
        (DictSpec((("a", ArraySpec((2,))), ("b", ATARI))), "cnn", (512,), "relu"),
        (DictSpec((("a", ArraySpec((2,))),)), "mlp", (64, 64), "tanh"),
    ],
)
def test_what_auto_means(observation, kind, sizes, activation):
    chosen = NetworkConfig().for_observation(observation)
    assert (chosen.kind, chosen.hidden_sizes, chosen.activation) == (kind, sizes, activation)


def test_what_was_set_stays_whatever_auto_becomes():
    config = ValueNetworkConfig(hidden_sizes=(32,))
    assert config.for_observation(ATARI).hidden_sizes == (32,)
    assert type(config.for_observation(ATARI)) is ValueNetworkConfig
    assert config.undecided() == {"activation"}
    assert image_config("resnet").undecided() == frozenset()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_acts_as_it_learns(kind):
    observation = ArraySpec((2, 36, 40), "uint8", "image")
    config = image_config(kind, hidden_sizes=[16])
    net = build_network(config, observation, 3)
    net.init_orthogonal(generator(0), 1.0)
    acting = TorchNetwork(config, observation, 3, "policy.")
    weights = {f"policy.{name}": p.detach().numpy().copy() for name, p in net.named_parameters()}
    assert acting.names() == list(weights)
    acting.set_weights(weights)
    images = np.random.default_rng(0).integers(0, 256, (2, *observation.shape), np.uint8)
    with torch.no_grad():
        expected = net(torch.tensor(images)).numpy()
    np.testing.assert_allclose(acting(images), expected, rtol=1e-5, atol=1e-5)
    assert np.abs(expected).max() < 100


@pytest.mark.parametrize(("sizes", "side"), [(NATURE, 36), (MINATAR, 3)])
def test_the_smallest_picture(sizes, side):
    assert smallest(sizes) == side
    assert Convolutions((1, side, side), sizes).output_size > 0


def test_pictures_too_small_for_nature_are_refused_with_what_takes_them():
    with pytest.raises(
        ConfigError, match=r"cnn needs images of at least 36 x 36 pixels, not 10 x 10 .*minatar"
    ):
        build_network(image_config("cnn"), SMALL, 2)


def test_the_network_sees_stacks():
    spec = EnvSpec(ATARI, DiscreteAction(6))
    assert network_observation(NetworkConfig(), spec) == ArraySpec((4, 84, 84), "uint8", "image")
    vectors = EnvSpec(ArraySpec((3,), frame_stack=2), DiscreteAction(6))
    assert network_observation(NetworkConfig(), vectors) == ArraySpec((6,))
    for kind in KINDS:
        with pytest.raises(ConfigError, match=f"{kind} takes images, and the observations are vectors"):
            network_observation(image_config(kind), vectors)


def test_a_run_that_decided_auto_is_the_run_that_was_asked_for():
    """What ``auto`` leaves open is not written, so that it does not come back as if it had been set."""
    always = {"layer_norm": False, "class": None, "kwargs": {}}
    asked = plain(NetworkConfig())
    assert asked == {"kind": "auto", **always}
    assert plain(NetworkConfig(hidden_sizes=(8,))) == {"kind": "auto", "hidden_sizes": [8], **always}
    stored = plain(NetworkConfig.model_validate(asked).for_observation(ATARI))
    assert stored == {"kind": "cnn", "hidden_sizes": [512], "activation": "relu", **always}
    assert same_configuration({"network": asked}, {"network": stored})
    assert not same_configuration({"network": {**asked, "hidden_sizes": [8]}}, {"network": stored})
    assert not same_configuration({"network": {"kind": "cnn"}}, {"network": stored})
