"""Dict and Tuple observations: names and order of the entries, their values, action masks, and the refusals."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from omnirl.api.environment import EnvContext
from omnirl.api.errors import ConfigError, SpaceError
from omnirl.api.specs import ArraySpec, DictSpec
from omnirl.envs.gymnasium.backend import BACKEND
from omnirl.envs.gymnasium.composite import allocate, observation_codec
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.spaces import UnsupportedSpaceError
from omnirl.envs.gymnasium.vector import InProcessEnvironment, OneRow

NESTED = spaces.Dict(
    OrderedDict(
        speed=spaces.Box(-9, 9, (2,)),
        camera=spaces.Box(0, 255, (5, 6, 3), np.uint8),
        arm=spaces.Tuple((spaces.Discrete(3, start=-1), spaces.Dict({"grip": spaces.MultiBinary(2)}))),
        action_mask=spaces.MultiBinary(4),
    )
)


def nested(**changes: Any) -> dict[str, Any]:
    arm = (np.int64(1), {"grip": np.array([0, 1], np.int8)})
    camera = np.arange(90, dtype=np.uint8).reshape(5, 6, 3)
    mask = np.array([1, 0, 0, 1], np.int8)
    return {"action_mask": mask, "arm": arm, "camera": camera, "speed": np.array([2, 3]), **changes}


def encoded(space: spaces.Space[Any], observation: Any) -> Any:
    spec, encode = observation_codec(space)
    row = allocate(spec, ())
    encode(observation, row)
    return row


def test_nested_spaces_become_entries_named_by_their_path_in_the_order_of_the_space() -> None:
    spec, _ = observation_codec(NESTED)
    assert spec == DictSpec(
        (
            ("speed", ArraySpec((2,))),
            ("camera", ArraySpec((3, 5, 6), "uint8", "image")),
            ("arm/0", ArraySpec((3,))),
            ("arm/1/grip", ArraySpec((2,))),
            ("action_mask", ArraySpec((4,), "bool")),
        )
    )


def test_each_entry_has_the_values_it_would_have_alone() -> None:
    row = encoded(NESTED, nested())
    assert row["speed"].tolist() == [2, 3]
    assert row["arm/0"].tolist() == [0, 0, 1]  # one-hot of 1, counted from -1
    assert row["arm/1/grip"].tolist() == [0, 1]
    assert row["camera"][:, 0, 1].tolist() == [3, 4, 5]  # channels first
    assert (row["action_mask"].dtype, row["action_mask"].tolist()) == (np.bool_, [True, False, False, True])


def test_a_tuple_counts_from_0() -> None:
    space = spaces.Tuple((spaces.Box(0, 1, (1,)), spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2)))))
    row = encoded(space, (np.array([0.5]), (1, 0)))
    assert {name: value.tolist() for name, value in row.items()} == {"0": [0.5], "1/0": [0, 1], "1/1": [1, 0]}


def test_only_the_outermost_action_mask_is_a_mask() -> None:
    spec, _ = observation_codec(spaces.Dict({"a": spaces.Dict({"action_mask": spaces.MultiBinary(2)})}))
    assert spec == DictSpec((("a/action_mask", ArraySpec((2,))),))


@pytest.mark.parametrize(
    ("observation", "told"),
    [
        (
            {k: v for k, v in nested().items() if k != "speed"},
            "the observation lacks speed: its space says speed, ",
        ),
        ({k: v for k, v in nested().items() if k != "action_mask"}, "the observation lacks action_mask: "),
        (
            nested(extra=1),
            "the observation has extra besides: its space says speed, camera, arm, action_mask",
        ),
        (
            {"spede": 0, **{k: v for k, v in nested().items() if k != "speed"}},
            "the observation lacks speed and has spede besides",
        ),
        (nested(arm=(np.int64(1),)), "the observation 'arm' lacks 1: its space says 0, 1"),
        (nested(arm=(1, {"grab": np.zeros(2)})), "the observation 'arm/1' lacks grip and has grab besides"),
        (nested(arm=(1, [0])), "the observation 'arm/1' is list, its space is Dict('grip': MultiBinary(2))"),
        (nested(speed=np.zeros(3)), r"entry 'speed': an observation has the shape (3,), its space says (2,)"),
        (
            nested(arm=(5, {"grip": np.zeros(2)})),
            "entry 'arm/0': the observation 5 is outside its space of [3] values",
        ),
        (
            nested(action_mask=np.ones(3, np.int8)),
            "'action_mask': the mask has the shape (3,), its space says (4,)",
        ),
        (
            nested(action_mask=np.full(4, 0.5)),
            "'action_mask': the mask must be bool, or 0 and 1, not float64",
        ),
        (
            nested(action_mask=np.array([1, 0, 2, 0])),
            "'action_mask': the mask must be bool, or 0 and 1, not int64",
        ),
        ((1, 2, 3, 4), "the observation is tuple, its space is Dict("),
    ],
)
def test_an_observation_that_is_not_its_spaces_is_one_line(observation: Any, told: str) -> None:
    with pytest.raises(ValueError) as caught:
        encoded(NESTED, observation)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("space", "told"),
    [
        (spaces.Dict({"a": spaces.Dict({"b": spaces.Text(3)})}), "entry 'a/b': the observation space Text("),
        (spaces.Tuple((spaces.Sequence(spaces.Discrete(2)),)), "entry '0': the observation space Sequence("),
        (spaces.Dict({}), "the observation space Dict() has no entries"),
        (
            spaces.Dict({"a/b": spaces.Discrete(2), "a": spaces.Dict({"b": spaces.Discrete(2)})}),
            "two entries of the observation space are called a/b",
        ),
        (
            spaces.Dict({"action_mask": spaces.Box(0, 1, (2,)), "a": spaces.Discrete(2)}),
            "entry 'action_mask': an action mask is a MultiBinary(n), or a Box of bool or whole numbers in [0, 1], "
            "not Box(0.0, 1.0, (2,), float32)",
        ),
        (spaces.Dict({"action_mask": spaces.Box(0, 9, (2,), np.int8)}), "an action mask is a MultiBinary(n)"),
    ],
)
def test_a_space_that_cannot_be_used_is_named_with_its_entry(space: Any, told: str) -> None:
    with pytest.raises(UnsupportedSpaceError) as caught:
        observation_codec(space)
    assert told in str(caught.value)


class Turns(gymnasium.Env[Any, Any]):
    """Observes its step k, in one dict that is used again and again; action k % 3 alone is legal at step k."""

    def __init__(self, told: str = "observation", action_space: spaces.Space[Any] | None = None) -> None:
        self.told = told
        self.action_space = action_space or spaces.Discrete(3)
        entries = OrderedDict[str, spaces.Space[Any]](k=spaces.Box(0, 99, (1,)))
        if told == "observation":
            entries["action_mask"] = spaces.Box(0, 1, (3,), np.bool_)
        self.observation_space = spaces.Dict(entries) if told != "info" else spaces.Box(0, 99, (1,))
        self._row = {"k": np.zeros(1, np.float32), "action_mask": np.zeros(3, np.bool_)}
        if told == "method":
            self.action_masks = lambda: np.arange(3) == self._k % 3

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._k = 0
        return self._observe()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action == self._k % 3
        self._k += 1
        observation, info = self._observe()
        return observation, 1.0, False, self._k == 4, info

    def _observe(self) -> tuple[Any, dict[str, Any]]:
        self._row["k"][0] = self._k
        self._row["action_mask"][:] = np.arange(3) == self._k % 3
        if self.told == "observation":
            return self._row, {}
        if self.told == "method":
            return {"k": self._row["k"]}, {}
        return self._row["k"], {"action_mask": self._row["action_mask"].astype(np.int8)}


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Register Turns(**kwargs) and give its id."""

    def register(**kwargs: Any) -> str:
        name = f"turns/{len(gymnasium.registry)}-v0"
        monkeypatch.setitem(
            gymnasium.registry, name, gymnasium.envs.registration.EnvSpec(name, lambda: Turns(**kwargs))
        )
        return name

    return register


