"""Categorical DQN of 51 atoms (Bellemare et al. 2017, arXiv:1707.06887), for discrete actions.

``config`` (keys and pacing), ``policy`` (acting, numpy), ``memory`` (uniform replay), ``learner`` (the
update, torch). The names below are loaded on first use, so that a sampler never imports the learner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnirl.algorithms.shared.package_exports import load_on_use

if TYPE_CHECKING:
    from omnirl.algorithms.c51.config import Config
    from omnirl.algorithms.c51.learner import Learner
    from omnirl.algorithms.c51.memory import Memory
    from omnirl.algorithms.c51.policy import Policy

__all__ = ["Config", "Learner", "Memory", "Policy"]
__getattr__ = load_on_use(__name__, __all__)
