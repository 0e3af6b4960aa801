"""Building environments: what the spec says, and one line for every mistake."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from omnirl.api.environment import EnvContext
from omnirl.api.errors import ConfigError
from omnirl.api.plugin import EnvBackendSpec, load_object
from omnirl.api.specs import ArraySpec, ContinuousAction, DiscreteAction
from omnirl.envs.gymnasium import plugin
from omnirl.envs.gymnasium.backend import BACKEND
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.making import make


def refused(**keys: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        BACKEND.get_env_spec(GymnasiumConfig(**keys))
    assert caught.value.exit_code == 2
    assert all("\n" not in line for line in caught.value.lines)
    return caught.value.lines


def test_the_plugin_describes_a_backend_whose_parts_resolve() -> None:
    (spec,) = plugin.omnirl_env_backends()
    assert isinstance(spec, EnvBackendSpec)
    assert (plugin.OMNIRL_API, spec.name) == (1, "gymnasium")
    assert load_object(spec.config) is GymnasiumConfig
    assert load_object(spec.backend) is BACKEND


def test_the_plugin_and_its_config_import_no_gymnasium_and_the_backend_neither_torch_nor_ray() -> None:
    code = """
import sys
import omnirl.envs.gymnasium.plugin as plugin
plugin.omnirl_env_backends()
assert not {"gymnasium", "numpy", "pydantic"} & set(sys.modules)
import omnirl.envs.gymnasium.config
assert not {"gymnasium", "torch", "ray"} & set(sys.modules)
import omnirl.envs.gymnasium.backend
assert "gymnasium" in sys.modules
rooms = ("algorithms", "networks", "buffers", "runtime", "config", "plugins", "cli", "run")
assert not {"torch", "ray", *(f"omnirl.{room}" for room in rooms)} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_cart_poles_spec() -> None:
    spec = BACKEND.get_env_spec(GymnasiumConfig(id="CartPole-v1"))
    assert spec.observation == ArraySpec((4,), "float32", "vector")
    assert spec.action == DiscreteAction(2)
    assert spec.id == "CartPole-v1"


def test_pendulums_spec_has_the_bounds_of_its_torque() -> None:
    assert BACKEND.get_env_spec(GymnasiumConfig(id="Pendulum-v1")).action == ContinuousAction((-2.0,), (2.0,))


def test_kwargs_reach_the_environment() -> None:
    config = GymnasiumConfig(id="FrozenLake-v1", kwargs={"map_name": "8x8"})
    assert BACKEND.get_env_spec(config).observation == ArraySpec((64,))


def test_max_episode_steps_is_one_of_the_kwargs() -> None:
    config = GymnasiumConfig(id="CartPole-v1", kwargs={"max_episode_steps": 2})
    environment = BACKEND.build_env(config, EnvContext("sampler", 0, 1))
    environment.reset(0, 0)
    assert [bool(environment.step(np.array([t])).truncated[0]) for t in range(2)] == [False, True]


def test_asking_for_the_spec_closes_the_environment(recorder: Any, register: Callable[..., str]) -> None:
    env = recorder()
    BACKEND.get_env_spec(GymnasiumConfig(id=register(entry_point=lambda: env)))
    assert env.closed


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("CartPol-v1", "env.id: unknown environment 'CartPol-v1' (did you mean 'CartPole-v1'?)"),
        ("cartpole-v1", "env.id: unknown environment 'cartpole-v1' (did you mean 'CartPole-v1'?)"),
        ("CartPole", "env.id: unknown environment 'CartPole' (did you mean 'CartPole-v1'?)"),
        ("CartPole-v7", "env.id: unknown environment 'CartPole-v7' (did you mean 'CartPole-v1'?)"),
        (
            "acme/Reach",
            "env.id: unknown environment 'acme/Reach'; if another package registers it, install that and "
            "name its module in env.imports",
        ),
    ],
)
def test_an_unknown_id_gets_the_nearest_one_or_the_way_to_it(name: str, line: str) -> None:
    assert refused(id=name) == (line,)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("LunarLander-v3", "Box2D", "box2d"),
        ("BipedalWalker-v3", "Box2D", "box2d"),
        ("HalfCheetah-v5", "mujoco", "mujoco"),
        ("ALE/Pong-v5", "ale_py", "atari"),
        ("MinAtar/Breakout-v1", "minatar", "minatar"),
    ],
)
def test_a_missing_extra_names_the_pip_install(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, extra: str
) -> None:
    families = ("gymnasium.envs.box2d", "gymnasium.envs.mujoco", f"{module}.")
    for loaded in [key for key in sys.modules if key.startswith(families)]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)  # importing it fails, installed or not
    (line,) = refused(id=name)
    assert line.startswith("env.id: ")
    assert repr(name) in line
    assert line.endswith(f'; run: pip install "omnirl-gymnasium[{extra}]"')


