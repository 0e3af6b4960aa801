"""Signs of life and of sickness in a worker: a step counter for the watch, and a search for NaN in rollouts.

Letters: T steps, B environments, K finished episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from omnirl.api.data import Array, Obs, Rollout, Step
from omnirl.api.environment import Environment
from omnirl.runtime.first_look import FirstLook


class CountedEnvironment:
    """An environment that counts what it is asked, so that the driver can tell a hang from a long rollout.

    Whatever else a backend's own loops read or set is the environment's.
    """

    _environment: Environment
    _look: FirstLook | None
    count: int
    num_envs: int
    seedable: bool

    def __init__(self, environment: Environment, look: FirstLook | None = None) -> None:
        """``look`` examines what is handed over until the first step has been made."""
        self.__dict__["_environment"] = environment
        self.__dict__["_look"] = look
        self.__dict__["count"] = 0

    def reset(self, index: int, seed: int) -> Obs:
        """Begin an episode."""
        self.count += 1
        try:
            row = self._environment.reset(index, seed)
        except SystemExit as error:
            raise _left(error) from error
        if self.__dict__["_look"] is not None:
            self.__dict__["_look"].row(row)
        return row

    def step(self, action: Array) -> Step:
        """Step all sub-environments."""
        self.__dict__["count"] += 1  # past the attribute's own way, which costs a microsecond
        look = self.__dict__["_look"]
        if look is not None:
            look.action(action)
        try:
            step = self._environment.step(action)
        except SystemExit as error:
            raise _left(error) from error
        if look is not None:
            look.step(step)
            self.__dict__["_look"] = None
        return step

    def close(self) -> None:
        """Release what the environment holds."""
        self._environment.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_environment"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "count":
            self.__dict__[name] = value
        else:
            setattr(self._environment, name, value)


def _left(error: SystemExit) -> RuntimeError:
    """A failure like any other: uncaught, the exit would be that of the whole run, without a word."""
    return RuntimeError(f"the environment called sys.exit({error.code!r})")


def nonfinite_value(rollout: Rollout, steps_before: int) -> str:
    """Where a rollout holds a NaN or an infinity, such as ``"env step 7, reward is nan"``; empty if nowhere.

    ``steps_before`` counts the steps T that the sampler made before this rollout; the step that gave the value is
    counted from 1.
    """
    found = _first(rollout.reward)
    if found is not None:
        place, value = found
        return f"env step {steps_before + place[0] + 1}, reward is {value}"
    observations = rollout.obs if isinstance(rollout.obs, Mapping) else {"": rollout.obs}
    finals = rollout.final_obs if isinstance(rollout.final_obs, Mapping) else {"": rollout.final_obs}
    for name, rows in observations.items():
        label = f"observation {name}" if name else "observation"
        found = _first(rows)
        if found is not None:
            place, value = found
            row = place[0] - (len(rows) - len(rollout.first))  # the lead-in of stacked frames comes first
            return f"env step {steps_before + row}, {label} is {value}"
        found = _first(finals[name])
        if found is not None:
            place, value = found
            return (
                f"env step {steps_before + int(rollout.final_at[place[0], 0]) + 1}, final {label} is {value}"
            )
    return ""


def _first(array: Array) -> tuple[tuple[int, ...], float] | None:
    """The index and value of the first element that is not finite."""
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return None
    place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
    return place, float(array[place])
