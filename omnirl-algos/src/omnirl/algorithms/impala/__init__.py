"""Importance-weighted actor-learner architecture (Espeholt et al. 2018, arXiv:1802.01561).

``config`` (keys and pacing), ``policy`` (acting, numpy), ``memory`` (a queue), ``learner`` (the update,
torch). The names below are loaded on first use, so that a sampler never imports the learner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnirl.algorithms.shared.package_exports import load_on_use

if TYPE_CHECKING:
    from omnirl.algorithms.impala.config import Config
    from omnirl.algorithms.impala.learner import Learner
    from omnirl.algorithms.impala.memory import Memory
    from omnirl.algorithms.impala.policy import Policy

__all__ = ["Config", "Learner", "Memory", "Policy"]
__getattr__ = load_on_use(__name__, __all__)
