"""What a checkpoint holds of several learners: rank 0's part where a single learner's is, the others' beside it.

Every rank's own state is kept, since each has seen other rollouts: figures behind an unfinished row, statistics of a
normaliser that wait for their update. Most of it is equal on all ranks, and is written once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

RANKS = "ranks"


def shared(state: Any, first: Any) -> Any:
    """``state`` with every array that ``first`` holds too, in the same place, replaced by that very array."""
    if isinstance(state, Mapping):
        known = first if isinstance(first, Mapping) else {}
        return {key: shared(value, known.get(key)) for key, value in state.items()}
    if isinstance(state, np.ndarray) and isinstance(first, np.ndarray):
        equal = (
            state.dtype == first.dtype and state.shape == first.shape and state.tobytes() == first.tobytes()
        )
        return first if equal else state
    return state


def part_of_rank(tree: Mapping[str, Any], rank: int, count: int) -> dict[str, Any]:
    """What one of ``count`` learners goes on from. Where there were more or fewer it is rank 0's learner alone: the
    memories were filled by other samplers than theirs now."""
    if 1 + len(tree.get(RANKS, {})) != count:
        return {"learner": tree["learner"]}
    part = tree if rank == 0 else tree[RANKS][str(rank)]
    return {name: part[name] for name in ("learner", "memory") if name in part}
