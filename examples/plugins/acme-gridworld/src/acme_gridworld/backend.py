"""The functions that OmniRL calls for ``env: {module: acme_gridworld}``, gathered in one object."""

from __future__ import annotations

from acme_gridworld.config import GridworldConfig
from acme_gridworld.grid import GridEnvironment
from acme_gridworld.loops import METRICS, GridCollector, aggregate, evaluation_loop
from omnirl.api import ArraySpec, DiscreteAction, EnvBackend, EnvContext, EnvSpec


def get_env_spec(config: GridworldConfig) -> EnvSpec:
    """A one-hot cell, four moves, and the names of our figures."""
    return EnvSpec(ArraySpec((config.size**2,)), DiscreteAction(4), METRICS, id=f"grid{config.size}")


def build_env(config: GridworldConfig, context: EnvContext) -> GridEnvironment:
    """``context.num_envs`` walkers; samplers, evaluators and viewers get the same."""
    return GridEnvironment(config, context.num_envs)


BACKEND = EnvBackend(
    get_env_spec=get_env_spec,
    build_env=build_env,
    collection_loop=GridCollector,
    evaluation_loop=evaluation_loop,
    aggregate_evaluations=aggregate,
    views=("frames",),
)
