"""A batch of transitions on the learner's device.

Letters: N transitions; A size of a continuous action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from omnirl.algorithms.shared.acting.action_masks import action_mask
from omnirl.algorithms.shared.acting.bounded_heads import bounded_scale
from omnirl.algorithms.shared.acting.observations import network_input
from omnirl.api import ActionSpec, Array, ArraySpec, ContinuousAction, Transitions


class TransitionTensors(NamedTuple):
    """Observations [N, ...]; action as :func:`action_tensor` gives it; the others [N] float32. ``next_mask`` [N, n]
    bool: which actions are legal in the next observation, None where all always are."""

    obs: Tensor
    action: Tensor
    reward: Tensor
    next_obs: Tensor
    discount: Tensor
    weight: Tensor
    next_mask: Tensor | None = None


def transition_tensors(
    batch: Transitions, observation: ArraySpec, action: Callable[[Array], Tensor], device: torch.device
) -> TransitionTensors:
    """``batch`` as the networks take it."""

    def sent(array: Array) -> Tensor:
        tensor = torch.from_numpy(array)
        return tensor if here else tensor.to(device)

    here = device.type == "cpu"

    next_mask = action_mask(batch.next_obs)
    return TransitionTensors(
        sent(network_input(batch.obs, observation)),
        action(batch.action),
        sent(batch.reward),
        sent(network_input(batch.next_obs, observation)),
        sent(batch.discount),
        sent(batch.weight),
        None if next_mask is None else sent(next_mask),
    )


def action_tensor(spec: ActionSpec, device: torch.device) -> Callable[[Array], Tensor]:
    """From a batch's actions to what the learner computes with.

    The numbers of discrete actions, [N, 1] int64, which ``gather`` takes; continuous ones, which are stored
    in environment units, scaled to [-1, 1], [N, A] float32.
    """
    if not isinstance(spec, ContinuousAction):
        return lambda actions: torch.from_numpy(actions.reshape(-1, 1)).to(device)
    center, half_range = (torch.from_numpy(part).to(device) for part in bounded_scale(spec))
    return lambda actions: (torch.from_numpy(actions).to(device) - center) / half_range
