"""Each algorithm has its page in the documentation, with what is generated of it and a place in the navigation, and
the pages show the results that are published and no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import omnirl.plugins

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = DOCS / "algorithms"
INDEX, NAVIGATION = PAGES / "index.md", ROOT / "zensical.toml"
RESULTS = """# Learning results

| preset | steps | seeds | score | each seed |
| --- | ---: | ---: | ---: | --- |
| [cartpole-ppo](#cartpole-ppo) | 100,000 | 3 | 499.5 | 499, 500, 499.5 |
| [hopper-sac](#hopper-sac) | 300,000 | 1 | 2887.0 | 2887 |

## cartpole-ppo
"""
ENVIRONMENTS = """| suite | command |
| --- | --- |
| one | `omnirl train cartpole-ppo runner.max_steps=200` |
| two | `omnirl train pong-dqn` |

`omnirl train pong-dqn --local`
"""


def algorithms() -> list[str]:
    return [
        provided.spec.name
        for provided in omnirl.plugins.load().algorithms()
        if provided.source.distribution == "omnirl-algos"
    ]


@pytest.fixture(scope="module")
def parts(module_at: Callable[[Path], ModuleType]) -> ModuleType:
    return module_at(DOCS / "algorithm_parts.py")


def test_there_is_a_page_for_each_algorithm_and_for_nothing_else() -> None:
    pages = {page.stem for page in PAGES.glob("*.md")} - {"index"}
    assert pages == set(algorithms())
    assert len(pages) == 13


@pytest.mark.parametrize("name", algorithms())
def test_the_page_says_what_when_and_how_and_can_be_found(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert text.count(f'--8<-- "docs/reference/link-algorithm-{name}.md"') == 1, "its own generated part"
    assert re.search(r"\]\(https://(arxiv\.org/abs|doi\.org)/", text), "the formula's source"
    for part in ("**Use it**", "**Rather not**", "\n## Formula", "\n```text\n", "\n## What differs\n"):
        assert part in text, part
    assert f"]({name}.md)" in INDEX.read_text(encoding="utf-8")
    assert f'"algorithms/{name}.md"' in NAVIGATION.read_text(encoding="utf-8")


def test_results_are_those_of_the_pages_of_measurements(parts: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "results.md").write_text(RESULTS, encoding="utf-8")
    (tmp_path / "environments-results.md").write_text(ENVIRONMENTS, encoding="utf-8")
    real = "[among the real environments](../environments-results.md)"
    assert parts.published(tmp_path) == {
        "cartpole-ppo": f"[499.5 after 100,000 steps, 3 seeds](../results.md#cartpole-ppo); {real}",
        "hopper-sac": "[2887.0 after 300,000 steps, 1 seed](../results.md#hopper-sac)",
        "pong-dqn": real,
    }


def test_nothing_measured_is_nothing_published(parts: ModuleType, tmp_path: Path) -> None:
    assert parts.published(tmp_path) == {}


def test_presets_stand_with_the_algorithm_that_their_files_name(parts: ModuleType) -> None:
    presets = parts.presets_of(omnirl.plugins.load())
    assert set(presets["tqc"]) == {"pendulum-tqc"}
    assert set(presets["td3"]) >= {"pendulum-td3", "mountaincar-continuous-td3"}
    assert presets["td3"]["mountaincar-continuous-td3"]["env"]["id"] == "MountainCarContinuous-v0"


def test_the_generated_part_says_where_nothing_is_published(parts: ModuleType) -> None:
    registry = omnirl.plugins.load()
    lines = list(
        parts.algorithm_part(
            registry.algorithm("tqc"),
            takes={"actions": ["a", "b"]},
            presets=parts.presets_of(registry)["tqc"],
            results={},
            keys=["| `learner.lr` | [schedule](#schedules) |"],
        )
    )
    assert "* **actions**: a; b" in lines
    assert "| `omnirl train pendulum-tqc` | Pendulum-v1 | 20,000 | no run is published yet |" in lines
    assert lines[-1] == "| `learner.lr` | [schedule](../reference/configuration.md#schedules) |"
