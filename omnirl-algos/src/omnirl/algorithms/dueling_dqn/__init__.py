"""Dueling double DQN (Wang et al. 2016, arXiv:1511.06581), for discrete actions.

``config`` (keys and pacing), ``policy`` (acting, numpy), ``memory`` (uniform replay), ``learner`` (the
update, torch). The names below are loaded on first use, so that a sampler never imports the learner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnirl.algorithms.shared.package_exports import load_on_use

if TYPE_CHECKING:
    from omnirl.algorithms.dueling_dqn.config import Config
    from omnirl.algorithms.dueling_dqn.learner import Learner
    from omnirl.algorithms.dueling_dqn.memory import Memory
    from omnirl.algorithms.dueling_dqn.policy import Policy

__all__ = ["Config", "Learner", "Memory", "Policy"]
__getattr__ = load_on_use(__name__, __all__)
