"""Stepping: the same values as plain Gymnasium, nothing aliased, nothing accepted silently."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from omnirl.api.algorithm import ActContext
from omnirl.api.data import ActionSample
from omnirl.api.environment import EnvContext
from omnirl.api.errors import ConfigError
from omnirl.envs.gymnasium.backend import build_env
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.vector import InProcessEnvironment, OneRow
from omnirl.loops.collection import collect_loop
from omnirl.loops.evaluation import evaluation_loop

MODES = ["NextStep", "SameStep", "Disabled"]
# Gymnasium 1.0 has no such enumeration yet.
AutoresetMode: Any = getattr(
    gymnasium.vector, "AutoresetMode", enum.Enum("AutoresetMode", {m: m for m in MODES})
)


class FixedStreams:
    """Seeds by episode, and a generator that nobody needs here."""

    def policy(self, number: int) -> np.random.Generator:
        return np.random.default_rng(number)

    def episode_seed(self, index: int, episode: int) -> int:
        return 1000 * index + episode

    def progress(self, env_steps: int) -> float:
        return 0.0


class RandomPolicy:
    """Uniform discrete actions."""

    def __init__(self, n: int) -> None:
        self.n = n

    def sample_action(self, obs: Any, act: ActContext) -> ActionSample:
        return ActionSample(act.rng.integers(self.n, size=len(obs)))

    def choose_action(self, obs: Any, act: ActContext) -> Any:
        return np.zeros(len(obs), np.int64)

    def set_weights(self, weights: Any) -> None:
        assert not weights

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Any) -> None:
        assert not state


def cart_pole(num_envs: int) -> InProcessEnvironment:
    return build_env(GymnasiumConfig(id="CartPole-v1"), EnvContext("sampler", 0, num_envs))


@pytest.mark.parametrize(
    "name", ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCarContinuous-v0", "FrozenLake-v1"]
)
def test_transitions_equal_a_hand_written_loop_over_plain_gymnasium(name: str) -> None:
    environment = build_env(
        GymnasiumConfig(id=name, kwargs={"max_episode_steps": 30}), EnvContext("sampler", 0, 2)
    )
    plain = [gymnasium.make(name, max_episode_steps=30) for _ in range(2)]
    discrete = isinstance(plain[0].observation_space, spaces.Discrete)

    def seen(observation: Any) -> Any:
        return np.eye(16, dtype=np.float32)[observation] if discrete else np.asarray(observation, np.float32)

    episode = [0, 0]
    for i in range(2):
        assert np.array_equal(environment.reset(i, i), seen(plain[i].reset(seed=i)[0]))
    for env in plain:
        env.action_space.seed(7 + plain.index(env))
    ends = 0
    for _ in range(150):
        own = [env.action_space.sample() for env in plain]
        step = environment.step(np.array(own))
        for i in range(2):
            observation, reward, terminated, truncated, _ = plain[i].step(own[i])
            assert np.array_equal(np.asarray(step.final_obs)[i], seen(observation))
            assert step.reward[i] == np.float32(reward)
            assert (step.terminated[i], step.truncated[i]) == (terminated, truncated)
            if terminated or truncated:
                ends += 1
                episode[i] += 1
                seed = 10 * episode[i] + i
                assert np.array_equal(environment.reset(i, seed), seen(plain[i].reset(seed=seed)[0]))
    assert ends >= 4
    assert [array.dtype.name for array in (step.reward, step.terminated, step.truncated)] == [
        "float32",
        "bool",
        "bool",
    ]
    assert np.asarray(step.obs).dtype == np.float32
    environment.close()


def test_the_same_seeds_and_actions_repeat_an_episode_exactly() -> None:
    def play() -> list[Any]:
        environment = cart_pole(2)
        rows = [environment.reset(i, 5 + i).copy() for i in range(2)]
        for t in range(8):
            rows.append(np.array(environment.step(np.array([t % 2, 1 - t % 2])).obs))
        environment.close()
        return rows

    first, second = play(), play()
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], first[1])  # another seed is another episode


def test_it_says_what_it_is() -> None:
    environment = cart_pole(3)
    assert environment.num_envs == 3
    assert environment.seedable
    environment.close()


def test_resetting_one_leaves_the_rows_of_the_step_as_they_are(count: Any) -> None:
    environment = InProcessEnvironment([count(3), count(9)])
    for i in range(2):
        environment.reset(i, 0)
    for _ in range(3):
        step = environment.step(np.zeros(2, np.int64))
    assert environment.reset(0, 0).tolist() == [0]
    assert np.asarray(step.final_obs).tolist() == [[3], [3]]
    assert step.truncated.tolist() == [True, False]


@pytest.mark.parametrize("terminates", [False, True])
def test_k03_stored_next_obs_at_an_end_is_the_final_one_of_a_reused_array(
    count: Any, terminates: bool
) -> None:
    environment = InProcessEnvironment([count(3, terminates)])
    rollout = collect_loop(environment, RandomPolicy(2), 7, FixedStreams()).collect(0, 0)
    assert np.asarray(rollout.obs)[:, 0, 0].tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    next_obs = np.asarray(rollout.next_obs())[:, 0, 0]
    assert next_obs.tolist() == [1, 2, 3, 1, 2, 3, 1]
    ends = [False, False, True, False, False, True, False]
    assert rollout.terminated[:, 0].tolist() == [terminates and end for end in ends]
    assert rollout.truncated[:, 0].tolist() == [not terminates and end for end in ends]
    # With V(3) = 10, gamma = 0.9 and reward 1 the target at the truncation is 10, at the termination 1.
    value = np.where(next_obs == 3, 10.0, 0.0)
    target = rollout.reward[:, 0] + 0.9 * value * ~rollout.terminated[:, 0]
    assert target[2] == pytest.approx(1.0 if terminates else 10.0)


def test_k27_evaluation_does_not_favour_short_episodes(count: Any) -> None:
    class Worthless(count):  # type: ignore[misc]
        def step(self, action: Any) -> Any:
            observation, _, *rest = super().step(action)
            return observation, 0.0, *rest

    environment = InProcessEnvironment([Worthless(1), count(10)])
    episodes = evaluation_loop(environment, RandomPolicy(2), 4, FixedStreams())
    assert np.mean([episode.total_reward for episode in episodes]) == 5.0
    assert [episode.length for episode in episodes] == [1, 1, 10, 10]


def test_k22_random_actions_of_a_shifted_discrete_space_arrive_shifted(recorder: Any) -> None:
    env = recorder(action_space=spaces.Discrete(3, start=-1))
    collect_loop(InProcessEnvironment([env]), RandomPolicy(3), 500, FixedStreams()).collect(0, 0)
    assert set(env.actions) == {-1, 0, 1}
    assert all(env.action_space.contains(action) for action in env.actions)


def test_actions_that_an_environment_keeps_are_not_overwritten(recorder: Any) -> None:
    env = recorder(action_space=spaces.Box(-1, 1, (2,)))
    environment = InProcessEnvironment([env])
    buffer = np.array([[0.5, 2.0]], np.float32)
    environment.step(buffer)
    buffer[:] = -0.25
    environment.step(buffer)
    assert [action.tolist() for action in env.actions] == [[0.5, 1.0], [-0.25, -0.25]]


@pytest.mark.parametrize(
    ("reward", "stored"),
    [(2, 2.0), (np.float64(0.1), np.float32(0.1)), (np.array([3.0]), 3.0), (True, 1.0), (np.int64(-4), -4.0)],
)
def test_rewards_of_any_number_type_are_stored_as_float32(recorder: Any, reward: Any, stored: float) -> None:
    step = InProcessEnvironment([recorder(reward=reward)]).step(np.zeros(1, np.int64))
    assert step.reward.tolist() == [stored]
    assert step.reward.dtype == np.float32


@pytest.mark.parametrize("reward", [np.zeros(2), np.zeros(0), [1.0, 2.0]])
def test_a_reward_that_is_not_one_number_is_refused(recorder: Any, reward: Any) -> None:
    with pytest.raises(ValueError, match="must be one number"):
        InProcessEnvironment([recorder(reward=reward)]).step(np.zeros(1, np.int64))


def test_a_wrong_number_of_actions_is_refused(recorder: Any) -> None:
    environment = InProcessEnvironment([recorder(), recorder()])
    for wrong in (1, 3):
        with pytest.raises(ValueError, match=r"zip\(\)"):
            environment.step(np.zeros(wrong, np.int64))


def test_an_exception_of_an_environment_is_passed_on_as_it_is(count: Any) -> None:
    class Broken(count):  # type: ignore[misc]
        def step(self, action: Any) -> Any:
            raise ZeroDivisionError("the environment's own")

    with pytest.raises(ZeroDivisionError, match="the environment's own"):
        InProcessEnvironment([Broken()]).step(np.zeros(1, np.int64))


def test_closing_closes_all_even_where_one_fails(recorder: Any) -> None:
    envs = [recorder(), recorder()]

    def fail() -> None:
        raise OSError("display gone")

    broken = recorder()
    broken.close = fail
    with pytest.raises(OSError, match="display gone"):
        InProcessEnvironment([envs[0], broken, envs[1]]).close()
    assert [env.closed for env in envs] == [True, True]


class CountVector(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Count(T) as a vector environment that resets itself in one of Gymnasium's three ways.

    Its observation at step k of an episode begun with ``seed`` is [seed, k]; a reset of its own uses seed -1.
    """

    def __init__(
        self, num_envs: int, mode: str, T: int = 3, tells: bool = True, render_mode: Any = None
    ) -> None:
        self.num_envs, self._mode, self._length, self._tells = num_envs, mode, T, tells
        self.metadata = {"autoreset_mode": AutoresetMode(mode)}
        self.render_mode = render_mode
        self.single_observation_space = spaces.Box(-1, 1000, (2,), np.float64)
        self.single_action_space = spaces.Discrete(3, start=-1)
        self.received: list[Any] = []

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._obs = np.array([[-1.0 if seed is None else seed, 0.0]] * self.num_envs)
        self._ended = np.zeros(self.num_envs, bool)
        return self._obs, {}

    def step(self, actions: Any) -> Any:
        self.received.append(actions.tolist())
        info: dict[str, Any] = {}
        if self._ended.any():
            assert self._mode == "NextStep", "stepped after an end"
            self.reset()
            return self._obs, np.zeros(1), self._ended, self._ended, info
        self._obs = self._obs + np.array([0.0, 1.0])
        truncated = self._obs[:, 1] >= self._length
        if truncated.any() and self._mode == "SameStep":
            if self._tells:
                info["final_obs"] = np.array([self._obs[0], None], dtype=object)[:1]
            self.reset()
        else:
            self._ended = truncated
        return self._obs, np.ones(1), np.zeros(1, bool), truncated, info


