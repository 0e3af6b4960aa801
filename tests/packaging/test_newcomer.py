"""A newcomer's path: install three wheels and the example backend, train on it, test the agent, look at the curve."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GRIDWORLD = Path(__file__).parents[2] / "examples" / "plugins" / "acme-gridworld"
MISSING = [
    name for name in ("torch", "gymnasium", "ray", "matplotlib") if importlib.util.find_spec(name) is None
]
SETTINGS = (
    *(
        "runner.num_envs_per_sampler=8",
        "runner.num_episodes=50",
        "runner.eval_interval=10",
        "runner.log_interval=0",
    ),
    *("modules.memory.unroll_length=64", "modules.learner.minibatch_size=64", "modules.learner.lr=3e-3"),
)


@pytest.mark.skipif(bool(MISSING), reason=f"not installed here: {', '.join(MISSING)}")
def test_from_wheels_to_the_curve(make_environment: Callable[..., Any], isolation: list[str]) -> None:
    environment = make_environment(everything=True)
    environment.pip("install", "--no-deps", *isolation, str(GRIDWORLD))
    assert environment.run("omnirl", "doctor").returncode == 0

    train = ["train", "--algo", "ppo", "env.module=acme_gridworld", "--updates", "40", "--run-dir", "first"]
    told = environment.run("omnirl", *train, *SETTINGS, "--local").stdout
    assert "finished: 40 updates, 20,480 env steps" in told

    # The best policy makes no detour; from a random cell that is worth 0.937 on the mean.
    tested = environment.run("omnirl", "test", "first", "--local", "--json", "--min-return", "0.9").stdout
    metrics = json.loads(tested)["metrics"]
    assert metrics["solved"] == 1.0
    assert metrics["detour"] < 0.5  # steps

    drawn = environment.run("omnirl", "runs", "plot", "first").stdout.strip()
    assert drawn == "first/plot.png"
    assert colours(environment.work / drawn) > 10


def colours(path: Path) -> int:
    """How many colours a picture has: a blank one has one, axes alone a few greys."""
    import numpy as np
    from matplotlib import image

    pixels = image.imread(path)
    assert pixels.shape[0] > 300
    assert pixels.shape[1] > 300
    red, green, blue = (pixels[..., channel] for channel in range(3))
    coloured = pixels[(np.abs(red - green) > 0.1) | (np.abs(green - blue) > 0.1)]
    return len(np.unique(coloured.reshape(-1, pixels.shape[2]), axis=0))
