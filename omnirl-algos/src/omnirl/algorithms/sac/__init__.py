"""Soft actor-critic, for continuous actions (Haarnoja et al. 2018, arXiv:1812.05905) and for discrete ones
(Christodoulou 2019, arXiv:1910.07207).

``config`` (keys and pacing), ``policy`` (acting, numpy), ``memory`` (uniform replay), ``learner`` (the
update, torch), ``discrete`` (what is different for discrete actions). The names below are loaded on first use,
so that a sampler never imports the learner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnirl.algorithms.shared.package_exports import load_on_use

if TYPE_CHECKING:
    from omnirl.algorithms.sac.config import Config
    from omnirl.algorithms.sac.learner import Learner
    from omnirl.algorithms.sac.memory import Memory
    from omnirl.algorithms.sac.policy import Policy

__all__ = ["Config", "Learner", "Memory", "Policy"]
__getattr__ = load_on_use(__name__, __all__)
