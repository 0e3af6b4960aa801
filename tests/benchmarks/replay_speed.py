"""How much faster packed rows make a replay: batches per second against one array per field.

Run ``python tests/benchmarks/replay_speed.py``; it prints the median of alternating runs. All sides gather
the same 256 of 1,000,000 transitions (17 float32 observations, 6 float32 actions) with indices drawn
beforehand; the last line but one is ``ReplayMemory.next_batch`` as it is, drawing the indices included.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from omnirl.api import ArraySpec, Clock, ContinuousAction, Rollout
from omnirl.buffers.replay import ReplayMemory, ReplaySettings, row_dtype

CAPACITY, BATCH, RUNS, REPEATS = 1_000_000, 256, 5, 2000
OBSERVATION, ACTION = ArraySpec((17,)), ContinuousAction((-1.0,) * 6, (1.0,) * 6)


def rate(draw: Callable[[int], Any]) -> float:
    """Calls of ``draw`` per second."""
    began = time.perf_counter()
    for i in range(REPEATS):
        draw(i)
    return REPEATS / (time.perf_counter() - began)


def filled() -> ReplayMemory:
    """A full memory, added in rollouts of 1250 steps of 8 environments."""
    memory = ReplayMemory(OBSERVATION, ACTION, ReplaySettings(CAPACITY, BATCH))
    length, envs = 1250, 8
    rng = np.random.default_rng(0)
    obs = rng.standard_normal((length + 1, envs, 17), np.float32)
    flags = np.zeros((length, envs), np.bool_)
    for number in range(CAPACITY // (length * envs)):
        memory.add(
            Rollout(
                obs=obs,
                first=np.zeros((length + 1, envs), np.bool_),
                action=obs[:-1, :, :6],
                reward=obs[:-1, :, 0],
                terminated=flags,
                truncated=flags,
                final_obs=np.empty((0, 17), np.float32),
                final_at=np.empty((0, 2), np.int64),
                number=number,
            ),
            due=0,
        )
    return memory


def main() -> None:
    """Measure and print."""
    row = row_dtype(OBSERVATION, ACTION)
    packed = np.ones(CAPACITY, row)
    separate = [np.ones((CAPACITY, *row[name].shape), row[name].base) for name in row.names or ()]
    rng = np.random.default_rng(0)
    indices = [rng.integers(0, CAPACITY, BATCH) for _ in range(REPEATS)]
    memory = filled()

    def fields(i: int) -> list[Any]:
        rows = packed.take(indices[i])
        return [rows[name] for name in row.names or ()]

    sides: dict[str, Callable[[int], Any]] = {
        "one packed row, take": fields,
        "separate arrays, take": lambda i: [array.take(indices[i], axis=0) for array in separate],
        "separate arrays, fancy indexing": lambda i: [array[indices[i]] for array in separate],
        "ReplayMemory.next_batch": lambda i: memory.next_batch(Clock(i, 0, 0.0, i)),
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(RUNS):
        for name, draw in sides.items():
            rates[name].append(rate(draw))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, value in medians.items():
        print(f"{name:34s} {value:9,.0f} batches/s")
    ratio = medians["one packed row, take"] / medians["separate arrays, fancy indexing"]
    print(f"packed / separate with fancy indexing: {ratio:.2f}")


if __name__ == "__main__":
    main()
