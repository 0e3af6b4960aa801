"""Steps per second of CartPole alone, random actions: ours, SyncVectorEnv, Gymnasium's own vector version.

    python tests/benchmarks/stepping.py [--pairs 5] [--steps 20000]

The ways take turns, so that a machine whose speed drifts slows all of them; each row shows the median.
Resetting at an episode's end is part of it, and ours is reset with a seed, as the collection loop does it,
which takes about 12 us an episode more. The other two reset in the next step: their row after an end is no
transition, so it is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from omnirl.api.environment import EnvContext
from omnirl.envs.gymnasium.backend import build_env
from omnirl.envs.gymnasium.config import GymnasiumConfig

NAME = "CartPole-v1"


def omnirl_rate(num_envs: int, actions: Any) -> float:
    """Transitions per second of our in-process environment for ``actions`` [T, B]."""
    environment = build_env(GymnasiumConfig(id=NAME), EnvContext("sampler", 0, num_envs))
    for index in range(num_envs):
        environment.reset(index, index)
    begin = time.perf_counter()
    for number, action in enumerate(actions):
        step = environment.step(action)
        for index in np.flatnonzero(step.terminated | step.truncated).tolist():
            environment.reset(index, number)
    seconds = time.perf_counter() - begin
    environment.close()
    return float(actions.size / seconds)


def gymnasium_rate(mode: str) -> Callable[[int, Any], float]:
    """The same for one of Gymnasium's vectorization modes."""

    def measure(num_envs: int, actions: Any) -> float:
        environment = gymnasium.make_vec(NAME, num_envs, vectorization_mode=mode)
        environment.reset(seed=0)
        begin = time.perf_counter()
        dummies = 0
        for action in actions:
            _, _, terminated, truncated, _ = environment.step(action)
            dummies += int(np.count_nonzero(terminated | truncated))
        seconds = time.perf_counter() - begin
        environment.close()
        return float((actions.size - dummies) / seconds)

    return measure


WAYS = {
    "omnirl": omnirl_rate,
    "SyncVectorEnv": gymnasium_rate("sync"),
    "own vector version": gymnasium_rate("vector_entry_point"),
}


def main() -> None:
    """Measure and print one line per way and number of environments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=5, help="how often each way is measured")
    parser.add_argument("--steps", type=int, default=20_000, help="steps of all environments per measurement")
    arguments = parser.parse_args()
    print(f"gymnasium {gymnasium.__version__}, numpy {np.__version__}, {arguments.pairs} rounds, medians")
    for num_envs in (8, 16):
        shape = (arguments.steps // num_envs, num_envs)
        actions = np.random.default_rng(0).integers(2, size=shape)
        rates: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(arguments.pairs):
            for way, measure in WAYS.items():
                rates[way].append(measure(num_envs, actions))
        ours = statistics.median(rates["omnirl"])
        for way, values in rates.items():
            median = statistics.median(values)
            print(f"{num_envs:3} envs  {way:20} {median:9,.0f} steps/s  omnirl / it {ours / median:5.2f}")


if __name__ == "__main__":
    main()
