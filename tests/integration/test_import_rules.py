"""The import rules that import-linter cannot hold: what a file may call, and what a process really loads.

The rules about modules are the contracts in the root pyproject.toml (``nox -s imports``). Here the source is
read as a syntax tree, and fresh processes are asked what they have imported.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnirl import plugins

ROOT = Path(__file__).parents[2]
SOURCES = {name: ROOT / name / "src" for name in ("omnirl-core", "omnirl-algos", "omnirl-gymnasium")}
FILES = {
    path.relative_to(source).as_posix(): path for source in SOURCES.values() for path in source.rglob("*.py")
}
MAY_IMPORT_RAY = {"omnirl/runtime/ray_transport.py", "omnirl/runtime/cluster.py"}
# over a private pipe, to the processes that the same module starts; never what comes from a file or a network
MAY_PICKLE = {"omnirl/envs/gymnasium/processes.py", "omnirl/envs/gymnasium/stepping_process.py"}
MAY_TOUCH_FILES = {"omnirl/algorithms/shared/training/torch_state.py"}
DECLARED = {  # import names of the dependencies in each pyproject.toml
    "omnirl-core": {"numpy", "pluggy", "pydantic", "yaml", "typer", "rich", "ray", "matplotlib"},
    "omnirl-algos": {"numpy", "pydantic", "pluggy", "torch"},
    "omnirl-gymnasium": {"numpy", "pydantic", "pluggy", "gymnasium"},
}
HEAVY = ("torch", "ray", "gymnasium")


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module named by an import, inside functions too; relative ones start with a dot."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Every call as (dotted text of what is called, node)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def offenders(pattern: str, allowed: set[str] = frozenset(), within: str = "omnirl/") -> list[str]:  # type: ignore[assignment]
    """``file: module`` for each import that matches ``pattern``, outside ``allowed``."""
    return [
        f"{name}: {module}"
        for name, path in sorted(FILES.items())
        if name.startswith(within) and name not in allowed
        for module in imported(parse(path))
        if re.match(pattern, module)
    ]


def loaded_after(code: str, *suspects: str) -> list[str]:
    """Which of ``suspects`` a fresh process has imported after running ``code``."""
    report = f"import json, sys; print(json.dumps([m for m in {suspects!r} if m in sys.modules]))"
    script = (
        f"import sys\ntry:\n{_indented(code)}\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", f"{script}print()\n{report}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    return list(json.loads(run.stdout.splitlines()[-1]))


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.splitlines())


def test_the_rules_see_the_whole_source() -> None:
    assert set(FILES) >= {
        "omnirl/api/__init__.py",
        "omnirl/algorithms/plugin.py",
        "omnirl/envs/gymnasium/plugin.py",
    }


def test_ray_belongs_to_two_files() -> None:
    assert offenders(r"ray(\.|$)", MAY_IMPORT_RAY) == []
    assert all(
        any(re.match(r"ray(\.|$)", module) for module in imported(parse(FILES[name])))
        for name in MAY_IMPORT_RAY
    )


@pytest.mark.parametrize("name", SOURCES)
def test_a_distribution_imports_only_what_it_declares(name: str) -> None:
    allowed = DECLARED[name] | set(sys.stdlib_module_names) | {"omnirl"}
    strangers = {
        f"{path.name}: {module}"
        for path in SOURCES[name].rglob("*.py")
        for module in imported(parse(path))
        if not module.startswith(".") and module.partition(".")[0] not in allowed
    }
    assert strangers == set()


def test_no_import_is_relative() -> None:
    """Inside omnirl/envs/gymnasium a relative import is one slip away from the wrong gymnasium."""
    assert offenders(r"\.") == []


def test_nothing_can_unpickle_a_file() -> None:
    allowed = MAY_IMPORT_RAY | MAY_PICKLE
    assert offenders(r"(pickle|cloudpickle|dill|marshal|shelve|joblib)(\.|$)", allowed) == []
    for name, path in FILES.items():
        for called, node in calls(parse(path)):
            options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if called == "torch.load":
                assert options.get("weights_only") == "True", f"{name}:{node.lineno}"
            if called in {"np.load", "numpy.load", "np.lib.format.read_array", "np.save"}:
                assert options.get("allow_pickle") == "False", f"{name}:{node.lineno}"
            assert not re.fullmatch(r"yaml\.(unsafe_|full_)?load(_all)?", called) or "Loader" in options, (
                f"{name}:{node.lineno}"
            )
            assert options.get("Loader") not in {"yaml.Loader", "yaml.UnsafeLoader", "yaml.FullLoader"}, name


def test_algorithms_touch_no_files() -> None:
    touching = re.compile(r"(open|np\.(load|save\w*)|torch\.(load|save)|Path)$")
    found = [
        f"{name}:{node.lineno} {called}"
        for name, path in FILES.items()
        if name.startswith(("omnirl/algorithms/", "omnirl/networks/")) and name not in MAY_TOUCH_FILES
        for called, node in calls(parse(path))
        if touching.match(called)
    ]
    assert found == []


@pytest.mark.parametrize("package", ["algorithms", "algorithms/shared", "networks"])
def test_the_init_of_a_torch_package_imports_nothing(package: str) -> None:
    assert set(imported(parse(FILES[f"omnirl/{package}/__init__.py"]))) <= {"__future__"}


def test_the_contract_on_algorithms_names_every_algorithm() -> None:
    folder = SOURCES["omnirl-algos"] / "omnirl" / "algorithms"
    packages = {path.parent.name for path in folder.glob("*/learner.py")}
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    independent = re.search(r'type = "independence"\nmodules = \[([^\]]*)\]', text)
    assert independent is not None
    assert {name.rpartition(".")[2] for name in re.findall(r'"([^"]+)"', independent[1])} == packages


def test_the_api_costs_nothing_to_import() -> None:
    suspects = ("numpy", "pydantic", "yaml", "typer", "rich", *HEAVY)
    assert loaded_after("import omnirl.api\nfrom omnirl.api import AlgorithmSpec, hookimpl", *suspects) == []
    assert loaded_after("from omnirl.api import Rollout", "numpy", "torch") == ["numpy"]  # the check can fail


def test_discovering_all_plugins_loads_nothing_heavy() -> None:
    code = "from omnirl import plugins\nr = plugins.load()\nassert r.algorithms() and r.env_backends()"
    assert loaded_after(code, "numpy", "pydantic", *HEAVY) == []


def _algorithms() -> list[str]:
    return [provided.spec.name for provided in plugins.load().algorithms()]


@pytest.mark.parametrize("algorithm", _algorithms())
@pytest.mark.parametrize("part", ["config", "data_flow", "memory", "policy"])
def test_all_parts_but_the_learner_start_without_torch(algorithm: str, part: str) -> None:
    code = (
        "from omnirl import plugins\nfrom omnirl.api import load_object\n"
        f"load_object(plugins.load().algorithm({algorithm!r}).{part})"
    )
    assert loaded_after(code, *HEAVY) == []


def test_a_backends_config_starts_without_the_simulator() -> None:
    code = (
        "from omnirl import plugins\nfrom omnirl.api import load_object\n"
        "load_object(plugins.load().env_backend('gymnasium').config)"
    )
    assert loaded_after(code, *HEAVY) == []
    assert loaded_after(code.replace(").config", ").backend"), *HEAVY) == ["gymnasium"]  # the check can fail


def command_line(*arguments: str) -> str:
    return f"sys.argv = ['omnirl', *{arguments!r}]\nfrom omnirl.cli.app import main\nmain()"


def test_help_loads_neither_numpy_nor_pydantic() -> None:
    assert loaded_after(command_line("--help"), "numpy", "pydantic", "matplotlib", *HEAVY) == []


@pytest.mark.parametrize(
    "arguments", [("algos", "list"), ("presets", "list"), ("config", "validate", "cartpole-ppo")]
)
def test_looking_around_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert loaded_after(command_line(*arguments), *HEAVY) == []
