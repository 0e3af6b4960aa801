"""README.md's table of presets is the list of those that are installed, each in the row of its environment; that of the
page on environments has them by suite."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import omnirl.plugins
from omnirl.config import files

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "environments.md"
ROW = re.compile(r"^\| `(?P<environment>[^`|]+)` \| (?P<presets>`[^|]+`) \|$", re.MULTILINE)


def installed() -> dict[str, list[str]]:
    """The names of OmniRL's own presets by the environment that their files name."""
    found: dict[str, list[str]] = {}
    for provided in omnirl.plugins.load().presets():
        if provided.source.distribution == "omnirl-algos":
            environment = files.load_preset(provided.spec).data["env"]["id"]
            found.setdefault(environment, []).append(provided.spec.name)
    return found


def test_the_environments_that_have_presets() -> None:
    assert set(installed()) >= {
        "CartPole-v1",
        "Acrobot-v1",
        "Pendulum-v1",
        "LunarLander-v3",
        "LunarLanderContinuous-v3",
        "MountainCar-v0",
        "BipedalWalker-v3",
        "HalfCheetah-v5",
        "Hopper-v5",
        "MinAtar/Breakout-v0",
        "ALE/Pong-v5",
        "ALE/Breakout-v5",
    }


@pytest.mark.parametrize("page", ["README.md", "docs/README.zh-CN.md"])
def test_the_table_has_every_preset_in_the_row_of_its_environment(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = {
        row["environment"]: sorted(re.findall(r"`([^`]+)`", row["presets"])) for row in ROW.finditer(text)
    }
    assert shown == {environment: sorted(names) for environment, names in installed().items()}


def test_the_page_on_environments_has_every_preset_once() -> None:
    rows = re.findall(
        r"^\| .* \| .* \| `omnirl-gymnasium.*` \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    shown = sorted(name for row in rows for name in re.findall(r"`([^`]+)`", row))
    assert shown == sorted(name for names in installed().values() for name in names)
