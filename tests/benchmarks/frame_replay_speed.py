"""What replay of stacked images costs: batches per second rebuilt from single frames, and bytes per transition.

Run ``python tests/benchmarks/frame_replay_speed.py``; it prints the median of alternating runs. Both sides give 32
pairs (s, s') of 4 x 84 x 84 uint8 out of 30,000 transitions: one gathers stacks that were stored whole, twice per
transition; the other is ``ReplayMemory.next_batch`` as it is, drawing the indices included.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from omnirl.api import ArraySpec, Clock, DiscreteAction, Rollout
from omnirl.buffers.replay import ReplayMemory, ReplaySettings, reserved_bytes

CAPACITY, BATCH, RUNS, REPEATS = 30_000, 32, 5, 1500
OBSERVATION, ACTION = ArraySpec((1, 84, 84), "uint8", "image", frame_stack=4), DiscreteAction(6)


def rate(draw: Callable[[int], Any]) -> float:
    """Calls of ``draw`` per second."""
    began = time.perf_counter()
    for i in range(REPEATS):
        draw(i)
    return REPEATS / (time.perf_counter() - began)


def resident() -> int:
    """The greatest number of bytes that this process had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def filled() -> ReplayMemory:
    """A memory filled once over, in rollouts of 125 steps of 8 environments; an episode ends in every one."""
    memory = ReplayMemory(OBSERVATION, ACTION, ReplaySettings(CAPACITY, BATCH))
    length, envs = 125, 8
    rng = np.random.default_rng(0)
    for number in range(CAPACITY // (length * envs) + 4):
        ended = np.zeros((length, envs), np.bool_)
        ended[60, number % envs] = True
        first = np.zeros((length + 1, envs), np.bool_)
        first[1:] = ended
        memory.add(
            Rollout(
                obs=rng.integers(0, 256, (3 + length + 1, envs, *OBSERVATION.shape), np.uint8),
                first=first,
                action=np.zeros((length, envs), np.int64),
                reward=np.zeros((length, envs), np.float32),
                terminated=ended,
                truncated=np.zeros((length, envs), np.bool_),
                final_obs=np.zeros((1, *OBSERVATION.shape), np.uint8),
                final_at=np.argwhere(ended),
                number=2 * number,  # never the next: every rollout brings its own lead-in
            ),
            due=0,
        )
    return memory


def main() -> None:
    """Measure and print."""
    before = resident()
    memory = filled()
    taken = resident() - before
    whole = [np.ones((CAPACITY // 4, 4, 84, 84), np.uint8) for _ in range(2)]
    rng = np.random.default_rng(0)
    indices = [rng.integers(0, CAPACITY // 4, BATCH) for _ in range(REPEATS)]
    sides: dict[str, Callable[[int], Any]] = {
        "stacks stored whole, take": lambda i: [array.take(indices[i], axis=0) for array in whole],
        "single frames, next_batch": lambda i: memory.next_batch(Clock(i, 0, 0.0, i)),
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(RUNS):
        for name, draw in sides.items():
            rates[name].append(rate(draw))
    for name, values in rates.items():
        print(f"{name:28s} {statistics.median(values):9,.0f} batches/s")
    reserved = reserved_bytes(OBSERVATION, ACTION, CAPACITY)
    print(
        f"{len(memory)} transitions: {reserved / 1e6:,.0f} MB reserved, {taken / 1e6:,.0f} MB resident after filling"
    )
    print(f"1,000,000 transitions: {reserved_bytes(OBSERVATION, ACTION, 1_000_000) / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
