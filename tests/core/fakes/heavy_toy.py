"""A policy whose module brings torch along: it pretends to, since torch need not be installed here."""

from __future__ import annotations

import sys
import types

from omnirl.testing.toy import ToyPolicy

sys.modules["torch"] = types.ModuleType("torch")

__all__ = ["ToyPolicy"]
