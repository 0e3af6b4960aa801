"""Action masks in the learner; see :mod:`omnirl.algorithms.shared.acting.action_masks`.

Letters: N rows; O outputs, one per action of each position; n actions.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from omnirl.algorithms.shared.acting.action_masks import ILLEGAL
from omnirl.algorithms.shared.training.likelihoods import ArrayOrTensor, namespace


def legal_logits(logits: ArrayOrTensor, mask: ArrayOrTensor | None = None) -> ArrayOrTensor:
    """Logits [N, O], numpy's or torch's, with those of illegal actions so low that their probability is exactly 0.

    ``mask`` [N, O] bool. Log-probabilities, entropy and gradients are then those of the legal actions alone (Huang &
    Ontanon 2022, arXiv:2006.14171, section 3).
    """
    return logits if mask is None else namespace(logits).where(mask, logits, ILLEGAL)


def legal_values(
    values: Callable[[Tensor], ArrayOrTensor], mask: ArrayOrTensor | None
) -> Callable[[Tensor], ArrayOrTensor]:
    """A network of action values [N, n] whose illegal actions are worth less than any legal one.

    ``mask`` [N, n] bool is that of the observations the network will be asked about. Where no action is legal, as
    in a terminal state, all are worth 0.
    """
    if mask is None:
        return values
    xp, some = namespace(mask), mask.any(1)[:, None]
    return lambda obs: xp.where(some, xp.where(mask, values(obs), ILLEGAL), 0.0)
