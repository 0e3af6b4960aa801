"""What tests of plugins build on: conformance suites to subclass, environments with known answers, strict fakes.

======================================  ==================================================================
:class:`AlgorithmSuite`                 what every algorithm must do; subclass it in a test of yours
:class:`BackendSuite`                   what every environment backend must do; the same
:mod:`omnirl.testing.environments`      a backend of known answers, without a simulator and without torch;
                                        ``env: {module: omnirl.testing.environments, id: probe_p4}``
:mod:`omnirl.testing.fakes`             policies, streams and environments that check what they are given
:mod:`omnirl.testing.rollouts`          rollouts out of plain lists
:mod:`omnirl.testing.miniature`         a whole run in one process
======================================  ==================================================================

The suites are loaded on first use. They are written for pytest but do not import it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnirl.testing.algorithm_suite import AlgorithmSuite
    from omnirl.testing.backend_suite import BackendSuite

__all__ = ["AlgorithmSuite", "BackendSuite"]

_MODULES = {"AlgorithmSuite": "algorithm_suite", "BackendSuite": "backend_suite"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
