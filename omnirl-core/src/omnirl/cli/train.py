"""``omnirl train``: train an agent from a preset, from files, or from options alone."""

from __future__ import annotations

import sys
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from omnirl.cli import sources
from omnirl.cli.options import AgentConfig, Json, Local, NoProgress, Quiet, RunnerConfig, Sources
from omnirl.cli.outcome import BUG, INTERRUPTED, TERMINATED
from omnirl.cli.streams import for_json

if TYPE_CHECKING:
    from omnirl.api.observer import RunSummary
    from omnirl.observers.console import ConsoleObserver, Mode

HELP = """Train an agent from a preset, from YAML files, or from options alone.

SOURCE is a preset's name or a file; what comes later wins. KEY=VALUE sets one key by its dotted path, such as
modules.learner.lr=3e-4. An unfinished run of the same configuration goes on where it stopped."""


USUAL_BACKEND = "gymnasium"


class Device(str, Enum):
    """Where the learner computes."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Resume(str, Enum):
    """What happens to an unfinished run of the same configuration."""

    auto = "auto"
    never = "never"
    must = "must"


def train(
    arguments: Sources = None,
    *,
    runner_config: RunnerConfig = None,
    agent_config: AgentConfig = None,
    algo: Annotated[str | None, typer.Option("--algo", metavar="NAME", help="the algorithm")] = None,
    env: Annotated[str | None, typer.Option("--env", metavar="ID", help="the environment's id")] = None,
    run_dir: Annotated[
        str | None, typer.Option("--run-dir", metavar="DIR", help="the run's folder (default: below runs/)")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, metavar="N", help="seed of all random streams")
    ] = None,
    updates: Annotated[
        int | None, typer.Option("--updates", min=1, metavar="N", help="stop after N updates")
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, metavar="N", help="stop after N environment steps")
    ] = None,
    samplers: Annotated[
        str | None, typer.Option("--samplers", metavar="N|auto", help="processes that collect")
    ] = None,
    device: Annotated[Device | None, typer.Option("--device", help="where the learner computes")] = None,
    address: Annotated[
        str | None,
        typer.Option(
            "--address", metavar="ADDRESS", help="a Ray cluster: local (a new one), auto or HOST:PORT"
        ),
    ] = None,
    local: Local = False,
    resume: Annotated[
        Resume | None,
        typer.Option(
            "--resume", help="an unfinished run of this configuration: go on, leave it, or insist on it"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="check and show the configuration, start nothing")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> None:
    """Translate the options into overrides and hand over to :func:`omnirl.run.train`."""
    if local and address is not None:
        raise typer.BadParameter("--local runs without Ray, so it excludes --address")
    named, overrides = sources.split(arguments)
    if not (named or overrides or runner_config or agent_config or algo or env):
        raise typer.BadParameter(
            "name a preset (omnirl presets list) or a file, or give --algo, --env and --steps"
        )
    console = build_console(as_json=as_json, quiet=quiet, no_progress=no_progress)
    # --algo and --env need no file; one that names another backend comes later and wins.
    usual = sources.option_tree([("--env", "env.module", None if env is None else USUAL_BACKEND)])
    options = sources.option_tree(
        [
            ("--algo", "agent.module", algo),
            ("--env", "env.id", env),
            ("--run-dir", "runner.ckpt_dir", run_dir),
            ("--seed", "seed", seed),
            ("--updates", "runner.max_updates", updates),
            ("--steps", "runner.max_steps", steps),
            ("--samplers", "runner.num_samplers", _samplers(samplers)),
            ("--device", "device.learner", device and device.value),
            ("--address", "ray.address", address),
            ("--resume", "runner.load_checkpoint", True if resume is Resume.auto else None),
        ]
    )

    import omnirl.run

    files = sources.config_files(runner_config, agent_config)
    with for_json(as_json):
        config = omnirl.run.configure(usual, *named, *files, options, overrides=overrides)
    if dry_run:
        import json

        from omnirl.cli.deep import check_deep
        from omnirl.config import check
        from omnirl.config.files import dump

        if local:
            check.check_one_process(config)
        with for_json(as_json):
            checked = check_deep(config).plain()
        print(json.dumps(checked, indent=2) if as_json else dump(checked).rstrip())
        return
    try:
        with for_json(as_json):
            summary = omnirl.run.train(
                config, local=local, resume=(resume or Resume.auto).value, observer_objects=[console]
            )
    finally:
        console.close()
    end_with(summary)


def build_console(*, as_json: bool, quiet: bool, no_progress: bool) -> ConsoleObserver:
    """The observer that the options ask for."""
    from omnirl.observers.console import ConsoleObserver

    if as_json and quiet:
        raise typer.BadParameter("--json and --quiet exclude each other")
    mode: Mode | None = "json" if as_json else "quiet" if quiet else None
    return ConsoleObserver(mode, sys.stdout, show_progress=not no_progress)


def end_with(summary: RunSummary) -> None:
    """Turn how a run ended into the exit code; a failure has been told by the run itself."""
    if summary.status == "interrupted":
        raise typer.Exit(TERMINATED if "SIGTERM" in summary.message else INTERRUPTED)
    if summary.status == "failed":
        raise typer.Exit(BUG)


def _samplers(text: str | None) -> int | str | None:
    if text is None or text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"--samplers takes a number from 1 or auto, not {text!r}")
    return int(text)
