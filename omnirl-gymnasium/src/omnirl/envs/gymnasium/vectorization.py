"""What ``env.vectorization: auto`` becomes: decided once, before a run starts, by a measurement of milliseconds."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from statistics import median

from omnirl.api.environment import Decision, DecisionContext
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.making import make
from omnirl.envs.gymnasium.messages import one_line

_SECONDS = 0.03
_LEAST_STEPS, _MOST_STEPS = 3, 200
_ROUND_TRIP = 200e-6
"""Seconds that talking to the processes adds to each step, measured on two cores."""
_WORTH_IT = 1.25
"""How many times as fast the processes must be: each also takes its memory and 0.3 s to start."""


def cores() -> int:
    """The CPU cores that this process may use, at most one for each process that steps environments."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def decide(config: GymnasiumConfig, context: DecisionContext) -> Sequence[Decision]:
    """Replace ``auto``: processes where stepping in them saves much more than talking to them costs.

    The environment is built, reset and stepped with random actions. Raises ConfigError where it cannot be built.
    """
    if config.vectorization != "auto":
        return ()
    processes = min(context.num_envs, cores() // context.num_samplers)
    if processes < 2:
        return (Decision("vectorization", "inline"),)
    try:
        seconds = _step_time(config)
    except (Exception, SystemExit) as error:  # it will do it again where that is told properly
        return (Decision("vectorization", "inline", f"a step could not be measured: {one_line(error)}"),)
    inline = seconds * context.num_envs
    faster = inline / (inline / processes + _ROUND_TRIP)
    choice = "process" if faster >= _WORTH_IT else "inline"
    reason = (
        f"a step takes {_duration(seconds)}, so that {context.num_envs} environments in {processes} processes are "
        f"{faster:.1f} times as fast"
    )
    return (Decision("vectorization", choice, reason),)


def _step_time(config: GymnasiumConfig) -> float:
    """Seconds of a step of one environment: the median, which a busy machine changes least."""
    env = make(config, training=True)
    try:
        env.reset(seed=0)
        env.action_space.seed(0)
        env.step(env.action_space.sample())  # the first one may load something
        taken: list[float] = []
        while len(taken) < _LEAST_STEPS or (len(taken) < _MOST_STEPS and sum(taken) < _SECONDS):
            action = env.action_space.sample()
            began = time.perf_counter()
            _, _, terminated, truncated, _ = env.step(action)
            taken.append(time.perf_counter() - began)
            if terminated or truncated:
                env.reset(seed=len(taken))
        return median(taken)
    finally:
        env.close()


def _duration(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} us" if seconds < 1e-3 else f"{1e3 * seconds:.1f} ms"
