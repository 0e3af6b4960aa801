"""What is in the three wheels: one namespace shared without a clash, typed, licensed, nothing else.

``OMNIRL_WHEELS`` names a folder of wheels built already; without it they are built here.
"""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
import zipfile
from collections import Counter
from email.message import Message
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = ("omnirl-core", "omnirl-algos", "omnirl-gymnasium")
PORTIONS = {
    "omnirl-core": {
        "omnirl/api",
        "omnirl/buffers",
        "omnirl/cli",
        "omnirl/config",
        "omnirl/doctor",
        "omnirl/loops",
        "omnirl/observers",
        "omnirl/plugins",
        "omnirl/run",
        "omnirl/runs",
        "omnirl/runtime",
        "omnirl/testing",
    },
    "omnirl-algos": {"omnirl/algorithms", "omnirl/networks", "omnirl/presets"},
    "omnirl-gymnasium": {"omnirl/envs/gymnasium"},
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, zipfile.ZipFile]:
    """distribution -> its wheel, open."""
    built = os.environ.get("OMNIRL_WHEELS")
    folder = Path(built) if built else tmp_path_factory.mktemp("wheels")
    if not built:
        sources = [str(ROOT / name) for name in DISTRIBUTIONS]
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), *sources]
        subprocess.run(command, check=True)
    return {
        name: zipfile.ZipFile(next(folder.glob(f"{name.replace('-', '_')}-*.whl"))) for name in DISTRIBUTIONS
    }


def read(wheel: zipfile.ZipFile, ending: str) -> str:
    """The one file of the wheel's dist-info folder whose path ends so."""
    names = [name for name in wheel.namelist() if ".dist-info/" in name and name.endswith(ending)]
    assert len(names) == 1, f"{wheel.filename}: {ending} {names}"
    return wheel.read(names[0]).decode()


def metadata(wheel: zipfile.ZipFile) -> Message:
    return Parser().parsestr(read(wheel, "/METADATA"))


def code(wheel: zipfile.ZipFile) -> list[str]:
    return [name for name in wheel.namelist() if ".dist-info/" not in name]


def test_no_wheel_owns_a_shared_namespace(wheels: dict[str, zipfile.ZipFile]) -> None:
    for wheel in wheels.values():
        assert not {"omnirl/__init__.py", "omnirl/envs/__init__.py"} & set(wheel.namelist())


def test_no_path_is_in_two_wheels(wheels: dict[str, zipfile.ZipFile]) -> None:
    counts = Counter(name for wheel in wheels.values() for name in wheel.namelist())
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_each_portion_is_marked_as_typed(wheels: dict[str, zipfile.ZipFile], name: str) -> None:
    typed = {str(PurePosixPath(path).parent) for path in code(wheels[name]) if path.endswith("/py.typed")}
    assert typed == PORTIONS[name]


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_all_code_lies_in_the_distributions_own_portions(
    wheels: dict[str, zipfile.ZipFile], name: str
) -> None:
    own = tuple(f"{portion}/" for portion in PORTIONS[name])
    assert [path for path in code(wheels[name]) if not path.startswith(own)] == []


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_every_folder_of_code_is_a_package(wheels: dict[str, zipfile.ZipFile], name: str) -> None:
    """A forgotten __init__.py still imports, as a namespace that any other distribution can spill into."""
    files = code(wheels[name])
    folders = {str(PurePosixPath(path).parent) for path in files if path.endswith(".py")} - {"omnirl"}
    assert [folder for folder in sorted(folders) if f"{folder}/__init__.py" not in files] == []


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_wheel_holds_the_whole_source_tree_and_no_more(
    wheels: dict[str, zipfile.ZipFile], name: str
) -> None:
    source = ROOT / name / "src"
    tree = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert set(code(wheels[name])) == tree


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_each_wheel_carries_the_licence(wheels: dict[str, zipfile.ZipFile], name: str) -> None:
    assert read(wheels[name], "/licenses/LICENSE") == (ROOT / "LICENSE").read_text()
    assert metadata(wheels[name])["License-Expression"] == "Apache-2.0"


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_each_wheel_describes_itself(wheels: dict[str, zipfile.ZipFile], name: str) -> None:
    facts = metadata(wheels[name])
    assert facts["Name"] == name
    assert facts["Requires-Python"] == ">=3.10"
    assert facts["Description-Content-Type"] == "text/markdown"
    assert name in str(facts.get_payload()).splitlines()[0]


def test_versions_move_together_and_require_each_other(wheels: dict[str, zipfile.ZipFile]) -> None:
    versions = {str(metadata(wheel)["Version"]) for wheel in wheels.values()}
    assert len(versions) == 1
    major, minor, *_ = versions.pop().split(".")
    for name in ("omnirl-algos", "omnirl-gymnasium"):
        needs = metadata(wheels[name]).get_all("Requires-Dist", [])
        core = [need for need in needs if re.match(r"omnirl-core\b", need)]
        assert len(core) == 1
        bounds = set(core[0].removeprefix("omnirl-core").split(","))
        assert bounds == {f">={major}.{minor}", f"<{int(major) + 1}"}


def test_only_the_extras_bring_what_the_core_must_not_have(wheels: dict[str, zipfile.ZipFile]) -> None:
    needs = metadata(wheels["omnirl-core"]).get_all("Requires-Dist", [])
    always = {re.split(r"[<>=;\[ ]", need)[0].lower() for need in needs if "extra ==" not in need}
    assert always == {"numpy", "pluggy", "pydantic", "pyyaml", "typer", "rich", "ray"}
    assert any(need.startswith("matplotlib") and "extra == 'plot'" in need for need in needs)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_entry_points_lead_to_modules_of_the_same_wheel(
    wheels: dict[str, zipfile.ZipFile], name: str
) -> None:
    points = configparser.ConfigParser()
    points.read_string(read(wheels[name], "/entry_points.txt"))
    assert points.has_section("omnirl")
    assert points.has_section("console_scripts") == (name == "omnirl-core")
    for section in points.sections():
        for target in points[section].values():
            module = target.partition(":")[0].replace(".", "/")
            assert f"{module}.py" in code(wheels[name]), target


def test_the_extra_for_videos_brings_ffmpeg_and_what_most_pictures_are_drawn_with(
    wheels: dict[str, zipfile.ZipFile],
) -> None:
    """The message of a picture without pygame, and the page on filming, name no other extra."""
    needed = metadata(wheels["omnirl-gymnasium"]).get_all("Requires-Dist") or []
    extra = {
        re.split(r"[<>=;\s]", line)[0] for line in needed if re.search(r"extra == ['\"]video['\"]", line)
    }
    assert extra >= {"imageio-ffmpeg", "pygame-ce"}
