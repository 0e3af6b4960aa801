"""What ``omnirl envs check`` looks at before an environment of Gymnasium is adapted: its API, its results, its ends.

The adapter casts dtypes and copies arrays, so from outside these mistakes cannot be seen. Observations are looked at
in :mod:`omnirl.envs.gymnasium.observation_checks`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np

from omnirl.api.environment import EnvFinding
from omnirl.api.errors import ConfigError
from omnirl.api.specs import ACTION_MASK
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.figures import EpisodeFigures
from omnirl.envs.gymnasium.making import make
from omnirl.envs.gymnasium.messages import FOLLOW_GYMNASIUM, RESET, STEP, one_line, shape_of
from omnirl.envs.gymnasium.observation_checks import ObservationChecks, error, warning

_PATIENCE = 10_000
_PATIENCE_SECONDS = 20.0
"""How much longer than asked an episode may take to end."""


def check(config: GymnasiumConfig, steps: int) -> list[EnvFinding]:
    """Play ``steps`` random steps of the environment in its wrappers. Raises ConfigError where it cannot be built."""
    env = make(config, training=True)
    try:
        found = [*_reset_api(env.unwrapped), *_step_api(env.unwrapped)]
        if not found:
            found = _Play(env, config).run(steps)
        return [*found, *_rendering(env)]
    finally:
        env.close()


def _reset_api(env: gymnasium.Env[Any, Any]) -> Iterator[EnvFinding]:
    """The environment itself, since wrappers would fail in words of their own."""
    try:
        result: Any = env.reset(seed=0)
    except TypeError as failure:
        if "seed" not in str(failure):
            yield _raises("reset()", failure)
            return
        remedy = "def reset(self, *, seed=None, options=None): super().reset(seed=seed)"
        yield error("reset", f"reset takes no seed: {one_line(failure)}", remedy)
        return
    except (Exception, SystemExit) as failure:  # an environment may raise anything
        yield _raises("reset()", failure)
        return
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
        yield error("reset", f"reset returns {shape_of(result)}, not {RESET}", FOLLOW_GYMNASIUM)


def _step_api(env: gymnasium.Env[Any, Any]) -> Iterator[EnvFinding]:
    try:
        env.reset(seed=0)
        result: Any = env.step(env.action_space.sample())
    except (Exception, SystemExit):  # told where the steps are played, or by the check of reset
        return
    if not (isinstance(result, tuple) and len(result) == 5):
        text = f"step returns {shape_of(result)}, not {STEP}"
        yield error("step", text, FOLLOW_GYMNASIUM)


class _Play:
    """Random steps; of each kind of mistake the first one is told."""

    def __init__(self, env: gymnasium.Env[Any, Any], config: GymnasiumConfig) -> None:
        self._env = EpisodeFigures(env, config.metrics, config.id)
        self._config = config
        self._observations = ObservationChecks(env.observation_space)
        self._found: dict[str, EnvFinding] = {}
        self._steps = self._episodes = 0

    def run(self, steps: int) -> list[EnvFinding]:
        """Play, and on to the end of an episode where none has ended; an error ends it."""
        self._env.action_space.seed(0)
        try:
            self._play(steps)
        except ConfigError as failure:  # of env.metrics, or of a mask
            self._add(error("configuration", line, "change that key") for line in failure.lines)
        except (Exception, SystemExit) as failure:
            self._add([_raises(f"step {self._steps + 1}", failure)])
        if not self._episodes and not self._broken:
            remedy = "set env.kwargs.max_episode_steps, or truncate episodes in the environment"
            text = f"no episode ended in {self._steps:,} steps: an evaluation, which plays whole ones, might never end"
            self._add([error("endless", text, remedy)])
        return list(self._found.values())

    @property
    def _broken(self) -> bool:
        return any(finding.severity == "error" for finding in self._found.values())

    def _play(self, steps: int) -> None:
        observation, _ = self._env.reset(seed=0)
        self._add(self._observations.look(observation, "the reset"))
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self._broken and (self._steps < steps or self._goes_on(steps, deadline)):
            result: Any = self._env.step(self._action(observation))
            observation, reward, terminated, truncated, info = result
            self._steps += 1
            where = f"step {self._steps}"
            self._add(self._observations.look(observation, where))
            self._add(_reward_findings(reward, where))
            for name, flag in (("terminated", terminated), ("truncated", truncated)):
                self._add(_flag_findings(name, flag, where))
            if not isinstance(info, dict):
                text = f"{where}: info is {type(info).__name__}, not a dict"
                self._add([error("info", text, "return {} where there is nothing to tell")])
            if not self._broken and (terminated or truncated):
                self._episodes += 1
                self._env.figures()  # says which of env.metrics info lacks
                observation, _ = self._env.reset(seed=self._episodes)
                self._add(self._observations.look(observation, f"the reset after {where}"))

    def _goes_on(self, steps: int, deadline: float) -> bool:
        return not self._episodes and self._steps < steps + _PATIENCE and time.monotonic() < deadline

    def _action(self, observation: Any) -> Any:
        mask = observation.get(ACTION_MASK) if isinstance(observation, dict) else None
        if mask is not None and isinstance(self._env.action_space, gymnasium.spaces.Discrete):
            return self._env.action_space.sample(mask=np.asarray(mask, np.int8))
        return self._env.action_space.sample()

    def _add(self, findings: Any) -> None:
        for finding in findings:
            self._found.setdefault(f"{finding.name} {finding.severity}", finding)


def _reward_findings(reward: Any, where: str) -> Iterator[EnvFinding]:
    try:
        array = np.asarray(reward, np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.size != 1 or reward is None:
        text = f"{where}: the reward is {shape_of(reward)}, not one number"
        yield error("reward", text, "return float(reward), the sum of its parts")
        return
    if not np.isfinite(array).all():
        remedy = "find the division or the logarithm that gives it; a rollout that holds one is refused"
        yield error("finite", f"{where}: the reward is {float(array.reshape(-1)[0])}", remedy)
    if isinstance(reward, np.ndarray | list | tuple | bool | np.bool_):
        text = f"{where}: the reward is {shape_of(reward)}, not a float"
        yield warning("reward", text, "return float(reward): other code adds it up as it is")


def _flag_findings(name: str, flag: Any, where: str) -> Iterator[EnvFinding]:
    if isinstance(flag, bool | np.bool_):
        return
    text = f"{where}: {name} is {shape_of(flag)}, not a bool"
    remedy = f"return bool({name})"
    usable = isinstance(flag, int | np.integer) or (isinstance(flag, np.ndarray) and flag.size == 1)
    yield warning(name, text, remedy) if usable else error(name, text, remedy)


def _rendering(env: gymnasium.Env[Any, Any]) -> Iterator[EnvFinding]:
    if env.metadata.get("render_modes") and "render_fps" not in env.metadata:
        text = "metadata has render_modes but no render_fps, so videos show 30 steps per second"
        yield warning("render_fps", text, 'add "render_fps": steps per second of the real thing')


def _raises(where: str, failure: BaseException) -> EnvFinding:
    return error(
        "raises", f"{where}: {one_line(failure)}", "mend the environment: a worker would fail there too"
    )
