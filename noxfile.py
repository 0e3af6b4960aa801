"""Builds the three wheels once and tests them as a user would install them: ``python -m nox -s tests``.

=============  ========================================================================================
session        installs, and runs
=============  ========================================================================================
tests          nothing; all sessions below but the benchmark, in this order
core           the core alone: no torch, no gymnasium            (on every Python that the machine has)
algos          core and algorithms: no gymnasium
gymnasium      core and the Gymnasium backend: no torch          (on every Python that the machine has)
integration    all three
packaging      all three, and looks at the built wheels, the import contracts and clean environments
lint           ruff
types          mypy, strict
imports        import-linter: what may import what
lowest         core and Gymnasium backend with the oldest releases that they say they work with
docs           the documentation site, without a warning and without a dead link
faults         all three, and does every fault five times over (a table in the docs; not a test of each change)
learning       all three, and trains the ladder of tests/learning (results in the docs; hours)
environments   all three with the real suites, and short runs on those and on environments of others (a table)
bench          throughput against Stable-Baselines3 and RLlib, in turn (not a test: it takes a quiet machine)
=============  ========================================================================================

Each runs alone too: ``python -m nox -s algos -- -k ppo`` hands ``-k ppo`` to pytest.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nox
import nox.project

ROOT = Path(__file__).parent  # nox runs every command in this folder, so paths are given from here
DISTRIBUTIONS = ("omnirl-core", "omnirl-algos", "omnirl-gymnasium")
PARTS = {  # what each distribution brings, for its coverage
    "core": [
        *("omnirl.api", "omnirl.buffers", "omnirl.cli", "omnirl.config", "omnirl.loops", "omnirl.observers"),
        *("omnirl.doctor", "omnirl.plugins", "omnirl.run", "omnirl.runs", "omnirl.runtime", "omnirl.testing"),
    ],
    "algos": ["omnirl.algorithms", "omnirl.networks"],
    "gymnasium": ["omnirl.envs.gymnasium"],
}
SUITES = "[box2d,mujoco,atari,minatar,image,video]"  # the extras of omnirl-gymnasium
PYTEST = (
    "pytest",
    "pytest-cov",
    "pytest-timeout",
    "pytest-xdist",
    "hypothesis",
    "psutil",
    "imageio-ffmpeg",
    "pygame-ce",
)
ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # two workers on two cores: more threads only fight each other
SUPPORTED = ("3.10", "3.11", "3.12", "3.13")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"

nox.needs_version = ">=2024.4.15"
nox.options.sessions = ["tests"]
nox.options.reuse_venv = "yes"
nox.options.error_on_external_run = True


def pythons() -> list[str]:
    """The supported Pythons that really start here, this one first. pyenv's shims are on the path even for
    versions that are not selected, and then only print an error: select all of them, then try."""
    if shutil.which("pyenv"):
        told = subprocess.run(["pyenv", "version-name"], capture_output=True, text=True, check=False)
        known = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True, check=False)
        plain = [name for name in known.stdout.split() if "/" not in name]  # no environments of pyenv's own
        wanted = [name for name in plain if name.rpartition(".")[0] in SUPPORTED]
        os.environ["PYENV_VERSION"] = ":".join(dict.fromkeys([*told.stdout.strip().split(":"), *wanted]))
    starts = "import sys, venv; print('{}.{}'.format(*sys.version_info))"
    found = [HERE]
    for version in SUPPORTED:
        interpreter = shutil.which(f"python{version}")
        if version == HERE or interpreter is None:
            continue
        answer = subprocess.run([interpreter, "-c", starts], capture_output=True, text=True, check=False)
        if answer.returncode == 0 and answer.stdout.strip() == version:
            found.append(version)
    return found


PYTHONS = pythons()


def wheels(session: nox.Session) -> Path:
    """The folder of the three wheels, named after their content; whoever comes first builds them."""
    content = hashlib.sha256()
    for name in DISTRIBUTIONS:
        for path in sorted((ROOT / name).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
                content.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    folder = Path(".nox", "wheels", content.hexdigest()[:16])
    if not folder.is_dir():
        partial = Path(session.create_tmp()) / "wheels"
        shutil.rmtree(partial, ignore_errors=True)
        sources = [f"./{name}" for name in DISTRIBUTIONS]
        session.run(
            "python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(partial), *sources, silent=True
        )
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(partial, folder)
    return folder


def install(
    session: nox.Session, *parts: str, extras: str = "", suites: str = "", tools: tuple[str, ...] = PYTEST
) -> None:
    """Install the wheels of ``parts`` (core, algos, gymnasium) and ``tools``, at the tested versions; ``extras`` of the
    core, ``suites`` of the Gymnasium backend."""
    folder = wheels(session)
    files = [f"./{next(folder.glob(f'omnirl_{part}-*.whl'))}" for part in parts]
    optional = {"omnirl_core": extras, "omnirl_gymnasium": suites}
    wanted = [file + "".join(some for name, some in optional.items() if name in file) for file in files]
    session.install("-q", "-c", "constraints.txt", *wanted, *tools)
    # a reused environment may hold an older build of the same version
    session.install("-q", "--force-reinstall", "--no-deps", *files)


def absent(session: nox.Session, *modules: str) -> None:
    """Fail unless the environment lacks ``modules``: only then do the tests prove that nothing needs them."""
    look = f"import importlib.util as u; assert not [m for m in {modules} if u.find_spec(m)]"
    session.run("python", "-c", look, silent=True)


def run_tests(session: nox.Session, folder: str, *measured: str) -> None:
    """Run ``tests/<folder>``: side by side where tests share nothing, then one by one those that start Ray or
    measure time. On this Python the coverage of ``measured`` parts of the installed package is shown."""
    show = session.python == HERE and bool(measured) and not session.posargs
    data = Path(".nox", f".coverage-{folder}").absolute()
    env = {"COVERAGE_FILE": str(data), **ONE_THREAD}
    cover: list[str] = []
    if show:
        data.unlink(missing_ok=True)
        cover = [*(f"--cov={part}" for part in measured), "--cov-report=", "--cov-append"]
    pytest = ("python", "-m", "pytest", f"tests/{folder}", "-q", "--durations=5", "--durations-min=2", *cover)
    alone = "ray or serial"
    passes = [("-n", "2", "-m", f"not ({alone})"), ("-m", alone)]
    if session.posargs:
        passes = [tuple(session.posargs)]
    for number, options in enumerate(passes):
        nothing_left = [5] if number else []
        session.run(*pytest, *options, env=env, success_codes=[0, *nothing_left])
    if show:
        session.run("python", "-m", "coverage", "report", "--sort=cover", env=env)


@nox.session(python=False)
def tests(session: nox.Session) -> None:
    """Everything, one session after the other; each failure is named at the end."""
    for name in (
        "core",
        "algos",
        "gymnasium",
        "integration",
        "packaging",
        "lint",
        "types",
        "imports",
        "docs",
    ):
        versions = PYTHONS if name in ("core", "gymnasium") else PYTHONS[:1]
        for version in versions:
            session.notify(f"{name}-{version}")


@nox.session(python=PYTHONS)
def core(session: nox.Session) -> None:
    """The core alone."""
    install(session, "core", extras="[plot]")
    absent(session, "torch", "gymnasium")
    run_tests(session, "core", *PARTS["core"])


@nox.session(python=[HERE])
def algos(session: nox.Session) -> None:
    """The algorithms, without an environment."""
    install(session, "core", "algos")
    absent(session, "gymnasium")
    run_tests(session, "algos", *PARTS["algos"])


@nox.session(python=PYTHONS)
def gymnasium(session: nox.Session) -> None:
    """The Gymnasium backend, without an algorithm."""
    # The suites on one Python only: the other sessions show that the backend does without them.
    install(session, "core", "gymnasium", suites=SUITES if session.python == HERE else "")
    absent(session, "torch")
    run_tests(session, "gymnasium", *PARTS["gymnasium"])


@nox.session(python=[HERE])
def integration(session: nox.Session) -> None:
    """All three together: training, resuming and the command line."""
    install(session, "core", "algos", "gymnasium", extras="[plot]", suites=SUITES)
    run_tests(session, "integration", *PARTS["core"], *PARTS["algos"], *PARTS["gymnasium"])


@nox.session(python=[HERE])
def packaging(session: nox.Session) -> None:
    """What is in the wheels, plugins as distributions on disk, and a newcomer's path in a clean environment."""
    tools = (*PYTEST, "import-linter", "hatchling")
    install(session, "core", "algos", "gymnasium", extras="[plot]", tools=tools)
    session.env["OMNIRL_WHEELS"] = str(wheels(session).absolute())
    run_tests(session, "packaging")


