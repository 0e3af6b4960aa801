"""However a vector environment resets itself, the same transitions are stored: of vectors, of stacked pictures, over
five steps; and ``vectorization: native`` takes only those that store nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from omnirl.api.algorithm import ActContext
from omnirl.api.data import ActionSample, Rollout
from omnirl.api.environment import EnvContext
from omnirl.api.errors import ConfigError
from omnirl.api.specs import DiscreteAction
from omnirl.buffers.n_step import NStep
from omnirl.envs.gymnasium.backend import build_env, get_env_spec
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.native import NativeEnvironment
from omnirl.loops.collection import collect_loop

AutoresetMode = getattr(gymnasium.vector, "AutoresetMode", None)
pytestmark = pytest.mark.skipif(AutoresetMode is None, reason="Gymnasium 1.0 has no autoreset modes")

LENGTHS = (3, 4)  # of the episodes of row 0 and of row 1, and again for further rows


def shown(step: int, action: int, pictures: bool) -> Any:
    """What step k of an episode shows after ``action``: [k, action], or a picture of 10 k + action."""
    if pictures:
        return np.full((4, 4), 10 * step + action, np.uint8)
    return np.array([step, action], np.float32)


def space(pictures: bool) -> spaces.Box:
    return spaces.Box(0, 255, (4, 4), np.uint8) if pictures else spaces.Box(0, 255, (2,), np.float32)


class Plain(gymnasium.Env[Any, Any]):
    """One row; even lengths end by termination, odd ones are cut. Its seed is its row: it decides the length."""

    def __init__(self, pictures: bool = False, render_mode: Any = None) -> None:
        self.observation_space, self.action_space = space(pictures), spaces.Discrete(5)
        self._pictures = pictures

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._row, self._k = (seed or 0) % 2, 0
        return shown(0, 0, self._pictures), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._k += 1
        ended, even = self._k == LENGTHS[self._row], LENGTHS[self._row] % 2 == 0
        return (
            shown(self._k, int(action), self._pictures),
            self._k / 4,
            ended and even,
            ended and not even,
            {},
        )


class Vector(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Plain row by row, resetting itself as ``autoreset_mode`` says; rows that are told apart by their number."""

    def __init__(
        self,
        num_envs: int,
        autoreset_mode: Any = "NextStep",
        pictures: bool = False,
        only: str = "",
        **_: Any,
    ) -> None:
        mode = AutoresetMode(autoreset_mode)
        if only and mode.value != only:
            raise ValueError(f"only {only}")
        self.num_envs, self._mode, self._pictures = num_envs, mode.value, pictures
        self.metadata = {"autoreset_mode": mode}
        self.single_observation_space, self.single_action_space = space(pictures), spaces.Discrete(5)
        self._envs = [Plain(pictures) for _ in range(num_envs)]
        self._ended = np.zeros(num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        chosen = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        if chosen.all():
            self._obs = np.stack([shown(0, 0, self._pictures)] * self.num_envs)
        for row in np.flatnonzero(chosen).tolist():
            # A single row is told apart by its seed, as each of several by its number.
            self._obs[row] = self._envs[row].reset(seed=seed if self.num_envs == 1 else row)[0]
            self._ended[row] = False
        return self._obs, {}

    def step(self, actions: Any) -> Any:
        rewards, terminated, truncated = np.zeros(self.num_envs), *np.zeros((2, self.num_envs), bool)
        finals: list[Any] = [None] * self.num_envs
        for row, env in enumerate(self._envs):
            if self._ended[row]:
                assert self._mode == "NextStep", "stepped after an end"
                self._obs[row], self._ended[row] = env.reset(seed=row)[0], False
                continue
            self._obs[row], rewards[row], terminated[row], truncated[row], _ = env.step(actions[row])
            if terminated[row] or truncated[row]:
                if self._mode == "SameStep":
                    finals[row] = self._obs[row].copy()
                    self._obs[row] = env.reset(seed=row)[0]
                else:
                    self._ended[row] = True
        info = {"final_obs": np.array([*finals, None], dtype=object)[:-1]} if self._mode == "SameStep" else {}
        return self._obs, rewards, terminated, truncated, info


class Policy:
    """Random actions; notes what it saw."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def sample_action(self, obs: Any, act: ActContext) -> ActionSample:
        self.seen.append(np.array(obs))
        return ActionSample(act.rng.integers(5, size=len(obs)))

    def state_dict(self) -> dict[str, Any]:
        return {}


class Streams:
    def policy(self, number: int) -> np.random.Generator:
        return np.random.default_rng(number)

    def episode_seed(self, index: int, episode: int) -> int:
        return index + 2 * episode

    def progress(self, env_steps: int) -> float:
        return 0.0


def collected(register: Callable[..., str], pictures: bool, native: bool = False, **registration: Any) -> Any:
    name = register(**registration)
    keys = {"frame_stack": 3} if pictures else {}
    way = "native" if native else "inline"
    config = GymnasiumConfig.model_validate({"id": name, "vectorization": way, **keys})
    environment = build_env(config, EnvContext("sampler", 0, 2))
    assert isinstance(environment, NativeEnvironment) is native
    policy = Policy()
    collector = collect_loop(environment, policy, 7, Streams(), get_env_spec(config).observation)  # type: ignore[arg-type]
    rollouts = [collector.collect(0, 0) for _ in range(3)]
    environment.close()
    return rollouts, policy.seen, environment.seedable


WAYS = [
    ("inline", "NextStep"),
    ("inline", "SameStep"),
    ("inline", "Disabled"),
    ("native", "SameStep"),
    ("native", "Disabled"),
]


@pytest.mark.parametrize("pictures", [False, True], ids=["vectors", "stacked pictures"])
@pytest.mark.parametrize(("way", "mode"), WAYS)
def test_the_transitions_are_those_of_single_environments(
    register: Callable[..., str], way: str, mode: str, pictures: bool
) -> None:
    expected, saw, _ = collected(register, pictures, entry_point=Plain, kwargs={"pictures": pictures})
    arguments = {"pictures": pictures, "autoreset_mode" if way == "inline" else "only": mode}
    rollouts, sees, seedable = collected(
        register, pictures, native=way == "native", vector_entry_point=Vector, kwargs=arguments
    )
    # A reset by mask takes each episode's seed; one in the same step cannot.
    assert seedable is ((way, mode) != ("native", "SameStep"))
    assert np.array_equal(saw, sees)
    for left, right in zip(expected, rollouts, strict=True):
        for name in ("first", "action", "reward", "terminated", "truncated", "final_at"):
            assert np.array_equal(getattr(left, name), getattr(right, name)), name
        for name in ("observations", "next_obs", "final_observations"):
            assert np.array_equal(getattr(left, name)(), getattr(right, name)()), name
    assert five_steps(expected) == five_steps(rollouts)


def five_steps(rollouts: list[Rollout]) -> list[Any]:
    """The windows of five steps as plain numbers."""
    cutter = NStep(5, 0.5)
    windows = [window for rollout in rollouts for window in cutter.add(rollout)]
    return [[np.asarray(value).tolist() for value in vars(window).values()] for window in windows]


def test_the_transitions_are_what_they_should_be(register: Callable[..., str]) -> None:
    """Of row 0, by hand: episodes of three steps that are cut, pictures 10 k + action stacked from the oldest."""
    rollouts, _, _ = collected(register, True, entry_point=Plain, kwargs={"pictures": True})
    rollout = rollouts[0]
    a = [int(value) for value in rollout.action[:, 0]]
    seen = np.asarray(rollout.observations())[:4, 0, :, 0, 0].tolist()
    assert seen == [[0, 0, 0], [0, 0, 10 + a[0]], [0, 10 + a[0], 20 + a[1]], [0, 0, 0]]
    led_to = np.asarray(rollout.next_obs())[:3, 0, :, 0, 0].tolist()
    assert led_to == [seen[1], seen[2], [10 + a[0], 20 + a[1], 30 + a[2]]]
    assert rollout.truncated[:, 0].tolist() == [False, False, True, False, False, True, False]
    first = NStep(5, 0.5).add(rollout)[0]
    # Three rewards of 1/4, 2/4 and 3/4 within the episode; the value of its end counts gamma^3.
    place = [
        index for index, obs in enumerate(np.asarray(first.obs)[:, :, 0, 0].tolist()) if obs == [0, 0, 0]
    ]
    assert any(
        np.isclose(first.reward[i], 0.25 + 0.5 * 0.5 + 0.25 * 0.75) and np.isclose(first.discount[i], 0.125)
        for i in place
    )


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (
            {"kwargs": {"only": "NextStep"}},
            "resets itself in the next step, and the row after an end is no transition",
        ),
        ({"wrappers": ["flatten"]}, "env.wrappers are for single environments: use inline or process"),
        ({"metrics": ["success"]}, "env.metrics are for single environments"),
        ({"action_mask": "info"}, "env.action_mask is for single environments"),
    ],
)
def test_what_cannot_be_native_is_refused(register: Callable[..., str], keys: Any, line: str) -> None:
    name = register(vector_entry_point=Vector)
    with pytest.raises(ConfigError) as caught:
        get_env_spec(GymnasiumConfig.model_validate({"id": name, "vectorization": "native", **keys}))
    (told,) = caught.value.lines
    assert told.startswith("env.vectorization: native: ")
    assert line in told


def test_an_environment_without_a_vector_version_is_refused() -> None:
    with pytest.raises(ConfigError, match="'Pendulum-v1' has no vector version: use inline or process"):
        get_env_spec(GymnasiumConfig(id="Pendulum-v1", vectorization="native"))
    with pytest.raises(ConfigError, match="'CartPole-v1' resets itself in the next step"):
        get_env_spec(GymnasiumConfig(id="CartPole-v1", vectorization="native"))


def test_a_native_environment_is_not_watched(register: Callable[..., str]) -> None:
    config = GymnasiumConfig(id=register(vector_entry_point=Vector), vectorization="native")
    assert get_env_spec(config).action == DiscreteAction(5)
    with pytest.raises(ConfigError, match="native environments cannot be watched"):
        build_env(config, EnvContext("evaluator", 0, 1, "frames"))


def test_atari_has_a_vector_version_whose_evaluation_sees_raw_points() -> None:
    pytest.importorskip("ale_py", reason="the extra atari is not installed")
    config = GymnasiumConfig(id="ALE/MsPacman-v5", vectorization="native")
    assert np.prod(get_env_spec(config).observation.shape) == 4 * 84 * 84  # type: ignore[union-attr]

    def best(role: str) -> float:
        environment = build_env(config, EnvContext(role, 0, 2))
        for i in range(2):
            environment.reset(i, i)
        points = [float(environment.step(np.full(2, 3)).reward.max()) for _ in range(150)]
        environment.close()
        return max(points)

    assert best("sampler") == 1.0
    assert best("evaluator") >= 10.0
