"""Whether the memory that a replay reserves is there: asked before anything starts, not found out after hours.

Pages of a large array are taken when they are first written, so a replay that is too large does not fail when it is
made but is killed when it has filled, with all that was learnt.
"""

from __future__ import annotations

from typing import Any

from omnirl.api.errors import ClusterError
from omnirl.api.plugin import AlgorithmSpec, load_object
from omnirl.api.specs import EnvSpec
from omnirl.config import hardware
from omnirl.config.resolve import ResolvedConfig

KEY = "modules.memory.capacity"
_COPY = ", half of them for the copy that a checkpoint is written from"


def memory_problem(
    algorithm: AlgorithmSpec,
    agent_config: Any,
    env_spec: EnvSpec,
    *,
    saved: bool,
    available: int | None,
    learners: int = 1,
) -> str:
    """What is wrong with the size of the algorithm's memory, in one line; empty where it fits or does not say what it
    reserves. saved: whether checkpoints hold it. available: bytes; None where nobody knows. learners: that share the
    memory out and have machines of their own."""
    reserved = getattr(load_object(algorithm.memory), "reserved", None)
    if reserved is None or available is None:
        return ""
    needed = int(reserved(agent_config, env_spec)) * (2 if saved else 1) // learners
    if needed <= available:
        return ""
    capacity = getattr(getattr(agent_config, "memory", None), "capacity", None)
    text = f"the replay needs {_gigabytes(needed)} of memory{_COPY if saved else ''}; {_gigabytes(available)} are there"
    if capacity is None:
        return text
    return f"{text}: lower it from {capacity} to at most {int(capacity * (available / needed) * 0.95)}"


def check_memory(config: ResolvedConfig, env_spec: EnvSpec, *, saved: bool) -> None:
    """Raise ClusterError (too few resources) where this machine has not the memory that the replay needs.

    A cluster that is joined may put the learner elsewhere, where it asks for itself.
    """
    if config.ray.address != "local":
        return
    available = hardware.available_memory()
    problem = memory_problem(config.algorithm, config.agent, env_spec, saved=saved, available=available)
    if problem:
        raise ClusterError(config.line(KEY, problem))


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
