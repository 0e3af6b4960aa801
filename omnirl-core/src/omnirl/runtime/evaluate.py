"""Evaluation of a saved agent: several evaluators, each with its own quota of episodes, on either transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnirl.api.data import Array, Episode
from omnirl.loops.aggregate import aggregate
from omnirl.runtime.failures import start_error
from omnirl.runtime.plan import WorkerPlan
from omnirl.runtime.transport import Transport, WorkerDiedError, WorkerRaisedError
from omnirl.runtime.weights import Weights, pack


@dataclass(frozen=True)
class Evaluation:
    """The result: ``metrics`` over all ``episodes`` of all evaluators. model: the agent file."""

    model: str
    run_dir: str
    episodes: int
    metrics: Mapping[str, float]
    per_evaluator: tuple[Mapping[str, float], ...]


def play(
    plan: WorkerPlan, weights: Mapping[str, Array], version: int, transport: Transport
) -> list[list[Episode]]:
    """The episodes of each evaluator."""
    frozen = Weights(version, pack(weights))
    workers = [
        transport.spawn(f"evaluator {index}", "omnirl.runtime.evaluator:Evaluator", plan, index)
        for index in range(plan.num_evaluators)
    ]
    refs = [transport.call(worker, "evaluate", frozen)[0] for worker in workers]
    transport.ready(workers)
    played = []
    for worker, ref in zip(workers, refs, strict=True):
        try:
            played.append(list(transport.get(ref)))
        except (WorkerDiedError, WorkerRaisedError) as failure:
            raise start_error(worker.name, failure) from failure
    return played


def summarise(plan: WorkerPlan, played: list[list[Episode]]) -> tuple[dict[str, float], tuple[Any, ...]]:
    """The figures over all episodes, and over each evaluator's."""
    figures = plan.env_backend.aggregate_evaluations or aggregate
    everything = [episode for episodes in played for episode in episodes]
    return dict(figures(everything)), tuple(dict(figures(episodes)) for episodes in played)
