"""``omnirl test`` (also ``eval``): let a saved agent act and report what it reaches."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnirl.cli import sources
from omnirl.cli.options import AgentConfig, Json, Local, Model, RunnerConfig, Sources
from omnirl.cli.streams import for_json

if TYPE_CHECKING:
    from omnirl.runtime.evaluate import Evaluation

HELP = """Evaluate a saved agent with its deterministic policy.

SOURCE is a run (its folder, or its name in runs/), a preset's name or a file. Without --model it is the agent
that runner.eval_model names, or the newest."""


def evaluate_agent(
    arguments: Sources = None,
    *,
    runner_config: RunnerConfig = None,
    agent_config: AgentConfig = None,
    model: Model = None,
    episodes: Annotated[
        int | None, typer.Option("--episodes", min=1, metavar="N", help="episodes in all")
    ] = None,
    min_return: Annotated[
        float | None, typer.Option("--min-return", metavar="X", help="exit 30 where the mean is below X")
    ] = None,
    as_json: Json = False,
    local: Local = False,
) -> None:
    """Hand over to :func:`omnirl.run.evaluate` and print what it reports."""
    if min_return is not None and math.isnan(min_return):
        raise typer.BadParameter("--min-return takes a number, not nan")
    named, overrides = sources.split(arguments)
    if not (named or overrides or runner_config or agent_config):
        raise typer.BadParameter("name a run (omnirl runs list), a preset or a file")
    files = sources.config_files(runner_config, agent_config)
    folder = _run(named[0]) if len(named) == 1 and not files else None

    import omnirl.run

    with for_json(as_json):
        target = folder if folder is not None else omnirl.run.configure(*named, *files, overrides=overrides)
        evaluation = omnirl.run.evaluate(
            target,
            overrides=overrides if folder is not None else (),
            model=model,
            episodes=episodes,
            local=local,
        )
    print(json.dumps(as_data(evaluation)) if as_json else as_line(evaluation))
    if min_return is not None:
        check_return(evaluation.metrics, min_return)


def _run(source: str) -> Path | None:
    """The run's folder that ``source`` names; None where it is a preset or a file."""
    return sources.existing_run(source) if Path(source).is_dir() else sources.run_folder(source)


def check_return(metrics: Mapping[str, float], least: float) -> None:
    """Raise EvaluationBelowThreshold (exit 30) unless the mean return is at least ``least``."""
    from omnirl.api.errors import ConfigError, EvaluationBelowThreshold

    if "return_mean" not in metrics:
        raise ConfigError("--min-return: this environment backend reports no return_mean")
    if not metrics["return_mean"] >= least:
        raise EvaluationBelowThreshold(
            f"the mean return {metrics['return_mean']:.6g} is below --min-return {least:.6g}"
        )


def as_line(evaluation: Evaluation) -> str:
    """``agent_100 of runs/cartpole: return 498.2 ± 3.1 over 50 episodes (min 489, max 500), length 498``."""
    from omnirl.observers.summary import evaluation_text

    return f"{evaluation.model} of {evaluation.run_dir}: {evaluation_text(evaluation.metrics)}"


def as_data(evaluation: Evaluation) -> dict[str, Any]:
    """The same for a program; a figure that is not finite becomes null, which JSON has."""
    return {
        "model": evaluation.model,
        "run_dir": str(evaluation.run_dir),
        "episodes": evaluation.episodes,
        "metrics": {
            name: value if math.isfinite(value) else None for name, value in evaluation.metrics.items()
        },
    }
