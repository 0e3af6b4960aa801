"""``omnirl config``."""

from __future__ import annotations

import typer

NAME, HELP = "config", "Write, show and check configurations."
app = typer.Typer(no_args_is_help=True)
