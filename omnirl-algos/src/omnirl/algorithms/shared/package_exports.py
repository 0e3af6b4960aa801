"""The four parts of an algorithm package, loaded when first asked for, so that a sampler never imports the
learner."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any


def load_on_use(package: str, names: Sequence[str]) -> Callable[[str], Any]:
    """The module ``__getattr__`` (PEP 562) of ``package``: a name is the one in its module of that name in
    lower case, ``Learner`` that of ``<package>.learner``. AttributeError on any name not among ``names``."""

    def load(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{name.lower()}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
