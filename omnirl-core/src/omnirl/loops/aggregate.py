"""Sum up evaluation episodes: the default ``aggregate_evaluations`` of a backend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnirl.api.data import Episode


def aggregate(episodes: Sequence[Episode]) -> dict[str, float]:
    """The figures of ``EnvSpec.eval_metrics``' default, and the mean of every name in ``Episode.metrics``.

    ``return_mean``, ``return_std`` (population), ``return_min``, ``return_max`` of the undiscounted returns,
    ``length_mean`` in steps, ``episodes`` counted. Any other metric is averaged over those that have it.
    Raises ValueError without an episode: there is no mean of nothing.
    """
    if not episodes:
        raise ValueError("no evaluation episode to aggregate")
    returns = np.array([episode.total_reward for episode in episodes], np.float64)
    figures = {
        "return_mean": float(returns.mean()),
        "return_std": float(returns.std()),
        "return_min": float(returns.min()),
        "return_max": float(returns.max()),
        "length_mean": float(np.mean([episode.length for episode in episodes])),
        "episodes": float(len(episodes)),
    }
    names = dict.fromkeys(name for episode in episodes for name in episode.metrics)
    for name in names:
        figures[name] = float(np.mean([e.metrics[name] for e in episodes if name in e.metrics]))
    return figures
