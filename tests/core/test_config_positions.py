"""Which place a mistake is shown at, where several sources wrote the value."""

from __future__ import annotations

from omnirl.config.files import load_text, merge
from omnirl.config.overrides import parse
from omnirl.config.positions import Positions

PRESET = "modules:\n  policy:\n    epsilon:\n      start: 1\n      end: 0.05\n  learner: {lr: 1}\n"


def shown(path: str, *assignments: str) -> str:
    return str(Positions(merge(load_text(PRESET, "preset"), parse(assignments))).shown(path))


def test_of_a_mapping_changed_in_part_it_is_the_place_of_the_change():
    assert shown("modules.policy.epsilon") == "preset:3:5"
    assert shown("modules.policy.epsilon", "modules.policy.epsilon.end=-1") == "override"
    assert shown("modules.policy.epsilon.start", "modules.policy.epsilon.end=-1") == "preset:4:7"
    assert shown("modules.policy.epsilon", "modules.learner.lr=2") == "preset:3:5"


def test_of_what_is_missing_it_is_its_section():
    assert shown("modules.learner.gamma", "modules.learner.lr=2") == "preset:6:3"
