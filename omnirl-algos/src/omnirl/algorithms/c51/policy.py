"""C51's policy: greedy on the expectation. Imports no torch, unless the observations are images.

Letters: B environments, n actions, Z atoms.
"""

from __future__ import annotations

import numpy as np

from omnirl.algorithms.c51.config import Config
from omnirl.algorithms.shared.values.greedy_policy import GreedyPolicy
from omnirl.api import Array, EnvSpec, PolicyContext


class Policy(GreedyPolicy):
    """See :class:`omnirl.algorithms.shared.values.greedy_policy.GreedyPolicy`."""

    def __init__(self, config: Config, spec: EnvSpec, context: PolicyContext) -> None:
        atoms = config.learner.num_atoms
        self._support = np.linspace(config.learner.v_min, config.learner.v_max, atoms, dtype=np.float32)
        super().__init__(config, spec, context, row=atoms, values=self._expectations)

    def _expectations(self, logits: Array) -> Array:
        """[B, n, Z] -> [B, n]."""
        masses = np.exp(logits - logits.max(axis=-1, keepdims=True))
        values: Array = masses @ self._support / masses.sum(axis=-1)
        return values
