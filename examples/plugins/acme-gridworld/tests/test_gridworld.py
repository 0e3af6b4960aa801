"""The grid world passes OmniRL's suite for backends, beside a slow and obvious grid world; and its own figures."""

from __future__ import annotations

import numpy as np

from acme_gridworld.backend import BACKEND, build_env, get_env_spec
from acme_gridworld.config import GridworldConfig
from acme_gridworld.plugin import GRIDWORLD
from omnirl.api import EnvContext
from omnirl.testing import BackendSuite
from omnirl.testing.fakes import FakeStreams


class SlowGrid:
    """One walker, with a loop and ifs."""

    def __init__(self, size=5, step_cost=0.02, max_steps=40):
        self.size, self.step_cost, self.max_steps = size, step_cost, max_steps

    def reset(self, seed):
        cell = np.random.default_rng(seed).integers(self.size * self.size - 1)
        self.row, self.column, self.steps = cell // self.size, cell % self.size, 0
        return self.observe()

    def step(self, action):
        row, column = self.row, self.column
        if action == 0:
            row -= 1
        elif action == 1:
            row += 1
        elif action == 2:
            column -= 1
        else:
            column += 1
        if 0 <= row < self.size and 0 <= column < self.size:
            self.row, self.column = row, column
        self.steps += 1
        if self.row == self.size - 1 and self.column == self.size - 1:
            return self.observe(), 1.0, True, False
        return self.observe(), -self.step_cost, False, self.steps == self.max_steps

    def observe(self):
        seen = np.zeros(self.size * self.size, np.float32)
        seen[self.row * self.size + self.column] = 1.0
        return seen


class TestGridworld(BackendSuite):
    spec = GRIDWORLD
    environments = {"small": {"size": 3}, "cut": {"size": 5, "max_steps": 6}}

    def reference(self, env):
        return SlowGrid(**env)


class RightThenDown:
    """The policy that needs no detour."""

    def choose_action(self, obs, act):
        column = obs.argmax(axis=1) % 5
        return np.where(column < 4, 3, 1)


def test_the_shortest_way_has_no_detour():
    config = GridworldConfig(step_cost=0.0)
    grid = build_env(config, EnvContext("evaluator", 0, 4))
    episodes = BACKEND.evaluation_loop(grid, RightThenDown(), 10, FakeStreams())
    figures = BACKEND.aggregate_evaluations(episodes)
    assert (figures["return_mean"], figures["solved"], figures["detour"]) == (1.0, 1.0, 0.0)
    assert set(figures) == set(get_env_spec(config).eval_metrics)


def test_steps_cost_what_they_should():
    grid = build_env(GridworldConfig(size=2, step_cost=0.25), EnvContext("sampler", 0, 1))
    seed = next(seed for seed in range(100) if grid.reset(0, seed).argmax() == 0)
    grid.reset(0, seed)
    rewards = [float(grid.step(np.array([move])).reward[0]) for move in (0, 3, 1)]
    assert rewards == [-0.25, -0.25, 1.0]  # against the edge, to the right, down to the goal


def test_the_picture_shows_the_floor_the_goal_and_the_walker():
    grid = build_env(GridworldConfig(size=2), EnvContext("evaluator", 0, 1, view="frames"))
    seed = next(seed for seed in range(100) if grid.reset(0, seed).argmax() == 1)
    grid.reset(0, seed)
    corners = grid.render()[::31, ::31]
    floor, walker, goal = (235, 235, 235), (40, 90, 200), (60, 160, 90)
    assert [tuple(pixel) for pixel in corners.reshape(-1, 3)] == [floor, walker, floor, goal]