@nox.session(python=[HERE])
def lint(session: nox.Session) -> None:
    """Ruff's rules and its formatting."""
    session.install("-q", "-c", "constraints.txt", "ruff")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session(python=[HERE])
def types(session: nox.Session) -> None:
    """Mypy, strict, over the three source trees and this file."""
    install(session, "core", "algos", "gymnasium", extras="[plot]", tools=("mypy", "types-PyYAML", "nox"))
    session.run("mypy", *(f"{name}/src" for name in DISTRIBUTIONS), "noxfile.py")
    examples = sorted(Path("examples", "plugins").glob("*/src"))
    session.run("mypy", *map(str, examples), env={"MYPYPATH": os.pathsep.join(map(str, examples))})


@nox.session(python=[HERE])
def imports(session: nox.Session) -> None:
    """What may import what."""
    session.install("-q", "-c", "constraints.txt", "import-linter")
    folder = wheels(session)
    session.install(
        "-q", "--force-reinstall", "--no-deps", *(f"./{file}" for file in sorted(folder.glob("*.whl")))
    )
    session.run("lint-imports", "--no-cache", "--no-logo")


def lower_bounds() -> list[str]:
    """``name==X`` for each ``name>=X`` among what the distributions depend on, torch and our own left out."""
    bounds = set()
    for name in DISTRIBUTIONS:
        project = nox.project.load_toml(ROOT / name / "pyproject.toml")["project"]
        for requirement in [
            *project["dependencies"],
            *project.get("optional-dependencies", {}).get("plot", []),
        ]:
            dependency, _, limits = requirement.partition(">=")
            if limits and not dependency.startswith("omnirl-") and dependency != "torch":
                bounds.add(f"{dependency}=={limits.partition(',')[0]}")
    return sorted(bounds)


