"""Proximal policy optimization (Schulman et al. 2017, arXiv:1707.06347), for discrete and continuous actions.

``config`` (keys and pacing), ``policy`` (acting, numpy), ``memory`` (a queue), ``learner`` (the update,
torch). The names below are loaded on first use, so that a sampler never imports the learner.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnirl.algorithms.ppo.config import Config
    from omnirl.algorithms.ppo.learner import Learner
    from omnirl.algorithms.ppo.memory import Memory
    from omnirl.algorithms.ppo.policy import Policy

__all__ = ["Config", "Learner", "Memory", "Policy"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{name.lower()}"), name)
    globals()[name] = value
    return value