def test_an_import_that_is_missing_elsewhere_is_told_as_it_is(register: Callable[..., str]) -> None:
    def build() -> Any:
        raise ModuleNotFoundError("No module named 'acme_physics'")

    name = register(entry_point=build)
    line = (
        f"env.id: {name!r} needs more than is installed: ModuleNotFoundError: No module named 'acme_physics'"
    )
    assert refused(id=name) == (line,)


def test_every_unknown_argument_gets_its_line(recorder: Any, register: Callable[..., str]) -> None:
    def build(map_name: str = "4x4", is_slippery: bool = True, render_mode: str | None = None) -> Any:
        return recorder()

    name = register(entry_point=build)
    assert refused(id=name, kwargs={"map_nam": "8x8", "is_slippery": True, "zz": 1}) == (
        f"env.kwargs.map_nam: {name!r} takes no such argument (did you mean 'map_name'?)",
        f"env.kwargs.zz: {name!r} takes no such argument (it takes map_name, is_slippery, max_episode_steps)",
    )


def test_an_argument_that_a_vector_environment_does_not_take_is_named_too(
    register: Callable[..., str],
) -> None:
    def build(num_envs: int, gravity: float = 9.8) -> Any:
        raise AssertionError("never called with what it does not take")

    name = register(vector_entry_point=build)
    assert refused(id=name, kwargs={"gravty": 1.0}) == (
        f"env.kwargs.gravty: {name!r} takes no such argument (did you mean 'gravity'?)",
    )


def test_a_wrong_type_inside_a_constructor_is_not_taken_for_an_unknown_argument(
    register: Callable[..., str],
) -> None:
    def build(size: int = 1) -> Any:
        return len(size)  # type: ignore[arg-type]

    name = register(entry_point=build)
    (line,) = refused(id=name, kwargs={"size": 3})
    assert line.startswith(f"env.id: cannot build {name!r}: TypeError: object of type 'int' has no len()")


def test_a_wrong_value_of_an_argument_is_told_with_the_environments_own_words(
    register: Callable[..., str],
) -> None:
    def build(size: int = 1) -> Any:
        raise ValueError(f"size must be positive, not {size}")

    name = register(entry_point=build)
    line = f"env.id: cannot build {name!r}: ValueError: size must be positive, not -3"
    assert refused(id=name, kwargs={"size": -3}) == (line,)


def test_whatever_a_constructor_raises_becomes_one_line(register: Callable[..., str]) -> None:
    def build() -> Any:
        raise ZeroDivisionError("first\n  second")

    name = register(entry_point=build)
    assert refused(id=name) == (f"env.id: cannot build {name!r}: ZeroDivisionError: first second",)


def test_an_environment_without_spaces_is_refused(register: Callable[..., str]) -> None:
    class Undeclared(gymnasium.Env[Any, Any]):
        action_space = "two buttons"  # type: ignore[assignment]

    name = register(entry_point=Undeclared)
    assert refused(id=name) == (
        f"env.id: {name!r}: its observation_space is missing, or not a space: set it in __init__",
        f"env.id: {name!r}: its action_space is missing, or not a space: set it in __init__",
    )


