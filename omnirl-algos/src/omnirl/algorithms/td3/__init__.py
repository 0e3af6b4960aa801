"""Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018, arXiv:1802.09477), for bounded continuous
actions.

``config`` (keys and pacing), ``policy`` (acting, numpy), ``memory`` (uniform replay), ``learner`` (the
update, torch). The names below are loaded on first use, so that a sampler never imports the learner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnirl.algorithms.shared.package_exports import load_on_use

if TYPE_CHECKING:
    from omnirl.algorithms.td3.config import Config
    from omnirl.algorithms.td3.learner import Learner
    from omnirl.algorithms.td3.memory import Memory
    from omnirl.algorithms.td3.policy import Policy

__all__ = ["Config", "Learner", "Memory", "Policy"]
__getattr__ = load_on_use(__name__, __all__)
