"""The plugin: tells OmniRL that this distribution brings the environment backend ``gymnasium``.

Strings only, so that listing the backends imports neither Gymnasium nor numpy.
"""

from __future__ import annotations

from omnirl.api.plugin import EnvBackendSpec, hookimpl

OMNIRL_API = 1


@hookimpl
def omnirl_env_backends() -> list[EnvBackendSpec]:
    """The one backend, ``env: {module: gymnasium, id: CartPole-v1}``."""
    return [
        EnvBackendSpec(
            name="gymnasium",
            summary="Gymnasium 1.x: its environments and those that modules named in env.imports register",
            config="omnirl.envs.gymnasium.config:GymnasiumConfig",
            backend="omnirl.envs.gymnasium.backend:BACKEND",
        )
    ]
