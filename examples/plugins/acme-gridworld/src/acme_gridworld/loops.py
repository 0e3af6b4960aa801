"""Loops of our own. OmniRL brings good ones; a backend that knows its environment can do more.

The collector saves the walkers' places themselves, so a run goes on exactly without replaying any action; the
evaluation reports, beside the return, how often the goal was reached and by how many steps too many.

Letters: T steps, B walkers, C cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from acme_gridworld.grid import GridEnvironment
from omnirl.api import ActContext, Array, Episode, Policy, Rollout, Streams

METRICS = ("return_mean", "length_mean", "solved", "detour", "episodes")


class GridCollector:
    """See :class:`omnirl.api.Collector`."""

    def __init__(self, grid: GridEnvironment, policy: Policy, unroll_length: int, streams: Streams) -> None:
        self._grid, self._policy, self._length, self._streams = grid, policy, unroll_length, streams
        self._number = 0
        self._episodes = np.full(grid.num_envs, -1)
        self._begins = np.ones(grid.num_envs, np.bool_)

    def collect(self, version: int, env_steps: int) -> Rollout:
        """Step T times; a walker that ended begins anew right away, so that every row is a real transition."""
        grid, rng = self._grid, self._streams.policy(self._number)
        self._reset(np.flatnonzero(self._begins & (self._episodes < 0)))
        rows: dict[str, list[Any]] = {name: [] for name in ("obs", "first", "action", "step")}
        extras: dict[str, list[Any]] = {}
        for t in range(self._length):
            obs, steps = grid.observations(), env_steps + t * grid.num_envs
            context = ActContext(rng, steps, self._streams.progress(steps), self._begins)
            sample = self._policy.sample_action(obs, context)
            step = grid.step(sample.action)
            for name, value in zip(rows, (obs, self._begins, sample.action, step), strict=True):
                rows[name].append(value)
            for name, extra in sample.extras.items():
                extras.setdefault(name, []).append(extra)
            self._begins = step.terminated | step.truncated
            self._reset(np.flatnonzero(self._begins))
        action = np.stack(rows["action"])
        stacked = {name: np.stack(values) for name, values in extras.items()}
        if hasattr(self._policy, "finish"):  # what a policy computes once per rollout
            stacked = dict(self._policy.finish({**stacked, "action": action}))
            stacked.pop("action", None)
        final_at = np.argwhere(np.stack([step.terminated | step.truncated for step in rows["step"]]))
        self._number += 1
        return Rollout(
            obs=np.stack([*rows["obs"], grid.observations()]),
            first=np.stack([*rows["first"], self._begins]),
            action=action,
            reward=np.stack([step.reward for step in rows["step"]]),
            terminated=np.stack([step.terminated for step in rows["step"]]),
            truncated=np.stack([step.truncated for step in rows["step"]]),
            final_obs=np.stack([step.final_obs for step in rows["step"]])[final_at[:, 0], final_at[:, 1]],
            final_at=final_at,
            extras=stacked,
            number=self._number - 1,
            version=version,
            env_steps=env_steps,
        )

    def _reset(self, walkers: Array) -> None:
        for i in walkers.tolist():
            self._episodes[i] += 1
            self._grid.reset(i, self._streams.episode_seed(i, int(self._episodes[i])))

    def state_dict(self) -> dict[str, Any]:
        """Where every walker is: numpy arrays and numbers, copied."""
        return {
            "number": self._number,
            "episodes": self._episodes.copy(),
            "begins": self._begins.copy(),
            "position": self._grid.position.copy(),
            "taken": self._grid.taken.copy(),
            "policy": dict(self._policy.state_dict()),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> bool:
        """Go on from there; True, because it is always exact."""
        self._number = int(state["number"])
        self._episodes, self._begins = np.array(state["episodes"]), np.array(state["begins"])
        self._grid.position, self._grid.taken = np.array(state["position"]), np.array(state["taken"])
        self._policy.load_state_dict(state["policy"])
        return True


def evaluation_loop(
    grid: GridEnvironment, policy: Policy, num_episodes: int, streams: Streams
) -> list[Episode]:
    """Play ``num_episodes``, B at a time, each with figures of its own."""
    episodes: list[Episode] = []
    first = np.ones(grid.num_envs, np.bool_)
    for batch in range(-(-num_episodes // grid.num_envs)):
        for i in range(grid.num_envs):
            grid.reset(i, streams.episode_seed(i, batch))
        shortest, total = grid.distance(), np.zeros(grid.num_envs)
        length, solved = np.zeros(grid.num_envs, np.int64), np.zeros(grid.num_envs, np.bool_)
        running = np.ones(grid.num_envs, np.bool_)
        while running.any():
            context = ActContext(streams.policy(0), 0, streams.progress(0), first)
            step = grid.step(policy.choose_action(grid.observations(), context))
            total += np.where(running, step.reward, 0.0)
            length += running
            solved |= running & step.terminated
            running &= ~(step.terminated | step.truncated)
        for i in range(min(grid.num_envs, num_episodes - len(episodes))):
            figures = {"solved": float(solved[i]), "detour": float(length[i] - shortest[i])}
            episodes.append(Episode(float(total[i]), int(length[i]), figures))
    return episodes


def aggregate(episodes: Sequence[Episode]) -> dict[str, float]:
    """The figures of :data:`METRICS`, which are columns of log.csv."""
    return {
        "return_mean": float(np.mean([episode.total_reward for episode in episodes])),
        "length_mean": float(np.mean([episode.length for episode in episodes])),
        "solved": float(np.mean([episode.metrics["solved"] for episode in episodes])),
        "detour": float(np.mean([episode.metrics["detour"] for episode in episodes])),
        "episodes": float(len(episodes)),
    }
