"""Stage 2: algorithm and network against the environment's spaces, and the device against the hardware."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnirl.api import (
    ArraySpec,
    ContinuousAction,
    DictSpec,
    DiscreteAction,
    EnvSpec,
    MultiDiscreteAction,
    Supports,
)
from omnirl.api.errors import ClusterError, ConfigError
from omnirl.config import hardware
from omnirl.config.check import check_device, check_spaces
from omnirl.config.files import load_text
from omnirl.config.resolve import ResolvedConfig, resolve
from omnirl.config.spaces import is_supported
from omnirl.plugins import Registry

TEXT = """\
env: {module: acme_envs, id: walk}
agent: {module: %s}
device: {learner: %s}
"""
VECTOR = ArraySpec((4,))
IMAGE = ArraySpec((3, 84, 84), "uint8", layout="image")
TWO = DiscreteAction(2)
BOUNDED = ContinuousAction((-2.0, -1.0), (2.0, 1.0))
UNBOUNDED = ContinuousAction((-1.0, -1.0), (1.0, float("inf")))


def configured(registry: Registry, module: str, extra: str = "", device: str = "cpu") -> ResolvedConfig:
    return resolve(load_text(TEXT % (module, device) + extra, "train.yaml"), registry)


@pytest.mark.parametrize(
    ("module", "observation", "action"),
    [
        ("acme_q", VECTOR, TWO),
        ("acme_pg", VECTOR, BOUNDED),
        ("acme_pg", IMAGE, UNBOUNDED),
        ("acme_ac", VECTOR, BOUNDED),
    ],
)
def test_what_fits_is_accepted(fake_registry: Registry, module: str, observation: Any, action: Any) -> None:
    check_spaces(configured(fake_registry, module), EnvSpec(observation, action))


@pytest.mark.parametrize(
    ("module", "observation", "action", "line"),
    [
        (
            "acme_q",
            VECTOR,
            ContinuousAction((-2.0,), (2.0,)),
            "acme_q needs discrete actions; walk has continuous actions of 1 value in [-2, 2] "
            "(installed for it: "
            "acme_ac, acme_pg)",
        ),
        (
            "acme_ac",
            VECTOR,
            TWO,
            "acme_ac needs bounded continuous actions; walk has 2 discrete actions (installed for "
            "it: acme_pg, "
            "acme_q)",
        ),
        (
            "acme_ac",
            VECTOR,
            UNBOUNDED,
            "acme_ac needs finite action bounds: action_space.high[1] = inf (installed for it: acme_pg)",
        ),
        (
            "acme_ac",
            VECTOR,
            ContinuousAction((float("-inf"),), (1.0,)),
            "acme_ac needs finite action bounds: action_space.low[0] = -inf (installed for it: acme_pg)",
        ),
        (
            "acme_q",
            VECTOR,
            MultiDiscreteAction((2, 3)),
            "acme_q needs discrete actions; walk has multi-discrete actions of [2, 3] values",
        ),
        (
            "acme_q",
            IMAGE,
            TWO,
            "acme_q takes vector observations; walk has image observations of shape [3, 84, 84] "
            "(installed for it: "
            "acme_pg)",
        ),
        (
            "acme_pg",
            DictSpec((("a", VECTOR), ("b/0", VECTOR))),
            TWO,
            "acme_pg takes vector or image observations; walk has dict observations (a, b/0)",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(
    fake_registry: Registry, module: str, observation: Any, action: Any, line: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check_spaces(configured(fake_registry, module), EnvSpec(observation, action))
    assert caught.value.lines == (f"train.yaml:2:9 agent.module: {line}",)


MASK = ("action_mask", ArraySpec((2,), "bool"))
PICTURE_AND_SPEED = DictSpec((("camera", IMAGE), ("speed", VECTOR)))


def supporting(config: ResolvedConfig, fakes: Any, *observations: str, mask: bool = False) -> ResolvedConfig:
    """The configuration with an algorithm of discrete and multi-discrete actions and these observations."""
    supports = fakes.Supports(("discrete", "multi_discrete"), observations, mask)
    spec = fakes.algorithm("acme_q", "QConfig", "q_flow", supports, "acme.q")
    object.__setattr__(config, "algorithm", spec)
    return config


@pytest.mark.parametrize(
    ("kind", "observation", "action"),
    [
        ("mlp", DictSpec((("a", VECTOR), ("b/0", VECTOR))), TWO),
        ("mlp", DictSpec((("a", VECTOR), MASK)), TWO),
        (
            "mlp",
            DictSpec((("a", VECTOR), ("action_mask", ArraySpec((5,), "bool")))),
            MultiDiscreteAction((2, 3)),
        ),
        ("cnn", PICTURE_AND_SPEED, TWO),
        ("cnn", DictSpec((*PICTURE_AND_SPEED.entries, MASK)), TWO),
    ],
)
def test_dictionaries_and_masks_fit_who_supports_them(
    fake_registry: Registry, fakes: Any, kind: str, observation: Any, action: Any
) -> None:
    config = configured(fake_registry, "acme_q", f"modules: {{network: {{kind: {kind}}}}}\n")
    check_spaces(
        supporting(config, fakes, "vector", "image", "dict", mask=True), EnvSpec(observation, action)
    )


@pytest.mark.parametrize(
    ("supports", "observation", "action", "line"),
    [
        (
            ("vector", "dict"),
            PICTURE_AND_SPEED,
            TWO,
            "agent.module: acme_q takes vector or dict observations; walk has dict observations (camera: image, speed)",
        ),
        (
            ("vector", "dict"),
            DictSpec((("a", VECTOR), MASK)),
            TWO,
            "agent.module: acme_q takes no action masks; walk has action_mask",
        ),
        (
            ("dict", "mask"),
            DictSpec((("a", VECTOR), ("action_mask", ArraySpec((3,), "bool")))),
            TWO,
            "env: walk: action_mask is bool [3]; 2 discrete actions need bool [2]",
        ),
        (
            ("dict", "mask"),
            DictSpec((("a", VECTOR), ("action_mask", ArraySpec((2,), "float32")))),
            TWO,
            "env: walk: action_mask is float32 [2]; 2 discrete actions need bool [2]",
        ),
        (
            ("dict", "mask"),
            DictSpec((MASK,)),
            TWO,
            "env: walk observes nothing but action_mask, which no network sees",
        ),
        (
            ("dict", "image", "mask"),
            PICTURE_AND_SPEED,
            TWO,
            "modules.network.kind: mlp takes vector observations; walk has dict observations (camera: image, speed) "
            "(use cnn)",
        ),
    ],
)
def test_dictionaries_and_masks_that_do_not_fit_are_one_line(
    fake_registry: Registry, fakes: Any, supports: tuple[str, ...], observation: Any, action: Any, line: str
) -> None:
    config = configured(fake_registry, "acme_q", "modules: {network: {kind: mlp}}\n")
    kinds = [kind for kind in supports if kind != "mask"]
    with pytest.raises(ConfigError) as caught:
        check_spaces(supporting(config, fakes, *kinds, mask="mask" in supports), EnvSpec(observation, action))
    (told,) = caught.value.lines
    assert told.endswith(line)


def test_a_mask_on_continuous_actions_is_one_line(fake_registry: Registry, fakes: Any) -> None:
    config = configured(fake_registry, "acme_pg")
    supports = fakes.Supports(("continuous",), ("dict",), True)
    object.__setattr__(
        config, "algorithm", fakes.algorithm("acme_pg", "QConfig", "q_flow", supports, "acme.pg")
    )
    with pytest.raises(ConfigError, match="walk has action_mask and continuous actions, which have no mask"):
        check_spaces(config, EnvSpec(DictSpec((("a", VECTOR), MASK)), UNBOUNDED))


SUPPORTS = Supports(("discrete", "bounded_continuous"), ("vector", "dict"))


@pytest.mark.parametrize(
    ("supports", "observation", "action", "fits"),
    [
        (SUPPORTS, VECTOR, TWO, True),
        (SUPPORTS, VECTOR, BOUNDED, True),
        (SUPPORTS, VECTOR, UNBOUNDED, False),
        (SUPPORTS, VECTOR, MultiDiscreteAction((2,)), False),
        (SUPPORTS, IMAGE, TWO, False),
        (SUPPORTS, DictSpec((("a", VECTOR),)), TWO, True),
        (SUPPORTS, PICTURE_AND_SPEED, TWO, False),
        (SUPPORTS, DictSpec((("a", VECTOR), MASK)), TWO, False),
        (replace(SUPPORTS, action_mask=True), DictSpec((("a", VECTOR), MASK)), TWO, True),
        (replace(SUPPORTS, observations=("dict", "image")), PICTURE_AND_SPEED, TWO, True),
        (replace(SUPPORTS, actions=("continuous",)), VECTOR, BOUNDED, True),
    ],
)
def test_what_an_algorithm_declares_says_what_it_takes(
    supports: Supports, observation: Any, action: Any, fits: bool
) -> None:
    assert is_supported(supports, EnvSpec(observation, action)) is fits


def test_the_spec_may_name_the_environment(fake_registry: Registry) -> None:
    with pytest.raises(ConfigError, match=r"; Swim-v2 has continuous actions of 2 values in \[-2, 2\]"):
        check_spaces(configured(fake_registry, "acme_q"), EnvSpec(VECTOR, BOUNDED, id="Swim-v2"))


def test_actions_and_observations_are_both_reported(fake_registry: Registry) -> None:
    with pytest.raises(ConfigError) as caught:
        check_spaces(configured(fake_registry, "acme_q"), EnvSpec(IMAGE, BOUNDED))
    assert len(caught.value.lines) == 2


def test_a_network_must_fit_the_observations(fake_registry: Registry, fakes: Any) -> None:
    cnn = configured(fake_registry, "acme_q", "modules: {network: {kind: cnn}}\n")
    with pytest.raises(ConfigError) as caught:
        check_spaces(cnn, EnvSpec(VECTOR, TWO))
    assert caught.value.lines == (
        "train.yaml:4:21 modules.network.kind: cnn takes image observations; walk has vector "
        "observations of shape "
        "[4] (use mlp)",
    )


def test_an_mlp_takes_no_images(fake_registry: Registry, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured(fake_registry, "acme_q")
    supports = fakes.Supports(actions=("discrete",), observations=("vector", "image"))
    object.__setattr__(
        config, "algorithm", fakes.algorithm("acme_q", "QConfig", "q_flow", supports, "acme.q")
    )
    with pytest.raises(ConfigError) as caught:
        check_spaces(config, EnvSpec(IMAGE, TWO))
    assert caught.value.lines == (
        "train.yaml modules.network.kind: mlp takes vector observations; walk has image observations "
        "of shape "
        "[3, 84, 84] (use cnn)",
    )


@pytest.fixture
def torch_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a torch of this source first on the import path of child processes."""

    def put(source: str) -> None:
        (tmp_path / "torch.py").write_text(source)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return put


