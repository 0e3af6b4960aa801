"""A first look at what two plugins hand each other in a worker: the environment's rows and the policy's actions.

Looked at once per worker, so that a plugin of the wrong form is told by name and at once: no restart mends it.
Letters: B sub-environments; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from omnirl.api.data import Obs
from omnirl.api.environment import Environment
from omnirl.api.errors import PluginError
from omnirl.loops.forms import action_misfits, observation_misfits, step_misfits
from omnirl.runtime.plan import WorkerPlan


class FirstLook:
    """Raises PluginError, a line per misfit, which names the plugin that it is of."""

    def __init__(self, plan: WorkerPlan, num_envs: int) -> None:
        self._spec, self._num_envs = plan.env_spec, num_envs
        self._backend = f"environment backend {plan.backend.name!r}"
        self._algorithm = f"algorithm {plan.algorithm.name!r}"

    def environment(self, environment: Any) -> Environment:
        """What ``build_env`` returned."""
        lacking = [name for name in ("reset", "step", "close", "seedable") if not hasattr(environment, name)]
        if lacking:
            kind = type(environment).__name__
            self._refuse(self._backend, [f"build_env returned {kind}, which has no {', '.join(lacking)}"])
        given = getattr(environment, "num_envs", None)
        if given != self._num_envs:
            text = f"build_env was asked for {self._num_envs} sub-environments, num_envs says {given}"
            self._refuse(self._backend, [text])
        built: Environment = environment
        return built

    def row(self, obs: Obs) -> None:
        """The observation of a reset, [*obs]."""
        self._refuse(
            self._backend,
            observation_misfits("the observation", obs, self._spec.observation, ()),
            "reset returns one row; its spec and what it returns must agree: ",
        )

    def action(self, action: Any) -> None:
        """What the policy chose, [B, *act]."""
        self._refuse(self._algorithm, action_misfits(action, self._spec, self._num_envs), "its policy: ")

    def step(self, step: Any) -> None:
        """What ``step`` returned."""
        misfits = step_misfits(step, self._spec, self._num_envs)
        self._refuse(self._backend, misfits, "step returns B rows; its spec and what it returns must agree: ")

    def _refuse(self, owner: str, misfits: Iterable[str], context: str = "") -> None:
        lines = [f"{owner}: {context}{misfit}" for misfit in misfits]
        if lines:
            raise PluginError(lines)
