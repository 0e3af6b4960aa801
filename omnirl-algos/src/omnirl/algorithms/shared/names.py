"""Strictness about the names of weights. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable


def check_names(given: Iterable[str], expected: Iterable[str]) -> None:
    """Raise KeyError naming what is missing and what is unexpected."""
    missing, extra = sorted(set(expected) - set(given)), sorted(set(given) - set(expected))
    if missing or extra:
        raise KeyError(f"weights do not fit the network: missing {missing}, unexpected {extra}")
