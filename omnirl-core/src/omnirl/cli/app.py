"""The entry point of ``omnirl``: checks the installation, builds the Typer app, runs a command.

Whatever a command needs is imported inside the command, so that ``omnirl --help`` costs nothing, whatever is
installed. Plugins are asked for commands only where their names matter: for the list of commands and for a
name that is not one of OmniRL's own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer

import omnirl.plugins
from omnirl.api.errors import PluginError
from omnirl.api.plugin import CommandSpec, load_object
from omnirl.cli import (
    algos,
    config,
    doctor,
    envs,
    plugins,
    presets,
    resume,
    runs,
    test,
    train,
    version,
    viewing,
)
from omnirl.cli.installation import check_installation
from omnirl.cli.outcome import exit_code_of, warn
from omnirl.cli.streams import open_streams
from omnirl.plugins.loader import OWN_COMMANDS

PLAIN: dict[str, Any] = {
    "rich_markup_mode": None,  # importing rich would triple the time of --help
    "add_completion": False,
    "pretty_exceptions_enable": False,
}


def main() -> None:
    """Run ``omnirl`` with the arguments of the process and end it."""
    open_streams()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; whatever goes wrong has been told on standard error."""
    return exit_code_of(lambda: _invoke(list(arguments)), arguments)


def _invoke(arguments: list[str]) -> None:
    name = next((argument for argument in arguments if not argument.startswith("-")), None)
    if name != "doctor":  # which says the same among all else that it finds
        check_installation()
    commands = [] if name in OWN_COMMANDS else _plugin_commands()
    build_app(commands)(arguments, prog_name="omnirl")


def build_app(plugin_commands: Sequence[CommandSpec] = ()) -> typer.Typer:
    """The Typer app with OmniRL's own commands and the given ones of plugins."""
    app = typer.Typer(no_args_is_help=True, help="Distributed reinforcement learning.", **PLAIN)
    app.command("train", help=train.HELP)(train.train)
    app.command("test", help=test.HELP)(test.evaluate_agent)
    app.command("eval", help=test.HELP, hidden=True)(test.evaluate_agent)
    app.command("resume", help=resume.HELP)(resume.resume)
    app.command("record", help=viewing.RECORD_HELP)(viewing.record)
    app.command("enjoy", help=viewing.ENJOY_HELP)(viewing.enjoy)
    for group in (runs, algos, envs, presets, plugins, config):
        app.add_typer(group.app, name=group.NAME, help=group.HELP)
    app.command("doctor", help=doctor.HELP)(doctor.doctor)
    app.command("version", help=version.HELP)(version.version)
    for spec in plugin_commands:
        _add_plugin_command(app, spec)
    return app


def _plugin_commands() -> list[CommandSpec]:
    """The commands of plugins; broken plugins never stop ``omnirl --help``."""
    try:
        return [item.spec for item in omnirl.plugins.load().commands()]
    except PluginError as error:  # OMNIRL_STRICT_PLUGINS
        for line in error.lines:
            warn(line)
        return []


def _add_plugin_command(app: typer.Typer, spec: CommandSpec) -> None:
    """Register a command whose code is imported only when it runs, its ``--help`` included."""
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}

    @app.command(spec.name, help=spec.summary, context_settings=settings, add_help_option=False)
    def run_plugin_command(context: typer.Context) -> None:
        try:
            function = load_object(spec.load)
        except Exception as error:
            raise PluginError(
                f"the command {spec.name!r} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        inner = typer.Typer(**PLAIN)
        inner.command(spec.name, help=spec.summary)(function)
        try:
            inner(list(context.args), prog_name=f"omnirl {spec.name}")
        except SystemExit as end:  # how a command of its own ends is the plugin's affair
            sys.exit(end.code)
