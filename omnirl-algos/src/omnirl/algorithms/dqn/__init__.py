"""Deep Q-network (Mnih et al. 2015, Nature 518), for discrete actions.

``config`` (keys and pacing), ``policy`` (acting, numpy), ``memory`` (uniform replay), ``learner`` (the
update, torch). The names below are loaded on first use, so that a sampler never imports the learner.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnirl.algorithms.dqn.config import Config
    from omnirl.algorithms.dqn.learner import Learner
    from omnirl.algorithms.dqn.memory import Memory
    from omnirl.algorithms.dqn.policy import Policy

__all__ = ["Config", "Learner", "Memory", "Policy"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{name.lower()}"), name)
    globals()[name] = value
    return value