@pytest.mark.parametrize("told", ["observation", "info", "method"])
def test_masks_are_rows_of_the_observation_wherever_the_environment_tells_them(
    told: str, turns: Callable[..., str]
) -> None:
    config = GymnasiumConfig(id=turns(told=told), action_mask=told)  # type: ignore[arg-type]
    spec = BACKEND.get_env_spec(config).observation
    entry = "observation" if told == "info" else "k"
    assert spec == DictSpec(((entry, ArraySpec((1,))), ("action_mask", ArraySpec((3,), "bool"))))
    environment = BACKEND.build_env(config, EnvContext("sampler", 0, 2))
    assert isinstance(environment, InProcessEnvironment)
    masks = [[environment.reset(i, i)["action_mask"].tolist() for i in range(2)]]
    for k in range(3):
        step = environment.step(np.full(2, k % 3))
        masks.append(step.obs["action_mask"].tolist())
        assert step.obs[entry].tolist() == [[k + 1], [k + 1]]
    assert masks == [[[k % 3 == n for n in range(3)]] * 2 for k in range(4)]
    environment.close()


def test_a_vector_environment_of_one_row_gives_its_entries() -> None:
    """Vector environments batch each entry for itself."""
    vector = gymnasium.vector.SyncVectorEnv([Turns], copy=True)
    environment = InProcessEnvironment([OneRow(vector)])
    assert environment.reset(0, 0)["k"].tolist() == [0]
    step = environment.step(np.zeros(1, np.int64))
    assert step.obs["k"].tolist() == [[1]]
    assert step.obs["action_mask"].tolist() == [[False, True, False]]