@nox.session(python=[min(PYTHONS, key=SUPPORTED.index)])
def lowest(session: nox.Session) -> None:
    """The lower bounds of the pyproject.toml files hold. Not part of ``tests``: a release is when it matters."""
    if session.python == SUPPORTED[-1]:
        session.skip(f"the oldest numpy and matplotlib have no wheels for Python {session.python}")
    bounds = lower_bounds()
    # pytest too: its tested version asks for a newer pluggy than we do
    replaced = {bound.partition("==")[0] for bound in bounds} | {"pydantic-core", "pytest"}
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    limits = Path(session.create_tmp()) / "constraints.txt"
    limits.write_text(
        "\n".join([pin for pin in pins if pin.partition("==")[0] not in replaced] + bounds), "utf-8"
    )
    folder = wheels(session)
    files = [f"./{next(folder.glob(f'omnirl_{part}-*.whl'))}" for part in ("core", "gymnasium")]
    session.install("-q", "-c", str(limits), f"{files[0]}[plot]", files[1], *PYTEST)
    session.install("-q", "--force-reinstall", "--no-deps", *files)
    absent(session, "torch")
    run_tests(session, "core")
    run_tests(session, "gymnasium")


@nox.session(python=[HERE])
def docs(session: nox.Session) -> None:
    """The documentation: the reference pages from the models and the commands, then the site, then its links."""
    session.install("-q", "-c", "constraints.txt", "zensical", "mkdocstrings-python")
    folder = wheels(session)
    session.install("-q", "-c", "constraints.txt", f"./{next(folder.glob('omnirl_core-*.whl'))}")
    # the configuration models need neither torch nor gymnasium
    session.install(
        "-q", "--force-reinstall", "--no-deps", *(f"./{file}" for file in sorted(folder.glob("*.whl")))
    )
    session.run("python", "docs/generate.py")
    session.run("zensical", "build", "--clean", "--strict")
    session.run("python", "docs/check_site.py", "site")


@nox.session(python=[HERE])
def faults(session: nox.Session) -> None:
    """Every fault of the reliability table, five times over; writes what was measured into the docs."""
    install(session, "core", "algos", "gymnasium", extras="[plot]")
    options = session.posargs or ["--repetitions", "5", "--table", "docs/faults-results.md"]
    session.run("python", "-m", "pytest", "tests/integration/faults", "-q", *options)


@nox.session(python=[HERE])
def learning(session: nox.Session) -> None:
    """The ladder: what is missing of it, or a part, such as ``-- ppo`` or ``-- --tier 2 sac --seeds 3``."""
    install(session, "core", "algos", "gymnasium", extras="[plot]", suites=SUITES)
    session.run("python", "tests/learning/train_ladder.py", *session.posargs)


@nox.session(python=[HERE])
def environments(session: nox.Session) -> None:
    """Short runs on the real suites and on environments of others; options: ``-- --only Pong``."""
    tools = ("psutil", "-r", "tests/environments/requirements.txt")
    install(session, "core", "algos", "gymnasium", extras="[plot]", suites=SUITES, tools=tools)
    session.run("python", "tests/environments/measure.py", *session.posargs)


@nox.session(python=[HERE])
def bench(session: nox.Session) -> None:
    """Every work beside Stable-Baselines3 or RLlib, and the start, written into the docs; a part:
    ``-- --works sac td3``, fewer rounds: ``-- --pairs 3``."""
    tools = ("-r", "tests/benchmarks/requirements.txt", "psutil")
    install(session, "core", "algos", "gymnasium", extras="[plot]", tools=tools)
    options = list(session.posargs)
    if "--works" not in options or any("impala" in option for option in options):
        options += ["--rllib-python", rllib_python(session)]
    results = "tests/benchmarks/results.json"
    try:
        session.run("python", "tests/benchmarks/throughput.py", "--results", results, *options)
    finally:  # what was measured before a failure is kept
        session.run("python", "tests/benchmarks/report.py", results, "docs")


def rllib_python(session: nox.Session) -> str:
    """The Python of an environment with RLlib: one of its own, since RLlib asks for another gymnasium."""
    folder = Path(session.create_tmp()).absolute()
    python = folder / "rllib" / "bin" / "python"
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    limits = folder / "rllib-constraints.txt"
    limits.write_text("\n".join(pin for pin in pins if not pin.startswith("gymnasium==")), "utf-8")
    if not python.exists():
        session.run("python", "-m", "venv", str(folder / "rllib"), silent=True)
    wanted = ("-c", str(limits), "-r", "tests/benchmarks/requirements-rllib.txt")
    session.run(str(python), "-m", "pip", "install", "-q", *wanted, external=True)
    return str(python)
