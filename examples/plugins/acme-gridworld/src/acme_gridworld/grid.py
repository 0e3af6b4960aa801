"""The environment: B walkers on grids of their own, moved by a few numpy operations.

A walker begins in a cell drawn from its episode's seed, anywhere but at the goal in the last corner. It observes its
cell one-hot and moves up, down, left or right; at the edge it stays. The goal terminates with reward 1, every other
step costs ``step_cost``, and after ``max_steps`` the episode is cut. So the best return from a cell at distance d is
1 - step_cost (d - 1).

Letters: B walkers, C = size * size cells.
"""

from __future__ import annotations

import numpy as np

from acme_gridworld.config import GridworldConfig
from omnirl.api import Array, Step

_MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])
_PIXELS = 16
_FLOOR, _GOAL, _WALKER = (235, 235, 235), (60, 160, 90), (40, 90, 200)


class GridEnvironment:
    """See :class:`omnirl.api.Environment`."""

    seedable = True
    frames_per_second = 5.0

    def __init__(self, config: GridworldConfig, num_envs: int) -> None:
        self.num_envs = num_envs
        self.position = np.zeros((num_envs, 2), np.int64)
        self.taken = np.zeros(num_envs, np.int64)
        self._config = config
        self._one_hot = np.eye(config.size**2, dtype=np.float32)

    def reset(self, index: int, seed: int) -> Array:
        """Put one walker into the cell that ``seed`` draws; what it observes, [C]."""
        cell = int(np.random.default_rng(seed).integers(self._config.size**2 - 1))
        self.position[index] = divmod(cell, self._config.size)
        self.taken[index] = 0
        first: Array = self.observations()[index]
        return first

    def step(self, action: Array) -> Step:
        """Move every walker by its ``action`` [B]."""
        last = self._config.size - 1
        self.position = np.clip(self.position + _MOVES[action], 0, last)
        self.taken += 1
        terminated = (self.position == last).all(axis=1)
        truncated = (self.taken >= self._config.max_steps) & ~terminated
        reward = np.where(terminated, 1.0, -self._config.step_cost).astype(np.float32)
        obs = self.observations()
        return Step(obs, reward, terminated, truncated, final_obs=obs)

    def observations(self) -> Array:
        """What all walkers observe now, a new array [B, C]."""
        rows: Array = self._one_hot[self.position[:, 0] * self._config.size + self.position[:, 1]]
        return rows

    def distance(self) -> Array:
        """Steps from each walker to its goal, [B]."""
        steps: Array = (self._config.size - 1 - self.position).sum(axis=1)
        return steps

    def render(self) -> Array:
        """The first walker's grid from above, uint8 [H, W, 3], 16 pixels per cell."""
        cells = np.full((self._config.size, self._config.size, 3), _FLOOR, np.uint8)
        cells[-1, -1] = _GOAL
        cells[tuple(self.position[0])] = _WALKER
        picture: Array = cells.repeat(_PIXELS, axis=0).repeat(_PIXELS, axis=1)
        return picture

    def close(self) -> None:
        """Nothing is held."""
