"""OmniRL's first version beside ours, as pip installs it: into the same folder, with an ``omnirl/__init__.py``."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NAME = "omnirl_framework-0.3.1"
FILES = {
    "omnirl/__init__.py": "__version__ = '0.3.1'\n",
    "omnirl/learner.py": "class Learner: ...\n",
    f"{NAME}.dist-info/METADATA": "Metadata-Version: 2.1\nName: omnirl-framework\nVersion: 0.3.1\n",
    f"{NAME}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
UNINSTALL = "python -m pip uninstall --yes omnirl-framework"


@pytest.fixture(scope="module")
def environment(make_environment: Callable[[], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The core's wheel and then the first version's."""
    made = make_environment()
    wheel = tmp_path_factory.mktemp("first") / f"{NAME}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
        archive.writestr(f"{NAME}.dist-info/RECORD", "".join(f"{name},,\n" for name in FILES))
    made.pip("install", "--no-deps", str(wheel))
    return made


@pytest.fixture
def first_version(environment: Any) -> Path:
    """The folder of the package that both have, with the first version there."""
    folder = Path(environment.site) / "omnirl"
    if not (folder / "__init__.py").exists():
        pytest.skip("an earlier test has uninstalled it")
    return folder


def test_it_hides_our_package(environment: Any, first_version: Path) -> None:
    """What makes the rest of this file worth testing."""
    code = "import omnirl; print(omnirl.__file__)"
    assert environment.run("python", "-c", code).stdout.strip() == str(first_version / "__init__.py")


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["train", "cartpole-ppo"]])
def test_every_command_says_so(environment: Any, first_version: Path, arguments: list[str]) -> None:
    done = environment.run("omnirl", *arguments, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert "omnirl-framework, OmniRL's first version, is installed and hides this one" in done.stderr
    assert UNINSTALL in done.stderr
    assert "--force-reinstall --no-deps omnirl-core" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_doctor_says_so_among_all_else(environment: Any, first_version: Path) -> None:
    done = environment.run("omnirl", "doctor", check=False)
    assert done.returncode == 4
    assert "problem  package omnirl: omnirl-framework" in done.stdout
    assert f"-> {UNINSTALL}" in done.stdout


def test_what_it_says_mends_it(environment: Any, first_version: Path) -> None:
    environment.pip("uninstall", "--yes", "omnirl-framework")
    assert "omnirl-core" in environment.run("omnirl", "version").stdout


def test_a_package_file_that_was_left_behind_is_named(environment: Any) -> None:
    left = Path(environment.site) / "omnirl" / "__init__.py"
    if left.exists():
        environment.pip("uninstall", "--yes", "omnirl-framework")
    left.write_text("", encoding="utf-8")
    done = environment.run("omnirl", "version", check=False)
    left.unlink()
    assert done.returncode == 4
    assert f"{left} takes the name of the package that OmniRL's distributions share; remove it" in done.stderr
