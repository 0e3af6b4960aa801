"""How commands fail: exit codes, lines instead of tracebacks, and what is imported on the way."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import omnirl
from omnirl.api import errors
from omnirl.cli import installation, outcome
from omnirl.cli.app import OWN_COMMANDS, build_app, run

HEAVY = ("torch", "ray", "gymnasium")


def imported_by(*arguments: str) -> tuple[set[str], subprocess.CompletedProcess[str]]:
    """The top-level modules that ``omnirl`` with these arguments has imported when it ends."""
    code = (
        "import sys\n"
        "from omnirl.cli.app import run\n"
        f"code = run({list(arguments)!r})\n"
        "print('\\nMODULES', *sorted({name.partition('.')[0] for name in sys.modules}))\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return set(done.stdout.splitlines()[-1].split()[1:]), done


def test_help_imports_next_to_nothing():
    modules, done = imported_by("--help")
    assert done.returncode == 0, done.stderr
    assert not modules & {*HEAVY, "numpy", "pydantic", "rich", "matplotlib", "yaml"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["version"],
        ["algos", "list"],
        ["envs", "list"],
        ["presets", "list"],
        ["plugins", "list"],
    ],
)
def test_lists_import_nothing_heavy(arguments):
    modules, done = imported_by(*arguments)
    assert done.returncode == 0, done.stderr
    assert not modules & {*HEAVY, "numpy", "rich", "matplotlib"}


def test_help_shows_the_commands_and_nothing_that_is_not_built(capsys):
    assert run(["--help"]) == 0
    shown = re.findall(r"^  ([a-z]+)  ", capsys.readouterr().out, re.MULTILINE)
    assert shown == [
        "train",
        "test",
        "resume",
        "record",
        "enjoy",
        "doctor",
        "version",
        "runs",
        "algos",
        "envs",
        "presets",
        "plugins",
        "config",
    ]


def test_the_names_that_plugins_may_not_use_are_ours():
    app = build_app()
    commands = {command.name for command in app.registered_commands}
    groups = {group.name for group in app.registered_groups}
    assert commands | groups == set(OWN_COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["trian"], "No such command 'trian'"),
        (["train", "--sed", "3"], "No such option"),
        (["algos", "show"], "NAME"),
        (["train"], "name a preset (omnirl presets list) or a file"),
        (["train", "--seed", "3"], "name a preset (omnirl presets list) or a file"),
        (["test"], "name a run (omnirl runs list), a preset or a file"),
        (["version", "extra"], "extra"),
        (["plugins", "new"], "new"),
        (["export", "x"], "export"),
        (["--install-completion"], "No such option"),
    ],
)
def test_wrong_use_ends_with_2(arguments, text, capsys):
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert text in err
    assert out == ""


def raising(error: BaseException):
    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.ConfigError, 2),
        (errors.NotFoundError, 3),
        (errors.PluginError, 4),
        (errors.CheckpointError, 5),
        (errors.ClusterError, 6),
        (errors.WorkersFailedError, 20),
        (errors.ClusterLostError, 21),
        (errors.NumericsError, 22),
        (errors.DiskError, 23),
        (errors.EvaluationBelowThreshold, 30),
    ],
)
def test_an_expected_failure_shows_its_lines_and_its_code(kind, code, capsys):
    assert outcome.exit_code_of(raising(kind(["first", "second"])), []) == code
    assert capsys.readouterr().err == "first\nsecond\n"


def test_a_line_is_one_line_and_steers_no_terminal(capsys):
    error = errors.ConfigError(["a.yaml:1:1 \x1b[31mred\nrunner: unknown section", "größe\t日本"])
    assert outcome.exit_code_of(raising(error), []) == 2
    assert capsys.readouterr().err == "a.yaml:1:1 \\x1b[31mred runner: unknown section\ngröße\t日本\n"


def test_an_interrupt_ends_with_130(capsys):
    assert outcome.exit_code_of(raising(KeyboardInterrupt()), []) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_an_interrupt_within_a_command_ends_with_130(monkeypatch):
    import omnirl.plugins

    monkeypatch.setattr(omnirl.plugins, "load", raising(KeyboardInterrupt()))
    assert run(["algos", "list"]) == 130


def test_a_bug_saves_its_traceback_and_shows_one_line(monkeypatch, tmp_path, capsys):
    import omnirl.plugins

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(omnirl.plugins, "load", raising(KeyError("gamma\nlost")))
    assert run(["algos", "list"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    (saved,) = tmp_path.glob("omnirl-bug-*.txt")
    assert str(saved) in err
    assert "KeyError" in err
    text = saved.read_text()
    assert text.startswith("omnirl algos list\n")
    assert f"omnirl-core {metadata.version('omnirl-core')}" in text
    assert "Traceback (most recent call last)" in text


def test_a_reader_that_stops_reading_is_no_bug():
    code = "import sys; from omnirl.cli.app import run; sys.exit(run(['plugins', 'list', '--json']))"
    command = f'{sys.executable} -c "{code}" | true'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize("value", ["sys.exit(0)", "raise SystemExit('bye')"])
def test_code_that_ends_the_process_is_no_success(value, tmp_path, monkeypatch, capsys):
    (tmp_path / "quitter.py").write_text(f"import sys\n{value}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run(["config", "validate", "agent.module=quitter.algorithm", "env.module=quitter.envs"]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(
        rf"{re.escape(str(tmp_path))}/quitter.py:2 ended the process \(SystemExit: \w+\)\n", err
    )


def test_a_plugins_command_ends_as_it_likes(installation):
    source = (
        "import sys\nfrom omnirl.api import CommandSpec, hookimpl\nOMNIRL_API = 1\n"
        "@hookimpl\ndef omnirl_commands():\n    return [CommandSpec('leave', 'it ends', 'acme_leave:leave')]\n"
        "def leave():\n    sys.exit(7)\n"
    )
    installation.add("acme-leave", "1.0", {"leave": "acme_leave"}, {"acme_leave": source})
    done = installation.run("import sys\nfrom omnirl.cli.app import run\nsys.exit(run(['leave']))")
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


# ------------------------------------------------------------------ the first version's distribution


def test_this_installation_is_sound():
    installation.check_installation()


def test_a_package_that_takes_our_name_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(omnirl, "__file__", "/somewhere/omnirl/__init__.py", raising=False)
    assert run(["--help"]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert "/somewhere/omnirl/__init__.py" in err
    assert "pip install --force-reinstall --no-deps omnirl-core" in err


def test_the_first_version_beside_ours_is_refused(tmp_path, monkeypatch, capsys):
    info = tmp_path / "omnirl_framework-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: omnirl-framework\nVersion: 0.1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run(["version"]) == 4
    err = capsys.readouterr().err
    assert "pip uninstall --yes omnirl-framework && " in err
    assert "pip install --force-reinstall --no-deps omnirl-core" in err


def test_a_first_version_that_shares_our_folder_is_refused(tmp_path):
    """Both in one folder, as pip installs them: the package is no namespace any more."""
    import omnirl.cli

    package = tmp_path / "omnirl"
    package.mkdir()
    (package / "__init__.py").write_text("")
    source = Path(omnirl.cli.__file__).parents[1]
    for part in ("api", "cli", "plugins"):
        (package / part).symlink_to(source / part)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from omnirl.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert str(package / "__init__.py") in done.stderr
    assert "Traceback" not in done.stderr