def fake_torch(cuda: str, available: bool, count: int = 1) -> str:
    return (
        "from types import SimpleNamespace as S\n__version__ = '2.13.0'\n"
        f"version = S(cuda={cuda})\ncuda = S(is_available=lambda: {available}, device_count=lambda: {count})\n"
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            fake_torch("None", False),
            "this torch (2.13.0) is built without CUDA: install another, or use cpu or auto",
        ),
        (fake_torch("'12.8'", False), "torch 2.13.0 (CUDA 12.8) finds no GPU: use cpu or auto"),
        (
            "raise ImportError('libcudart is missing')",
            "torch cannot be asked for CUDA: ImportError: libcudart is missing",
        ),
    ],
)
def test_cuda_without_cuda_is_one_line(
    fake_registry: Registry, torch_that: Any, source: str, text: str
) -> None:
    torch_that(source)
    with pytest.raises(ConfigError) as caught:
        check_device(configured(fake_registry, "acme_q", device="cuda"))
    assert caught.value.lines == (f"train.yaml:3:10 device.learner: {text}",)


def test_each_learner_needs_a_gpu(
    fake_registry: Registry, torch_that: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch_that(fake_torch("'12.8'", True, 2))
    config = configured(fake_registry, "acme_pg", device="cuda")
    for learners in (1, 2):
        check_device(config.replace({"runner": {"num_learners": learners}}))
    with pytest.raises(ClusterError) as caught:
        check_device(config.replace({"runner": {"num_learners": 3}}))
    assert caught.value.exit_code == 6
    text = "3 learners need a GPU each, torch finds 2: lower it, or use device.learner=cpu"
    assert caught.value.lines == (f"override runner.num_learners: {text}",)
    check_device(config.replace({"runner": {"num_learners": 3}, "ray": {"address": "elsewhere:6379"}}))
    monkeypatch.setattr(hardware.shutil, "which", lambda name: name)  # as if there were a driver
    assert [hardware.has_cuda(learners) for learners in (1, 2, 3)] == [True, True, False]


def test_cuda_with_cuda_is_accepted(fake_registry: Registry, torch_that: Any) -> None:
    torch_that(fake_torch("'12.8'", True))
    check_device(configured(fake_registry, "acme_q", device="gpu"))


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_other_devices_ask_nothing(
    fake_registry: Registry, torch_that: Any, tmp_path: Path, device: str
) -> None:
    torch_that(f"open({str(tmp_path / 'asked')!r}, 'w')")
    check_device(configured(fake_registry, "acme_q", device=device))
    assert not (tmp_path / "asked").exists()


def test_configurations_are_read_and_checked_without_anything_heavy(installation: Any) -> None:
    fakes = Path(__file__).parent / "fakes" / "acme_rl.py"
    plugin = (
        "from omnirl.api import hookimpl\nOMNIRL_API = 1\n"
        "@hookimpl\ndef omnirl_algorithms():\n    import acme_rl\n    return [acme_rl.Q]\n"
        "@hookimpl\ndef omnirl_env_backends():\n    import acme_rl\n    return [acme_rl.ENVS]\n"
    )
    modules = {"acme_plugin": plugin, "acme_rl": fakes.read_text()}
    installation.add("acme-rl", "1.2", {"acme": "acme_plugin"}, modules)
    assert (
        installation.ask(
            "import sys\nfrom omnirl.config import check, files, resolve, schema\n"
            "tree = files.load_text('env: {module: acme_envs, id: x}\\nagent: {module: acme_q}\\n"
            "runner: {max_updates: 1}', 't')\n"
            "config = resolve.resolve(tree, registry)\ncheck.check_files(config)\n"
            "schema.json_schema(registry, config.algorithm, config.backend)\n"
            "answer = [name for name in ('torch', 'ray', 'gymnasium') if name in sys.modules]"
        )
        == []
    )
