"""Which actions are legal, in numpy, for acting. Imports no torch.

A mask is the entry ``action_mask`` of an observation, and no input of any network. Where it forbids an action, the
network's output for it is replaced by one so low that its probability is exactly 0 and no maximum finds it; all that
comes after (sampling, log-probabilities, the greedy action) needs to know nothing of masks.

Letters: B environments; O outputs, one per action of each position; ``...`` any leading axes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from omnirl.api import (
    ACTION_MASK,
    Array,
    DictSpec,
    DiscreteAction,
    EnvSpec,
    MultiDiscreteAction,
    Obs,
    PolicyContext,
    SpaceError,
)

ILLEGAL = float(np.finfo(np.float32).min)
"""The output of an illegal action. Finite, so that 0 times its logarithm is 0 in an entropy, and not NaN."""


def is_masked(spec: EnvSpec) -> bool:
    """Whether the environment tells its legal actions."""
    return isinstance(spec.observation, DictSpec) and spec.observation.mask is not None


def action_mask(obs: Obs) -> Array | None:
    """The mask [..., O] bool of observations, if they have one."""
    return obs.get(ACTION_MASK) if isinstance(obs, Mapping) else None


def legal_outputs(outputs: Array, mask: Array | None) -> Array:
    """The outputs [..., O], those of illegal actions :data:`ILLEGAL`."""
    return outputs if mask is None else np.where(mask, outputs, np.float32(ILLEGAL))


class LegalActions:
    """The masks of one policy's observations, checked: without a legal action there is nothing to choose."""

    def __init__(self, spec: EnvSpec, context: PolicyContext) -> None:
        self._masked = is_masked(spec)
        self._where = f"{context.role} {context.index}, environment {{}} ({spec.id or 'unnamed'})"
        sizes: tuple[int, ...] = ()
        if isinstance(spec.action, DiscreteAction):
            sizes = (spec.action.n,)
        elif isinstance(spec.action, MultiDiscreteAction):
            sizes = spec.action.nvec
        self._begins = np.cumsum((0, *sizes[:-1]))

    def mask(self, obs: Obs) -> Array | None:
        """The mask [B, O] bool, None where the environment has none.

        SpaceError naming the worker and the environment where it allows no action.
        """
        if not self._masked:
            return None
        mask = action_mask(obs)
        assert mask is not None
        some = np.logical_or.reduceat(mask, self._begins, axis=1)
        if not some.all():
            row, position = (int(index) for index in np.argwhere(~some)[0])
            told = "" if len(self._begins) == 1 else f" at position {position}"
            raise SpaceError(f"{self._where.format(row)}: action_mask allows no action{told}")
        return mask
