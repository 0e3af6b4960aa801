"""What OmniRL finds through the entry point: a descriptor made of strings, so that listing it imports nothing."""

from __future__ import annotations

from omnirl.api import EnvBackendSpec, hookimpl

OMNIRL_API = 1

GRIDWORLD = EnvBackendSpec(
    name="acme_gridworld",
    summary="a square grid with a goal in the corner, stepped for all environments at once",
    config="acme_gridworld.config:GridworldConfig",
    backend="acme_gridworld.backend:BACKEND",
)


@hookimpl
def omnirl_env_backends() -> list[EnvBackendSpec]:
    """The one backend of this distribution."""
    return [GRIDWORLD]
