"""Deep Q-network (Mnih et al. 2015, Nature 518), for discrete actions.

``config`` (keys and pacing), ``policy`` (acting, numpy), ``memory`` (uniform replay), ``learner`` (the
update, torch). The names below are loaded on first use, so that a sampler never imports the learner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnirl.algorithms.shared.package_exports import load_on_use

if TYPE_CHECKING:
    from omnirl.algorithms.dqn.config import Config
    from omnirl.algorithms.dqn.learner import Learner
    from omnirl.algorithms.dqn.memory import Memory
    from omnirl.algorithms.dqn.policy import Policy

__all__ = ["Config", "Learner", "Memory", "Policy"]
__getattr__ = load_on_use(__name__, __all__)
