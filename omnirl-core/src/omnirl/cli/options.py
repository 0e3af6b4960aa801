"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Sources = Annotated[
    list[str] | None, typer.Argument(metavar="SOURCE|KEY=VALUE", help="presets, files and settings")
]
RunnerConfig = Annotated[
    Path | None, typer.Option("--runner-config", metavar="FILE", help="a file with runner, device, seed, env")
]
AgentConfig = Annotated[
    Path | None, typer.Option("--agent-config", metavar="FILE", help="a file with agent and modules")
]


def _model(name: str | None) -> str | None:
    """An empty one, as of a shell's variable that is not set, must not become the newest agent."""
    if name == "":
        raise typer.BadParameter("names no agent")
    return name


Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="such as agent_100, or best", callback=_model)
]
Local = Annotated[bool, typer.Option("--local", help="everything in this process, without Ray")]
Json = Annotated[bool, typer.Option("--json", help="JSON on standard output")]
Quiet = Annotated[bool, typer.Option("--quiet", help="say nothing but errors")]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="no progress between start and result")]
