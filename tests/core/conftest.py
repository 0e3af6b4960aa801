"""Fixtures of the core's tests: installations of plugins on disk, and a registry of fake plugins."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FAKES = str(Path(__file__).parent / "fakes")


@dataclass
class Installation:
    """A folder of real distributions (modules and dist-info), looked at by child processes."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def add(
        self, distribution: str, version: str, plugins: Mapping[str, str], modules: Mapping[str, str]
    ) -> None:
        """Install a distribution: ``plugins`` are entry points (name -> module), ``modules`` source texts."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        entries = "".join(f"{name} = {module}\n" for name, module in plugins.items())
        (info / "entry_points.txt").write_text(f"[omnirl]\n{entries}", encoding="utf-8")
        for name, source in modules.items():
            path = self.folder / (name.replace(".", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source, encoding="utf-8")

    def run(self, code: str) -> subprocess.CompletedProcess[str]:
        """Run code in a fresh interpreter that sees this installation beside the real one."""
        path = os.pathsep.join([str(self.folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OMNIRL_")}
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, **self.variables, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def ask(self, code: str) -> Any:
        """The value that code assigns to ``answer``, by way of JSON; ``registry`` is there."""
        done = self.run(
            "import json, omnirl.plugins\nregistry = omnirl.plugins.load()\n"
            f"{code}\nprint(json.dumps(answer))"
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """An empty installation."""
    return Installation(tmp_path / "site")


@pytest.fixture(scope="module")
def shared_installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An empty installation for all tests of a module."""
    return Installation(tmp_path_factory.mktemp("installation") / "site")


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module ``acme_rl`` of fake specs and models, importable by its import strings."""
    monkeypatch.syspath_prepend(FAKES)
    return importlib.import_module("acme_rl")


@pytest.fixture
def fake_registry(fakes: Any) -> Any:
    """A registry of the fake algorithms and the fake backend."""
    from omnirl.plugins import PluginSource, Provided, Registry

    source = PluginSource("acme", "acme-rl", "1.2", "acme_rl.plugin")
    return Registry(
        {
            "omnirl_algorithms": [
                Provided(spec, source) for spec in (fakes.Q, fakes.GRADIENT, fakes.BOUNDED)
            ],
            "omnirl_env_backends": [Provided(fakes.ENVS, source)],
        },
        loaded=[source],
    )


@pytest.fixture
def checked() -> Callable[..., Any]:
    """``(text, registry, *assignments)`` -> the resolved configuration, all checks of files passed."""
    from omnirl.config import overrides
    from omnirl.config.check import check_files
    from omnirl.config.files import load_text, merge
    from omnirl.config.resolve import resolve

    def check(text: str, registry: Any, *assignments: str) -> Any:
        config = resolve(merge(load_text(text, "train.yaml"), overrides.parse(assignments)), registry)
        check_files(config)
        return config

    return check


@pytest.fixture
def lines_of(checked: Callable[..., Any]) -> Callable[..., list[str]]:
    """The same for a configuration with mistakes: the lines of its ConfigError."""
    from omnirl.api.errors import ConfigError

    def lines(text: str, registry: Any, *assignments: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            checked(text, registry, *assignments)
        assert not any("\n" in line or "pydantic" in line for line in caught.value.lines)
        return list(caught.value.lines)

    return lines


@pytest.fixture
def make_run() -> Callable[..., Path]:
    """Lay the folder of a run down: ``make_run(folder, header, rows, seed=0, finished=None, updates=0, **modules)``.

    finished: what its checkpoint says, None for no checkpoint. The modules become ``modules.learner``.
    """
    from omnirl.config import files
    from omnirl.runtime import checkpoint

    def make(
        folder: Path,
        header: str = "",
        rows: Sequence[str] = (),
        *,
        seed: int = 0,
        finished: bool | None = None,
        updates: int = 0,
        env_id: str = "count",
        runner: Mapping[str, Any] | None = None,
        algorithm: str = "toy",
        **learner: Any,
    ) -> Path:
        folder.mkdir(parents=True)
        config = {
            "runner": {"ckpt_dir": str(folder), "max_updates": 100, "log_name": "log", **(runner or {})},
            "seed": seed,
            "env": {"module": "testing", "id": env_id},
            "agent": {"module": algorithm},
            "modules": {"learner": learner},
        }
        (folder / "run_config.yaml").write_text(files.dump(config), encoding="utf-8")
        if header:
            (folder / "log.csv").write_text(
                "".join(f"{line}\n" for line in (header, *rows)), encoding="utf-8"
            )
        if finished is not None:
            counters = {"updates": updates, "env_steps": 10 * updates, "stored_steps": 10 * updates}
            manifest = {"finished": finished, "counters": counters}
            checkpoint.write(folder / checkpoint.CURRENT, manifest, {})
        return folder

    return make


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """``output(arguments, code=0)`` -> what the command tells on standard output; it tells nothing on the other."""
    from omnirl.cli.app import run

    def told(arguments: Sequence[str], code: int = 0) -> str:
        assert run(arguments) == code
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return told


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """``refusal(arguments, code)`` -> the lines that the command tells on standard error, and no traceback."""
    from omnirl.cli.app import run

    def told(arguments: Sequence[str], code: int) -> list[str]:
        assert run(arguments) == code
        out, err = capsys.readouterr()
        assert out == ""
        assert "Traceback" not in err
        return err.splitlines()

    return told


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """``written(text)`` -> the name of a file with that text, in the folder where the test then is."""

    def write(text: str) -> str:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "count.yaml").write_text(text, encoding="utf-8")
        return "count.yaml"

    return write


@pytest.fixture
def run_info() -> Callable[..., Any]:
    """``run_info(folder, **changes)`` -> what observers are told of a run as it starts."""
    from omnirl.api.observer import RunInfo

    def info(folder: Path | str = "runs/cartpole-ppo-seed0", **changes: Any) -> RunInfo:
        told: dict[str, Any] = {
            "run_dir": str(folder),
            "title": "PPO CartPole-v1 seed 0",
            "algorithm": "ppo",
            "env_id": "CartPole-v1",
            "seed": 0,
            "columns": ("updates", "env_steps"),
            "total_updates": 100,
            "total_steps": 0,
            "num_samplers": 1,
            "num_evaluators": 1,
            "transport": "local",
            "resumed_from": None,
        }
        return RunInfo(**(told | changes))

    return info


@pytest.fixture
def stands_for(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``stands_for(module, stub, *names)``: functions of a module give way to the stub's methods, which are called
    only with what the functions themselves take."""

    def checked(function: Callable[..., Any], stub: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        def call(*args: Any, **kwargs: Any) -> Any:
            signature.bind(*args, **kwargs)
            return stub(*args, **kwargs)

        return call

    def replace(module: Any, stub: Any, *names: str) -> None:
        for name in names:
            monkeypatch.setattr(module, name, checked(getattr(module, name), getattr(stub, name)))

    return replace