def test_masks_can_be_left_out(turns: Callable[..., str]) -> None:
    config = GymnasiumConfig(id=turns(), action_mask="none")
    assert BACKEND.get_env_spec(config).observation == DictSpec((("k", ArraySpec((1,))),))
    environment = BACKEND.build_env(config, EnvContext("sampler", 0, 1))
    assert list(environment.reset(0, 0)) == ["k"]
    plain = GymnasiumConfig(id="CartPole-v1", action_mask="none")
    assert BACKEND.get_env_spec(plain).observation == ArraySpec((4,))


@pytest.mark.parametrize(
    ("source", "kwargs", "told"),
    [
        ("info", {"told": "method"}, "tells no action_mask in info"),
        ("method", {"told": "info"}, "has no method action_masks()"),
        ("info", {"told": "observation"}, "observes action_mask already (leave the key out, or use none)"),
        ("info", {"told": "info", "action_space": spaces.Box(0, 1, (2,))}, "has no discrete actions"),
    ],
)
def test_a_mask_that_is_not_there_is_one_line(
    source: Any, kwargs: dict[str, Any], told: str, turns: Callable[..., str]
) -> None:
    name = turns(**kwargs)
    with pytest.raises(ConfigError) as caught:
        BACKEND.get_env_spec(GymnasiumConfig(id=name, action_mask=source))
    (line,) = caught.value.lines
    assert line.startswith(f"env.action_mask: {name!r} ")
    assert told in line


@pytest.mark.parametrize(
    ("space", "size"),
    [(spaces.MultiDiscrete([[2], [3]]), 5), (spaces.MultiBinary(4), 8), (spaces.Discrete(3, start=-1), 3)],
)
def test_a_mask_has_an_entry_per_action_of_every_position(
    space: Any, size: int, turns: Callable[..., str]
) -> None:
    config = GymnasiumConfig(id=turns(told="method", action_space=space), action_mask="method")
    assert BACKEND.get_env_spec(config).observation.mask == ArraySpec((size,), "bool")


def test_taxi_tells_its_mask_in_info() -> None:
    """Gymnasium's own: at the start of every episode some moves run into a wall."""
    name = next(name for name in ("Taxi-v3", "Taxi-v4") if name in gymnasium.registry)
    config = GymnasiumConfig(id=name, action_mask="info")
    spec = BACKEND.get_env_spec(config).observation
    assert spec == DictSpec((("observation", ArraySpec((500,))), ("action_mask", ArraySpec((6,), "bool"))))
    environment = BACKEND.build_env(config, EnvContext("sampler", 0, 1))
    plain, info = gymnasium.make(name).reset(seed=7)
    row = environment.reset(0, 7)
    assert row["observation"].argmax() == plain
    assert row["action_mask"].tolist() == info["action_mask"].astype(bool).tolist()


def test_dict_actions_are_refused_by_name(turns: Callable[..., str]) -> None:
    name = turns(action_space=spaces.Dict({"a": spaces.Discrete(2)}))
    with pytest.raises(SpaceError, match=r"the action space Dict\('a': Discrete\(2\)\) is not supported"):
        BACKEND.get_env_spec(GymnasiumConfig(id=name))


def test_an_empty_entry_is_nothing_beside_others_and_refused_alone():
    empty = spaces.Box(-1, 1, (0,))
    spec, _ = observation_codec(spaces.Dict(a=empty, b=spaces.Discrete(2)))
    assert isinstance(spec, DictSpec)
    assert [entry.shape for _, entry in spec.entries] == [(0,), (2,)]
    with pytest.raises(
        UnsupportedSpaceError, match=r"observation space Box\(\[\], \[\], \(0,\), float32\) is empty"
    ):
        observation_codec(empty)
