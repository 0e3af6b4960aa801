"""Clean virtual environments with the core's wheel, as its users have them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Ours come as wheels only, and the core must do without the others.
ABSENT = ("omnirl", "__editable__", "_editable", "torch", "gymnasium", "ray", "acme")


class Environment:
    """A virtual environment of nothing but the core's wheel and what the core depends on.

    Dependencies are links to what the interpreter of the tests has installed, which costs nothing.
    """

    def __init__(self, folder: Path, core_wheel: Path) -> None:
        venv.create(folder / "venv", symlinks=True)
        self.programs = folder / "venv" / "bin"
        (self.site,) = (folder / "venv" / "lib").glob("python*/site-packages")
        self.work = folder / "work"
        self.work.mkdir()
        links = folder / "dependencies"
        links.mkdir()
        for source in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
            for item in Path(source).iterdir():
                if not item.name.startswith(ABSENT) and item.suffix != ".pth":
                    (links / item.name).symlink_to(item)
        (self.site / "dependencies.pth").write_text(str(links), encoding="utf-8")
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("OMNIRL_", "PYTHON"))
        }
        path = f"{self.programs}{os.pathsep}{kept.get('PATH', '')}"
        self.variables = {**kept, "PATH": path, "OMP_NUM_THREADS": "1"}
        self.pip("install", "--no-deps", str(core_wheel))

    def pip(self, command: str, *arguments: str) -> None:
        """Run pip on the environment."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.programs / "python"), command, "-q"]
        subprocess.run([*pip, *arguments], check=True, env=self.variables, timeout=180)

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in its working folder."""
        done = subprocess.run(
            [str(self.programs / command[0]), *command[1:]],
            cwd=self.work,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done


@pytest.fixture(scope="session")
def isolation() -> list[str]:
    """Options of pip for building: it need not fetch hatchling where it is installed."""
    return [] if importlib.util.find_spec("hatchling") is None else ["--no-build-isolation"]


@pytest.fixture(scope="session")
def core_wheel(tmp_path_factory: pytest.TempPathFactory, isolation: list[str]) -> Path:
    """One of the wheels in ``OMNIRL_WHEELS``, or built here."""
    built = os.environ.get("OMNIRL_WHEELS")
    folder = Path(built) if built else tmp_path_factory.mktemp("wheels")
    if not built:
        command = ["wheel", "-q", "--no-deps", *isolation, "-w", str(folder), str(ROOT / "omnirl-core")]
        subprocess.run([sys.executable, "-m", "pip", *command], check=True)
    return next(folder.glob("omnirl_core-*.whl"))


@pytest.fixture(scope="module")
def make_environment(tmp_path_factory: pytest.TempPathFactory, core_wheel: Path) -> Callable[[], Environment]:
    """A function that makes a fresh :class:`Environment`."""
    return lambda: Environment(tmp_path_factory.mktemp("environment"), core_wheel)
