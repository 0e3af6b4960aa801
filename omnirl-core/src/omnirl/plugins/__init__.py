"""Find the installed plugins: :func:`load` returns the :class:`Registry` of the names that they provide.

Importing this package costs next to nothing (standard library and pluggy), because ``omnirl --help`` does it.
"""

from __future__ import annotations

from omnirl.plugins.loader import load
from omnirl.plugins.registry import Registry
from omnirl.plugins.sources import PluginFailure, PluginSource, Provided

__all__ = ["PluginFailure", "PluginSource", "Provided", "Registry", "load"]
