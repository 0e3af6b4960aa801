"""Clean virtual environments with our wheels, as their users have them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEVER_LINKED = ("omnirl", "__editable__", "_editable", "acme")  # ours come as wheels only
NOT_FOR_THE_CORE = ("torch", "gymnasium", "ray")


class Environment:
    """A virtual environment of nothing but ``wheels`` and what they depend on.

    Dependencies are links to what the interpreter of the tests has installed, which costs nothing; names that begin
    with one of ``absent`` are left out.
    """

    def __init__(self, folder: Path, wheels: Sequence[Path], absent: tuple[str, ...]) -> None:
        venv.create(folder / "venv", symlinks=True)
        self.programs = folder / "venv" / "bin"
        (self.site,) = (folder / "venv" / "lib").glob("python*/site-packages")
        self.work = folder / "work"
        self.work.mkdir()
        links = folder / "dependencies"
        links.mkdir()
        for source in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
            for item in Path(source).iterdir():
                if not item.name.startswith(NEVER_LINKED + absent) and item.suffix != ".pth":
                    (links / item.name).symlink_to(item)
        (self.site / "dependencies.pth").write_text(str(links), encoding="utf-8")
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("OMNIRL_", "PYTHON"))
        }
        path = f"{self.programs}{os.pathsep}{kept.get('PATH', '')}"
        self.variables = {**kept, "PATH": path, "OMP_NUM_THREADS": "1"}
        self.pip("install", "--no-deps", *map(str, wheels))

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
def wheels(tmp_path_factory: pytest.TempPathFactory, isolation: list[str]) -> Path:
    """The folder of our wheels: that in ``OMNIRL_WHEELS``, or one of wheels built here."""
    built = os.environ.get("OMNIRL_WHEELS")
    if built:
        return Path(built)
    folder = tmp_path_factory.mktemp("wheels")
    sources = [str(ROOT / name) for name in ("omnirl-core", "omnirl-algos", "omnirl-gymnasium")]
    command = ["wheel", "-q", "--no-deps", *isolation, "-w", str(folder), *sources]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True)
    return folder


@pytest.fixture(scope="module")
def make_environment(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Callable[..., Environment]:
    """``make_environment()`` has the core and no torch, Gymnasium or Ray; with ``everything=True`` all three wheels and
    whatever the tests' own interpreter has."""

    def make(everything: bool = False) -> Environment:
        chosen = sorted(wheels.glob("omnirl_*.whl" if everything else "omnirl_core-*.whl"))
        absent = () if everything else NOT_FOR_THE_CORE
        return Environment(tmp_path_factory.mktemp("environment"), chosen, absent)

    return make
