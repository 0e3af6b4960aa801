"""Truncated quantile critics (Kuznetsov et al. 2020, arXiv:2005.04269), for bounded continuous actions.

``config`` (keys and pacing), ``policy`` (acting, numpy), ``memory`` (uniform replay), ``learner`` (the
update, torch), ``quantiles`` (what is different from SAC). The names below are loaded on first use, so that a
sampler never imports the learner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnirl.algorithms.shared.package_exports import load_on_use

if TYPE_CHECKING:
    from omnirl.algorithms.tqc.config import Config
    from omnirl.algorithms.tqc.learner import Learner
    from omnirl.algorithms.tqc.memory import Memory
    from omnirl.algorithms.tqc.policy import Policy

__all__ = ["Config", "Learner", "Memory", "Policy"]
__getattr__ = load_on_use(__name__, __all__)