class CountPlain(gymnasium.Env[Any, Any]):
    """What CountVector is row by row."""

    def __init__(self, render_mode: Any = None) -> None:
        self.observation_space = spaces.Box(-1, 1000, (2,), np.float64)
        self.action_space = spaces.Discrete(3, start=-1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._obs = np.array([seed, 0.0])
        return self._obs, {}

    def step(self, action: Any) -> Any:
        self._obs = self._obs + np.array([0.0, 1.0])
        return self._obs, 1.0, False, bool(self._obs[1] >= 3), {}


@pytest.mark.parametrize("mode", MODES)
def test_a_vector_environment_gives_the_transitions_of_the_plain_one(
    register: Callable[..., str], mode: str
) -> None:
    def collected(**registration: Any) -> Any:
        name = register(**registration)
        environment = build_env(GymnasiumConfig(id=name), EnvContext("sampler", 0, 2))
        rollout = collect_loop(environment, RandomPolicy(3), 8, FixedStreams()).collect(0, 0)
        environment.close()
        return rollout

    plain = collected(entry_point=CountPlain)
    rows = collected(vector_entry_point=CountVector, kwargs={"mode": mode})
    assert np.asarray(rows.obs)[:, 1].tolist() == [
        [1000, 0], [1000, 1], [1000, 2], [1001, 0], [1001, 1], [1001, 2], [1002, 0], [1002, 1], [1002, 2]
    ]  # fmt: skip
    for name in ("obs", "first", "action", "reward", "terminated", "truncated", "final_obs", "final_at"):
        assert np.array_equal(getattr(plain, name), getattr(rows, name)), name
    assert np.array_equal(plain.next_obs(), rows.next_obs())


def test_a_plain_environment_is_preferred_to_its_vector_version(register: Callable[..., str]) -> None:
    name = register(entry_point=CountPlain, vector_entry_point=CountVector)
    environment = build_env(GymnasiumConfig(id=name), EnvContext("sampler", 0, 2))
    assert environment.reset(1, 7).tolist() == [7, 0]  # CountVector could not be built: it needs a mode


def test_a_vector_environment_gets_the_actions_of_its_own_space() -> None:
    vector = CountVector(1, "Disabled")
    environment = InProcessEnvironment([OneRow(vector)])
    environment.reset(0, 4)
    environment.step(np.array([0]))
    environment.step(np.array([2]))
    assert vector.received == [[-1], [1]]


def test_a_same_step_reset_that_hides_the_final_observation_is_refused() -> None:
    environment = InProcessEnvironment([OneRow(CountVector(1, "SameStep", T=1, tells=False))])
    environment.reset(0, 4)
    with pytest.raises(KeyError, match="final_obs"):
        environment.step(np.array([0]))


def test_gymnasiums_own_vector_cart_pole_equals_the_plain_one(register: Callable[..., str]) -> None:
    registered = gymnasium.spec("CartPole-v1")
    name = register(vector_entry_point=registered.vector_entry_point, max_episode_steps=18)

    def collected(config: GymnasiumConfig) -> Any:
        environment = build_env(config, EnvContext("sampler", 0, 2))
        return collect_loop(environment, RandomPolicy(2), 60, FixedStreams()).collect(0, 0)

    plain = collected(GymnasiumConfig(id="CartPole-v1", kwargs={"max_episode_steps": 18}))
    rows = collected(GymnasiumConfig(id=name))
    assert plain.truncated.any()
    assert plain.terminated.any()
    for flags in ("reward", "terminated", "truncated", "first"):
        assert np.array_equal(getattr(plain, flags), getattr(rows, flags)), flags
    np.testing.assert_allclose(np.asarray(rows.next_obs()), np.asarray(plain.next_obs()), atol=1e-5)


class OldGym(gymnasium.Env[Any, Any]):
    """Half moved over from the old gym: ``reset`` gives no info, or ``step`` one flag for both ends."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, method: str) -> None:
        self.method = method

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(2, np.float32) if self.method == "reset" else (np.zeros(2, np.float32), {})

    def step(self, action: Any) -> Any:
        return np.zeros(2, np.float32), 0.0, False, {}


FOLLOW = "follow Gymnasium 1.x; an environment of the old gym can be wrapped with shimmy"


def test_an_environment_of_the_old_gym_is_told_and_not_tried_again():
    """An array of two numbers would otherwise be taken for the observation and its info."""
    env = InProcessEnvironment([OldGym("reset")])
    with pytest.raises(ConfigError) as caught:
        env.reset(0, 0)
    assert caught.value.lines == (
        f"env.id: its reset returned an array float32 [2], not (observation, info): {FOLLOW}",
    )


@pytest.mark.parametrize("limited", [False, True], ids=["plain", "in a wrapper"])
def test_a_step_of_the_old_gym_is_told_whoever_notices_it(limited):
    single: Any = OldGym("step")
    env = InProcessEnvironment([gymnasium.wrappers.TimeLimit(single, 5) if limited else single])
    env.reset(0, 0)
    with pytest.raises(ConfigError) as caught:
        env.step(np.zeros(1, np.int64))
    (line,) = caught.value.lines
    what = (
        "did not return (observation, reward, terminated, truncated, info) (not enough values to unpack"
        if limited
        else "returned a tuple of 4 values, not (observation, reward, terminated, truncated, info)"
    )
    assert line.startswith(f"env.id: its step {what}")
    assert line.endswith(FOLLOW)


def test_a_value_error_of_the_environments_own_stays_what_it_is():
    class Fails(OldGym):
        def step(self, action: Any) -> Any:
            raise ValueError("not enough values to unpack (expected 5, got 4)")

    env = InProcessEnvironment([gymnasium.wrappers.TimeLimit(Fails("step"), 5)])
    env.reset(0, 0)
    with pytest.raises(ValueError, match="expected 5, got 4"):
        env.step(np.zeros(1, np.int64))
