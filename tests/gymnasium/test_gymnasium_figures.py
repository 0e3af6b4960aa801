"""env.metrics: which figures of info an evaluation reports, and what is said where info has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from pydantic import ValidationError

from omnirl.api.environment import EnvContext
from omnirl.api.errors import ConfigError
from omnirl.envs.gymnasium.backend import BACKEND
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.figures import FirstEpisode
from omnirl.loops.aggregate import aggregate
from omnirl.loops.evaluation import evaluation_loop
from omnirl.testing.fakes import FakePolicy, FakeStreams


class Teller(gymnasium.Env[Any, Any]):
    """Its steps tell what it is given, one mapping per step; the last one ends the episode."""

    def __init__(self, infos: Sequence[Mapping[str, Any]], render_mode: str | None = None) -> None:
        self.observation_space, self.action_space = spaces.Box(-1, 1, (1,)), spaces.Discrete(2)
        self._infos, self._step = infos, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._step = 0
        return np.zeros(1, np.float32), {"speed": 99.0}  # of no step

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        info = dict(self._infos[self._step])
        self._step += 1
        return np.zeros(1, np.float32), 1.0, self._step == len(self._infos), False, info


def evaluated(config: GymnasiumConfig, episodes: int = 3, num_envs: int = 2) -> dict[str, float]:
    """The figures of an evaluation, which must be those that the spec announces."""
    spec = BACKEND.get_env_spec(config)
    environment = BACKEND.build_env(config, EnvContext("evaluator", 0, num_envs))
    found = aggregate(evaluation_loop(environment, FakePolicy(spec, num_envs), episodes, FakeStreams()))
    environment.close()
    assert tuple(found) == spec.eval_metrics
    return found


@pytest.fixture
def teller(register: Callable[..., str]) -> Callable[..., dict[str, Any]]:
    """``teller(info, info, ...)`` -> the keys id and kwargs of an environment whose steps tell these."""
    name = register(entry_point=Teller)
    return lambda *infos: {"id": name, "kwargs": {"infos": list(infos)}}


def test_last_sum_and_mean_of_what_the_steps_tell(teller: Any) -> None:
    keys = teller(
        {"speed": 1.0, "part": {"height": 7}}, {}, {"speed": 4, "ok": True}, {"part": {"height": [9]}}
    )
    metrics = ("speed", "sum:speed", "mean:speed", "part.height", "ok")
    found = evaluated(GymnasiumConfig(**keys, metrics=list(metrics)))
    expected = {"speed": 4.0, "speed_sum": 5.0, "speed_mean": 2.5, "part.height": 9.0, "ok": 1.0}
    assert {name: found[name] for name in expected} == expected
    assert (found["return_mean"], found["length_mean"]) == (4.0, 4.0)


@pytest.mark.parametrize(
    ("infos", "rate"),
    [
        ([{"is_success": False}, {"is_success": True}], 1.0),
        ([{"is_success": True}, {"is_success": np.float32(0)}], 0.0),
        ([{}, {"success": 1}], 1.0),
        ([{"success": 0, "is_success": 1}], 1.0),
    ],
)
def test_success_is_that_at_the_end_by_either_name(
    teller: Any, infos: list[dict[str, Any]], rate: float
) -> None:
    assert evaluated(GymnasiumConfig(**teller(*infos), metrics=["success"]))["success"] == rate


def test_figures_of_several_episodes_are_averaged(register: Callable[..., str]) -> None:
    class Lucky(Teller):
        """Succeeds where the seed is odd; FakeStreams gives 0 and 1 to the first, 1000 and 1001 to the second."""

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            assert seed is not None
            self._infos = [{"success": seed % 2}] * (1 + seed % 2)
            return super().reset()

    config = GymnasiumConfig(id=register(entry_point=Lucky), kwargs={"infos": []}, metrics=["success"])
    assert evaluated(config, episodes=3)["success"] == pytest.approx(1 / 3)
    assert evaluated(config, episodes=4)["success"] == 0.5


def test_what_no_step_tells_is_named_with_what_there_is(teller: Any) -> None:
    keys = teller({"speed": 1.0}, {"height": 2.0})
    with pytest.raises(ConfigError) as caught:
        evaluated(GymnasiumConfig(**keys, metrics=["sped", "height", "success"]))
    whole = f"info of {keys['id']!r} has no {{}} in a whole episode (it has: speed, height)"
    assert caught.value.lines == (
        f"env.metrics: 'sped': {whole.format('sped')}",
        f"env.metrics: 'success': {whole.format('is_success or success')}",
    )


@pytest.mark.parametrize(("value", "shown"), [("fast", "'fast'"), ([1, 2], "[1, 2]"), (None, None)])
def test_what_is_no_number_is_told(teller: Any, value: Any, shown: str | None) -> None:
    keys = teller({"speed": value})
    config = GymnasiumConfig(**keys, metrics=["speed"])
    if shown is None:  # numpy's nan, as of a figure that is not known
        assert np.isnan(evaluated(config)["speed"])
        return
    with pytest.raises(ConfigError) as caught:
        evaluated(config)
    (line,) = caught.value.lines
    assert line == f"env.metrics: 'speed': info of {keys['id']!r} says {shown}, not one number"


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        (
            ["mean:return"],
            "'mean:return' would be the column eval_return_mean, which is a figure of every evaluation",
        ),
        (["speed", "speed"], "'speed' would be the column eval_speed, which is that of 'speed'"),
        (
            ["speed_sum", "sum:speed"],
            "'sum:speed' would be the column eval_speed_sum, which is that of 'speed_sum'",
        ),
        (["max:speed"], "'max:speed': 'max' is neither sum nor mean"),
        (["sum:"], "'sum:' is not the name of an entry of info, such as success or sum:speed"),
        ([""], "'' is not the name of an entry of info"),
        (["a b"], "'a b' is not the name of an entry of info"),
        ("speed", "must be a list of entries of info, such as [speed]"),
    ],
)
def test_a_wrong_entry_is_refused_before_anything_is_imported(metrics: Any, text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        GymnasiumConfig(id="CartPole-v1", metrics=metrics)
    assert text in str(caught.value)


def test_samplers_tell_after_their_first_episode_what_is_missing(teller: Any) -> None:
    keys = teller({"speed": 1.0}, {})
    config = GymnasiumConfig(**keys, metrics=["sped", "speed"])
    environment: Any = BACKEND.build_env(config, EnvContext("sampler", 0, 1))
    environment.reset(0, 0)
    for _ in range(2):
        environment.step(np.zeros(1, np.int64))
    with pytest.raises(ConfigError) as caught:
        environment.reset(0, 1)
    text = f"info of {keys['id']!r} has no sped in a whole episode (it has: speed)"
    assert caught.value.lines == (f"env.metrics: 'sped': {text}",)
    environment.close()


def test_samplers_gather_nothing_after_their_first_episode(teller: Any) -> None:
    config = GymnasiumConfig(**teller({"speed": 1.0}, {}), metrics=["speed"])
    environment: Any = BACKEND.build_env(config, EnvContext("sampler", 0, 2))
    innermost = [env.env for env in environment._envs]
    for index in (0, 1, 0):  # also a reset before any end, as where a run goes on: it is no episode
        environment.reset(index, 0)
    assert all(isinstance(env, FirstEpisode) for env in environment._envs)
    for _ in range(2):
        step = environment.step(np.zeros(2, np.int64))
    assert step.terminated.tolist() == [True, True]
    environment.reset(0, 1)
    assert environment._envs[0] is innermost[0]
    assert isinstance(environment._envs[1], FirstEpisode)
    environment.reset(1, 1)
    assert environment._envs == innermost
    assert environment.episode_metrics(0) == {}
    steps = [environment.step(np.zeros(2, np.int64)).reward.tolist() for _ in range(2)]
    assert steps == [[1.0, 1.0], [1.0, 1.0]]


def test_a_lost_life_is_no_end_for_a_sampler(register: Callable[..., str]) -> None:
    class Lives(Teller):
        """Each life is two steps, and only the first one tells the score."""

        continues = True

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            self._infos = [{"score": 1}, {}] if seed == 0 else [{}, {}]
            return super().reset()

    config = GymnasiumConfig(id=register(entry_point=Lives), kwargs={"infos": []}, metrics=["score"])
    environment: Any = BACKEND.build_env(config, EnvContext("sampler", 0, 1))
    for seed in (0, 1):
        environment.reset(0, seed)
        for _ in range(2):
            environment.step(np.zeros(1, np.int64))
        assert environment.continues(0)
    environment._envs[0].unwrapped.continues = False
    environment.reset(0, 2)
    assert not isinstance(environment._envs[0], FirstEpisode)


def test_a_real_environment() -> None:
    """FrozenLake tells the probability of every step's slip: 1/3 on slippery ice."""
    config = GymnasiumConfig(id="FrozenLake-v1", metrics=["prob", "sum:prob"])
    found = evaluated(config, episodes=4)
    assert found["prob"] == pytest.approx(1 / 3)
    assert found["prob_sum"] == pytest.approx(found["length_mean"] / 3)
