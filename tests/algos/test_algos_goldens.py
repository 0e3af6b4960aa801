"""Every golden has its test, and every wrong value that one names is told apart there."""

from __future__ import annotations

import ast
import json
from pathlib import Path

FOLDER = Path(__file__).parent
NOT_HERE = {"per/rank_based", "eval/iqm"}  # priorities are proportional; the core's tests have the statistics
THERE = {
    path.name: {
        node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)
    }
    for path in FOLDER.glob("*.py")
    if path != Path(__file__)
}
GOLDENS = json.loads((FOLDER / "goldens.json").read_text("utf-8"))


def test_every_golden_is_asked_for_by_name():
    named = set().union(*THERE.values())
    assert {name for name in GOLDENS if name not in named} == NOT_HERE


def test_every_golden_with_wrong_values_is_asked_for_where_they_are_told_apart():
    compared = set().union(*(names for names in THERE.values() if "must_not_equal" in names))
    assert {name for name, case in GOLDENS.items() if "must_not_equal" in case} - compared == set()
