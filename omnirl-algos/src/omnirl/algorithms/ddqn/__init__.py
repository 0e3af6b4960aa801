"""Double DQN (van Hasselt et al. 2016, arXiv:1509.06461), for discrete actions.

``config`` (keys and pacing), ``policy`` (acting, numpy), ``memory`` (uniform replay), ``learner`` (the
update, torch). The names below are loaded on first use, so that a sampler never imports the learner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnirl.algorithms.shared.package_exports import load_on_use

if TYPE_CHECKING:
    from omnirl.algorithms.ddqn.config import Config
    from omnirl.algorithms.ddqn.learner import Learner
    from omnirl.algorithms.ddqn.memory import Memory
    from omnirl.algorithms.ddqn.policy import Policy

__all__ = ["Config", "Learner", "Memory", "Policy"]
__getattr__ = load_on_use(__name__, __all__)
