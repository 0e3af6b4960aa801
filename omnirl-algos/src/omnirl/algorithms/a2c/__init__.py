"""Advantage actor-critic (Mnih et al. 2016, arXiv:1602.01783), for discrete and continuous actions.

``config`` (keys and pacing), ``policy`` (acting, numpy), ``memory`` (a queue), ``learner`` (the update,
torch). The names below are loaded on first use, so that a sampler never imports the learner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnirl.algorithms.shared.package_exports import load_on_use

if TYPE_CHECKING:
    from omnirl.algorithms.a2c.config import Config
    from omnirl.algorithms.a2c.learner import Learner
    from omnirl.algorithms.a2c.memory import Memory
    from omnirl.algorithms.a2c.policy import Policy

__all__ = ["Config", "Learner", "Memory", "Policy"]
__getattr__ = load_on_use(__name__, __all__)