def test_a_bare_assertion_is_told_with_its_place(register: Callable[..., str]) -> None:
    def build() -> Any:
        raise AssertionError

    name = register(entry_point=build)
    (line,) = refused(id=name)
    assert line.startswith(
        f"env.id: cannot build {name!r}: AssertionError in test_gymnasium_backend.py, line "
    )


def third_party(folder: Path, body: str) -> None:
    (folder / "acme_toys.py").write_text(body)


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme_toys", raising=False)
    return tmp_path


REGISTERS = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
gymnasium.register("acme/Pole-v0", entry_point=CartPoleEnv)
"""


@pytest.mark.parametrize(
    "keys", [{"id": "acme/Pole-v0", "imports": ["acme_toys"]}, {"id": "acme_toys:acme/Pole-v0"}]
)
def test_an_environment_of_a_third_party_is_found_by_importing_it(
    on_path: Path, keys: dict[str, Any]
) -> None:
    third_party(on_path, REGISTERS)
    try:
        assert BACKEND.get_env_spec(GymnasiumConfig(**keys)).action == DiscreteAction(2)
    finally:
        gymnasium.registry.pop("acme/Pole-v0", None)
        sys.modules.pop("acme_toys", None)


def test_a_module_that_is_not_there_or_fails_is_named(on_path: Path) -> None:
    missing = "cannot import 'acme_toys': ModuleNotFoundError: No module named 'acme_toys'"
    assert refused(id="acme/Pole-v0", imports=["acme_toys"]) == (f"env.imports: {missing}",)
    assert refused(id="acme_toys:Pole-v0") == (f"env.id: {missing}",)
    third_party(on_path, "raise RuntimeError('needs a licence')")
    (line,) = refused(id="CartPole-v1", imports=["acme_toys"])
    assert line == "env.imports: cannot import 'acme_toys': RuntimeError: needs a licence"


def test_all_spaces_that_are_not_supported_are_told_at_once(
    recorder: Any, register: Callable[..., str]
) -> None:
    env = recorder(spaces.Dict({"a": spaces.Discrete(2)}), spaces.Text(3))
    name = register(entry_point=lambda: env)
    observation, action = refused(id=name)
    assert observation.startswith(f"env.id: {name!r}: the observation space Text(")
    assert action.startswith(f"env.id: {name!r}: the action space Dict('a': Discrete(2)) is not supported")
    assert env.closed


def test_an_integer_box_of_actions_is_refused(recorder: Any, register: Callable[..., str]) -> None:
    name = register(entry_point=lambda: recorder(spaces.Box(0, 9, (2,), np.int64)))
    (line,) = refused(id=name)
    assert "the action space Box(0, 9, (2,), int64)" in line


def test_environments_that_were_built_are_closed_where_a_later_one_fails(
    recorder: Any, register: Callable[..., str]
) -> None:
    built: list[Any] = []

    def build() -> Any:
        if len(built) == 2:
            raise MemoryError("no more")
        built.append(recorder())
        return built[-1]

    config = GymnasiumConfig(id=register(entry_point=build))
    with pytest.raises(ConfigError, match="MemoryError: no more"):
        BACKEND.build_env(config, EnvContext("sampler", 0, 3))
    assert [env.closed for env in built] == [True, True]


def test_building_refuses_spaces_too(recorder: Any, register: Callable[..., str]) -> None:
    env = recorder(spaces.Text(3))
    config = GymnasiumConfig(id=register(entry_point=lambda: env))
    with pytest.raises(ConfigError, match="the action space Text"):
        BACKEND.build_env(config, EnvContext("sampler", 0, 1))
    assert env.closed


class Renders(gymnasium.Env[Any, Any]):
    """Notes with which render_mode it is built."""

    metadata = {"render_modes": ["human", "rgb_array"]}  # noqa: RUF012 - as gymnasium.Env declares it
    built: list[str | None] = []  # noqa: RUF012 - shared on purpose

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.built.append(render_mode)
        self.observation_space, self.action_space = spaces.Box(-1, 1, (1,)), spaces.Discrete(2)


@pytest.mark.parametrize(
    ("mode", "role", "built"),
    [
        ("human", "evaluator", ["human", None]),
        ("rgb_array", "evaluator", ["rgb_array", "rgb_array"]),
        ("human", "sampler", [None, None]),
        (None, "evaluator", [None, None]),
    ],
)
def test_only_evaluators_render_and_open_one_window(
    register: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    mode: Any,
    role: str,
    built: list[str | None],
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    config = GymnasiumConfig(id=register(entry_point=Renders), render_mode=mode)
    Renders.built.clear()
    BACKEND.build_env(config, EnvContext(role, 0, 2))
    assert Renders.built == built


def test_asking_for_the_spec_opens_no_window(register: Callable[..., str]) -> None:
    Renders.built.clear()
    BACKEND.get_env_spec(GymnasiumConfig(id=register(entry_point=Renders), render_mode="human"))
    assert Renders.built == [None]


def test_a_render_mode_that_an_environment_lacks_is_refused(count: Any, register: Callable[..., str]) -> None:
    name = register(entry_point=count)
    assert refused(id=name, render_mode="human") == (
        f"env.render_mode: {name!r} cannot render human (it cannot render at all)",
    )


@pytest.mark.parametrize("mode", ["human", "rgb_array"])
def test_rendering_without_pygame_is_refused_with_the_pip_install(
    monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    monkeypatch.setattr("omnirl.envs.gymnasium.viewing.find_spec", lambda name: None)
    assert refused(id="CartPole-v1", render_mode=mode) == (
        "env.render_mode: 'CartPole-v1' draws with pygame; run: pip install \"omnirl-gymnasium[video]\"",
    )
    assert BACKEND.get_env_spec(GymnasiumConfig(id="CartPole-v1")).id == "CartPole-v1"


def test_a_known_namespace_is_registered_by_itself_and_once(
    monkeypatch: pytest.MonkeyPatch, on_path: Path
) -> None:
    body = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
calls = []
def register_envs():
    calls.append(1)
    gymnasium.register("MinAtar/Pole-v0", entry_point=CartPoleEnv)
"""
    (on_path / "minatar").mkdir()
    (on_path / "minatar" / "__init__.py").write_text("")
    (on_path / "minatar" / "gym.py").write_text(body)
    for name in ("minatar", "minatar.gym"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for known in [known for known in gymnasium.registry if known.startswith("MinAtar/")]:
        monkeypatch.delitem(gymnasium.registry, known)
    try:
        assert BACKEND.get_env_spec(GymnasiumConfig(id="MinAtar/Pole-v0")).action == DiscreteAction(2)
        line = "env.id: unknown environment 'MinAtar/Poll-v0' (did you mean 'MinAtar/Pole-v0'?)"
        assert refused(id="MinAtar/Poll-v0") == (line,)
        line = "env.id: unknown environment 'Pole-v0' (did you mean 'MinAtar/Pole-v0'?)"
        assert refused(id="Pole-v0") == (line,)
        assert sys.modules["minatar.gym"].calls == [1]
    finally:
        gymnasium.registry.pop("MinAtar/Pole-v0", None)
        for name in ("minatar", "minatar.gym"):
            sys.modules.pop(name, None)


def test_checking_wrappers_are_left_out_and_the_time_limit_stays() -> None:
    assert str(make(GymnasiumConfig(id="CartPole-v1"))) == "<TimeLimit<CartPoleEnv<CartPole-v1>>>"
    checked = make(GymnasiumConfig(id="CartPole-v1", kwargs={"disable_env_checker": False}))
    assert str(checked) == "<TimeLimit<PassiveEnvChecker<CartPoleEnv<CartPole-v1>>>>"
