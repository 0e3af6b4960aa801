"""Step B sub-environments in this process, into arrays that are allocated once.

Plain environments of Gymnasium are stepped one after the other. An environment that exists only as a vector
environment is used as B of them with one row each: every episode begins with ``reset(seed)``, so its own way
of resetting never decides what is stored.

Letters: B sub-environments; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from omnirl.api.data import Array, Obs, Step
from omnirl.api.errors import ConfigError
from omnirl.envs.gymnasium.composite import allocate, observation_codec, rows
from omnirl.envs.gymnasium.figures import EpisodeFigures, FirstEpisode
from omnirl.envs.gymnasium.images import UNDECLARED, Images
from omnirl.envs.gymnasium.messages import RESET, STEP, not_returned, not_unpacked, raised_in_wrapper
from omnirl.envs.gymnasium.spaces import action_codec
from omnirl.envs.gymnasium.viewing import frame, frames_per_second

_FIVE = (None,) * 5
"""What a step is before there is one."""


class InProcessEnvironment:
    """B environments of one kind as one :class:`omnirl.api.Environment`.

    ``step`` returns the same arrays each time. Environments are never reset here of their own accord.
    """

    seedable = True
    num_envs: int

    def __init__(self, envs: Sequence[gymnasium.Env[Any, Any]], images: Images = UNDECLARED) -> None:
        self._envs = list(envs)
        self.observation, self._encode = observation_codec(envs[0].observation_space, images)
        self.action, self._decode = action_codec(envs[0].action_space)
        self.num_envs = count = len(envs)
        self._has_lives = tuple(env.has_wrapper_attr("continues") for env in envs)
        obs, terminated, truncated = allocate(self.observation, (count,)), *np.zeros((2, count), np.bool_)
        self.write_to(Step(obs, np.zeros(count, np.float32), terminated, truncated, obs))

    def write_to(self, step: Step) -> None:
        """Write into the arrays of ``step`` and return it, from the next step on."""
        self._reward, self._terminated, self._truncated = step.reward, step.terminated, step.truncated
        self._step = step
        count = self.num_envs
        self._columns = tuple(
            zip(range(count), (env.step for env in self._envs), rows(step.obs, count), strict=True)
        )

    def reset(self, index: int, seed: int) -> Obs:
        """Begin an episode of sub-environment ``index``; return its first observation, a new [*obs].

        After the first one ConfigError is raised where that did not tell what ``env.metrics`` asks for.
        """
        env = self._envs[index]
        if isinstance(env, FirstEpisode) and env.ended and not self.continues(index):
            env.figures()
            self._envs[index] = env.env
            self.write_to(self._step)
        result = self._envs[index].reset(seed=seed)
        if not (isinstance(result, tuple | list) and len(result) == 2):
            raise ConfigError(not_returned("reset", RESET, result))
        observation, _ = result
        row = allocate(self.observation, ())
        self._encode(observation, row)
        return row

    def step(self, action: Array) -> Step:
        """Step all with ``action`` [B, *act]. An exception of an environment is passed on as it is; ConfigError for one
        whose step does not return what Gymnasium's does."""
        encode, reward, terminated, truncated = self._encode, self._reward, self._terminated, self._truncated
        terminated.fill(False)
        truncated.fill(False)
        result: Any = _FIVE
        try:
            for (index, step, row), own in zip(self._columns, self._decode(action), strict=True):
                result = step(own)
                observation, value, ended, cut, _ = result
                encode(observation, row)
                reward[index] = value if isinstance(value, float) else _scalar(value)
                # Most steps end nothing; writing two entries of an array costs more than asking.
                if ended or cut:
                    terminated[index], truncated[index] = ended, cut
        except (TypeError, ValueError) as error:
            if not (isinstance(result, tuple | list) and len(result) == 5):
                raise ConfigError(not_returned("step", STEP, result)) from error
            if raised_in_wrapper(error) and "to unpack (expected 5" in str(error):
                raise ConfigError(not_unpacked("step", STEP, error)) from error
            raise
        return self._step

    def continues(self, index: int) -> bool:
        """Whether the episode of ``index`` that has just ended goes on in its game, as after a lost life."""
        return self._has_lives[index] and bool(self._envs[index].get_wrapper_attr("continues"))

    def episode_metrics(self, index: int) -> dict[str, float]:
        """What ``env.metrics`` asks for of the episode of sub-environment ``index`` that has just ended."""
        env = self._envs[index]
        return env.figures() if isinstance(env, EpisodeFigures) else {}

    @property
    def frames_per_second(self) -> float:
        """The ``render_fps`` of the environment."""
        return frames_per_second(self._envs[0])

    def render(self) -> Array:
        """The picture of the first environment, uint8 [height, width, 3]. Raises ConfigError where it draws none."""
        return frame(self._envs[0])

    def close(self) -> None:
        """Close every environment, the others too where one fails to."""
        close_all(self._envs)


def close_all(envs: Sequence[gymnasium.Env[Any, Any]]) -> None:
    """Close every environment; the first failure is raised at the end."""
    failure: Exception | None = None
    for env in envs:
        try:
            env.close()
        except Exception as error:  # whatever an environment raises, the others must be closed
            failure = failure or error
    if failure is not None:
        raise failure


def _scalar(reward: Any) -> float:
    """A reward that is no float yet: an integer, a numpy number or an array of one entry."""
    values = np.asarray(reward, np.float64)
    if values.size != 1:
        raise ValueError(
            f"an environment's reward must be one number, not an array of the shape {values.shape}"
        )
    return float(values.reshape(-1)[0])


class OneRow(gymnasium.Env[Any, Any]):
    """A vector environment of one row as a plain environment, whatever its autoreset mode.

    ====================  =============================================================================
    it resets itself      the observation that ended the episode is
    ====================  =============================================================================
    in the same step      ``info["final_obs"]``
    in the next step      what the step returned; ``reset`` comes before there is a next step
    never                 what the step returned
    ====================  =============================================================================
    """

    def __init__(self, vector: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        self._vector = vector
        self.observation_space = vector.single_observation_space
        self.action_space = vector.single_action_space
        self.metadata = vector.metadata
        self.render_mode = vector.render_mode
        mode = vector.metadata.get("autoreset_mode")
        self._same_step = getattr(mode, "value", mode) == "SameStep"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode from ``seed``."""
        observations, info = self._vector.reset(seed=seed, options=options)
        return self._only(observations), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step; raises KeyError where a same-step reset does not tell the final observation."""
        observations, rewards, terminations, truncations, info = self._vector.step(np.asarray(action)[None])
        terminated, truncated = bool(terminations[0]), bool(truncations[0])
        if self._same_step and (terminated or truncated):
            observations, info = info["final_obs"], info.get("final_info", info)
        return self._only(observations), float(rewards[0]), terminated, truncated, info

    def _only(self, observations: Any) -> Any:
        """The one row; those of Dict and Tuple spaces lie in their entries."""
        if isinstance(observations, np.ndarray):
            return observations[0]
        return next(iter(gymnasium.vector.utils.iterate(self._vector.observation_space, observations)))

    def render(self) -> Any:
        """The picture of the one row."""
        frames = self._vector.render()
        return frames if frames is None else frames[0]

    def close(self) -> None:
        """Close the vector environment."""
        self._vector.close()
