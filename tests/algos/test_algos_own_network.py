"""A network class of the user's own: what it is given, how it stands in each algorithm, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.algorithms.shared.acting.acting_network import acting_dueling_network, acting_network
from omnirl.algorithms.shared.acting.observations import network_input, network_observation
from omnirl.algorithms.shared.training.flat_parameters import FlatParameters
from omnirl.algorithms.shared.training.torch_network import TorchNetwork
from omnirl.api import ArraySpec, ConfigError, ContinuousAction, DictSpec, DiscreteAction, EnvSpec
from omnirl.networks.actor_critic import ActorCritic
from omnirl.networks.actor_critics import build_actor_critics
from omnirl.networks.build import build_network
from omnirl.networks.config import (
    ActorCriticNetworkConfig,
    CriticsNetworkConfig,
    DuelingNetworkConfig,
    NetworkConfig,
)
from omnirl.networks.dueling import build_dueling
from omnirl.networks.ensemble_gradient import ensemble_pass
from omnirl.networks.initialization import generator
from omnirl.networks.output_gradient import output_gradient
from omnirl.networks.own_network import OwnClass, OwnNetwork
from omnirl.testing import AlgorithmSuite
from omnirl.testing.miniature import Miniature
from omnirl.testing.noise import NoiseEnvironment

FAKES = Path(__file__).parent / "fakes"
SPECS = {spec.name: spec for spec in ALGORITHMS}
VECTOR = ArraySpec((3,))
IMAGE = ArraySpec((2, 4, 5), "uint8", "image")
MIXED = DictSpec(
    (
        ("camera", IMAGE),
        ("arm", ArraySpec((2, 3))),
        ("on", ArraySpec((1, 4, 4), "bool", "image")),
        ("action_mask", ArraySpec((2,), "bool")),
    )
)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(FAKES))


def section(name, model=NetworkConfig, **keys):
    return model.model_validate({"class": f"acme_nets:{name}", "hidden_sizes": [6], **keys})


def taken(observation, config=None):
    spec = EnvSpec(observation, DiscreteAction(2))
    return network_observation(config or section("Anything"), spec)


def own(name, observation=VECTOR, **kwargs):
    return OwnClass(section(name, kwargs=kwargs), taken(observation))


# ------------------------------------------------------------------------------ what the class is given


def test_vectors_come_in_their_own_shape():
    seen = own("Echo", ArraySpec((2, 3)))
    rows = torch.arange(12.0).view(2, 6)
    assert torch.equal(seen(rows), rows)
    assert own("Anything", ArraySpec((2, 3))).network.observation == ArraySpec((2, 3))


def test_pixels_are_in_the_unit_interval():
    features = own("Echo", IMAGE)(torch.full((2, 2, 4, 5), 255, dtype=torch.uint8))
    assert torch.equal(features, torch.ones(2, 40))
    floats = own("Echo", ArraySpec((1, 2, 2), "float32", "image"))(torch.full((1, 1, 2, 2), 0.5))
    assert floats.tolist() == [[0.5] * 4]


def test_a_dictionary_comes_apart_without_its_mask():
    rng = np.random.default_rng(0)
    obs = {
        "camera": rng.integers(0, 256, (3, 2, 4, 5), np.uint8),
        "arm": rng.standard_normal((3, 2, 3)).astype(np.float32),
        "on": rng.random((3, 1, 4, 4)) < 0.5,
        "action_mask": np.ones((3, 2), bool),
    }
    spec = taken(MIXED)
    network = own("Anything", MIXED)
    assert dict(network.network.observation.entries) == dict(MIXED.inputs())
    parts = network._inputs(torch.from_numpy(network_input(obs, spec)))
    assert set(parts) == {"camera", "arm", "on"}
    np.testing.assert_allclose(parts["camera"], obs["camera"] / 255.0, rtol=1e-6)
    assert torch.equal(parts["arm"], torch.from_numpy(obs["arm"]))
    assert torch.equal(parts["on"], torch.from_numpy(obs["on"]).float())


def test_stacked_frames_are_in_the_spec():
    assert own("Anything", ArraySpec((3,), frame_stack=4)).network.observation == ArraySpec((12,))


def test_arguments_have_the_types_of_their_annotations():
    given = own("Anything", width=1e1, sizes=[3, 4], gain=2, mode="gated").network.given
    assert given == {"width": 10, "sizes": (3, 4), "gain": 2.0, "mode": "gated"}
    assert type(given["width"]) is int
    assert own("Echo", gain=1).network.anything == {"gain": 1}


# ------------------------------------------------------------------------------ in our networks


@pytest.mark.parametrize("observation", [VECTOR, IMAGE, MIXED], ids=["vector", "image", "dict"])
def test_the_policy_acts_as_it_learns(observation):
    config, spec = section("Anything"), taken(observation)
    rows = network_input(noise(observation, 5), spec)
    for build, act in ((build_network, acting_network), (build_dueling, acting_dueling_network)):
        if build is build_dueling:
            config = section("Anything", DuelingNetworkConfig, hidden_sizes=[7, 6])
        net = build(config, spec, 4)
        net.init_uniform(generator(1))
        acting = act(config, spec, 4)
        assert isinstance(acting, TorchNetwork)
        weights = {name: parameter.detach().numpy() for name, parameter in net.named_parameters()}
        assert acting.names() == list(weights)
        acting.set_weights(weights)
        with torch.no_grad():
            expected = net(torch.from_numpy(rows)).numpy()
        np.testing.assert_allclose(acting(rows), expected, rtol=1e-6, atol=1e-6)


def noise(observation, rows):
    rng = np.random.default_rng(3)
    entries = observation.entries if isinstance(observation, DictSpec) else (("", observation),)
    found = {}
    for name, entry in entries:
        shape = (rows, *entry.shape)
        whole = entry.dtype != "float32"
        found[name] = (rng.integers(0, 2, shape) if whole else rng.standard_normal(shape)).astype(entry.dtype)
    return found if isinstance(observation, DictSpec) else found[""]


def test_hidden_layers_and_the_head_follow_the_features():
    net = build_network(section("Echo", hidden_sizes=[5]), VECTOR, 2)
    shapes = {name: tuple(parameter.shape) for name, parameter in net.named_parameters()}
    assert shapes == {
        "features.hidden.layers.0.weight": (5, 3),
        "features.hidden.layers.0.bias": (5,),
        "head.layers.0.weight": (2, 5),
        "head.layers.0.bias": (2,),
    }
    bare = build_network(section("Echo", hidden_sizes=[]), VECTOR, 2)
    bare.init_orthogonal(generator(0), output_gain=1.0)
    x = torch.randn((4, 3), generator=generator(2))
    torch.testing.assert_close(bare(x), x @ bare.head.layers[0].weight.T)


@pytest.mark.parametrize(("wanted", "shared"), [(None, True), (True, True), (False, False)])
def test_policy_and_value_share_the_class_unless_told_otherwise(wanted, shared):
    config = section("Anything", ActorCriticNetworkConfig, shared_trunk=wanted)
    net = ActorCritic(config, VECTOR, 2, None, generator(0))
    instances = [module for module in net.modules() if isinstance(module, OwnClass)]
    assert (net.shared, len(instances)) == (shared, 1 if shared else 2)
    if not shared:
        assert not torch.equal(*(instance.network.layer.weight for instance in instances))


def two_critics(name):
    return build_actor_critics(
        section(name, CriticsNetworkConfig),
        VECTOR,
        generator(0),
        actor_outputs=2,
        action_size=2,
        num_critics=2,
        critic_outputs=1,
    )


def test_each_critic_has_an_instance_and_the_action_joins_the_features():
    networks = two_critics("Echo")
    assert isinstance(networks.actor, OwnNetwork)
    x = torch.randn((4, 5), generator=generator(1))
    # Features that are the observation itself: the ensemble that follows sees the rows as they are.
    assert torch.equal(networks.critics(x), networks.critics.joined(x))
    drawn = two_critics("Anything")
    first, second = (critic.network.layer.weight for critic in drawn.critics.owns)
    assert not torch.equal(first, second)
    assert drawn.critics(x, 1).shape == (1, 4, 1)
    assert torch.equal(drawn.critics(x, 1)[0], drawn.critics(x)[0])


def test_the_way_back_through_critics_equals_autograds():
    networks = two_critics("PartlyFrozen")
    flat = FlatParameters(networks.critics, torch.device("cpu"))
    flat.gradient.fill_(7.0)
    single = ensemble_pass(networks.critics)
    x = torch.randn((6, 5), generator=generator(3)).requires_grad_()
    d = torch.randn((2, 6, 1), generator=generator(4))
    learned = [parameter for parameter in networks.critics.parameters() if parameter.requires_grad]
    expected = torch.autograd.grad((networks.critics(x) * d).sum(), [*learned, x], allow_unused=True)
    single.forward(x.detach())
    single.backward(d)
    for parameter, gradient in zip(learned, expected[:-1], strict=True):
        wanted = torch.zeros_like(parameter) if gradient is None else gradient
        torch.testing.assert_close(parameter.grad, wanted)
    frozen = [p for p in networks.critics.parameters() if not p.requires_grad]
    assert len(frozen) == 4
    assert all(not p.grad.any() for p in frozen)
    single.forward(x.detach())
    torch.testing.assert_close(single.input_gradient(d, 2), expected[-1][:, -2:])


def test_what_is_frozen_or_unused_stays():
    net = build_network(section("PartlyFrozen"), VECTOR, 2)
    net.init_uniform(generator(0))
    flat = FlatParameters(net, torch.device("cpu"))
    flat.gradient.fill_(7.0)
    way = output_gradient(net)
    way.forward(torch.ones(4, 3))
    way.backward(torch.ones(4, 2))
    still = {name.split("network.")[-1] for name, p in net.named_parameters() if not p.grad.any()}
    assert still == {"frozen.weight", "frozen.bias", "unused.weight", "unused.bias"}


def test_a_seed_determines_the_class_and_nothing_else_is_touched():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    nets = [build_network(section("Constant"), VECTOR, 2) for _ in range(3)]
    for net, seed in zip(nets, (5, 5, 6), strict=True):
        net.init_uniform(generator(seed))
    assert torch.equal(torch.get_rng_state(), before)
    first, same, other = (net.features.own.network for net in nets)
    assert torch.equal(first.layer.weight, same.layer.weight)
    assert not torch.equal(first.layer.weight, other.layer.weight)
    # What no weights carry is the same everywhere, whatever the seed.
    assert torch.equal(first.projection, other.projection)


# ------------------------------------------------------------------------------ in every algorithm

SMALL = {"capacity": 200, "batch_size": 8, "warmup_steps": 32, "unroll_length": 4}


def modules(name, network, **keys):
    """Small settings of the algorithm ``name`` with the class ``network``."""
    policy_gradient = SPECS[name].family == "policy gradient"
    given = {
        "memory": {"unroll_length": 4} if policy_gradient else SMALL,
        "network": {"class": f"acme_nets:{network}", "hidden_sizes": [6], **keys},
    }
    if name == "ppo":
        given["learner"] = {"minibatch_size": 8, "epochs": 2}
    return given


def spec_for(name, observation=VECTOR):
    discrete = "discrete" in SPECS[name].supports.actions
    return EnvSpec(observation, DiscreteAction(2) if discrete else ContinuousAction((-1.0,), (1.0,)))


def run_of(name, network, observation=VECTOR, **keys):
    spec = spec_for(name, observation)
    return Miniature(SPECS[name], modules(name, network, **keys), spec, NoiseEnvironment(spec, 2))


@pytest.mark.parametrize("name", list(SPECS))
def test_every_algorithm_learns_with_it(name):
    """What can learn moves, what cannot stays, and the policy takes the weights."""
    run = run_of(name, "PartlyFrozen")
    before = {key: array.copy() for key, array in run.weights().items()}
    run.run(2)
    moved = {key: not np.array_equal(array, before[key]) for key, array in run.weights().items()}
    assert len(moved) >= 8
    for key, has_moved in moved.items():
        assert has_moved == (".frozen." not in key and ".unused." not in key), key
    assert all(np.isfinite(value) for metrics in run.metrics for value in metrics.values())


@pytest.mark.parametrize("name", list(SPECS))
def test_dictionaries_of_vectors_with_it(name):
    observation = DictSpec((("a", ArraySpec((2,))), ("b", ArraySpec((1, 2)))))
    run_of(name, "Anything", observation, layer_norm=True).run(2)


@pytest.mark.parametrize("observation", [IMAGE, MIXED], ids=["image", "dict"])
@pytest.mark.parametrize("name", ["ppo", "impala", "dqn", "dueling_dqn", "c51"])
def test_images_with_it(name, observation):
    run_of(name, "Anything", observation).run(2)


class OwnSuite(AlgorithmSuite):
    """The checks that third parties' algorithms are held to: among them that a run goes on bit for bit, that the same
    run twice is the same, and that a policy refuses other weights."""

    __test__ = False
    torch_parts = ("policy", "learner", "agent_file", "config", "data_flow", "memory")


@pytest.mark.probe
class TestPPOWithOwnClass(OwnSuite):
    __test__ = True
    spec = SPECS["ppo"]
    modules = modules("ppo", "Anything", shared_trunk=False)


@pytest.mark.probe
class TestDuelingDQNWithOwnClass(OwnSuite):
    __test__ = True
    spec = SPECS["dueling_dqn"]
    modules = modules("dueling_dqn", "Constant")


@pytest.mark.probe
class TestSACWithOwnClass(OwnSuite):
    __test__ = True
    spec = SPECS["sac"]
    modules = modules("sac", "Anything", critic_layer_norm=True)


# ------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "BatchNormed",
            " has the buffer 'norm.running_mean', which no weights carry (batch statistics: use layer norm",
        ),
        ("Dropping", ".forward gives other features for the same observation (leave out what is random)"),
        ("Mixing", ".forward: a row's features depend on the other rows"),
        ("Unflat", ".forward must give features [N, F], and gave a tensor [3, 8, 1] for N = 3"),
        ("Doubled", ": the parameter 'extra' must be float32, not torch.float64"),
        ("Dividing", ".forward gives NaN or infinity for observations that are finite"),
        ("Exiting", " raised SystemExit: 0 ("),
        ("Raising", ".forward raised AttributeError: 'Raising' object has no attribute 'layers' ("),
    ],
)
def test_a_class_that_breaks_its_promise_is_told_in_one_line(name, text):
    with pytest.raises(ConfigError) as caught:
        own(name)
    (line,) = caught.value.lines
    assert line.startswith(f"modules.network.class: acme_nets:{name}{text}")
    assert "\n" not in line


def test_what_the_class_raises_is_told_with_its_place():
    """The line of the file is that of the slip."""
    code = (FAKES / "acme_nets.py").read_text().splitlines()
    line = next(i for i, text in enumerate(code, 1) if "self.layers(observation)" in text)
    with pytest.raises(ConfigError, match=rf"acme_nets\.py:{line}\)$"):
        own("Raising")
    with pytest.raises(ConfigError, match=r"acme_nets:Anything raised \w+: .*-3"):
        own("Anything", width=-3)
