"""Uniformly random actions at the beginning of a run. Imports no torch.

Letters: B environments.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnirl.algorithms.shared.acting.bounded_heads import ActionScale
from omnirl.algorithms.shared.acting.distributions import NoiseBlock
from omnirl.api import ActContext, ActionSpec, Array, ContinuousAction, DiscreteAction


class RandomStart:
    """While the whole run has requested less than ``steps`` steps, actions are drawn uniformly from the space, in
    environment units; the policy's own afterwards. Noise is drawn ``rows`` steps at a time."""

    def __init__(self, spec: ActionSpec, steps: int, num_envs: int, rows: int) -> None:
        self._steps = steps
        self._convert: Callable[[Array], Array] = np.copy
        if isinstance(spec, ContinuousAction):
            self._convert = ActionScale(spec).to_environment
            self._noise = NoiseBlock(
                lambda rng, shape: rng.uniform(-1.0, 1.0, shape).astype(np.float32),
                rows,
                (num_envs, len(spec.low)),
            )
        else:
            assert isinstance(spec, DiscreteAction)
            count = spec.n
            self._noise = NoiseBlock(lambda rng, shape: rng.integers(count, size=shape), rows, (num_envs,))

    def __call__(self, own: Callable[[], Array], act: ActContext) -> Array:
        """The actions [B, *act]; ``own`` is asked for its only where they are needed."""
        return self._convert(self._noise.next(act.rng)) if act.env_steps < self._steps else own()
