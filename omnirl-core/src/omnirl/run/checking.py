"""Look at an environment before training on it: what would break, and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from omnirl import plugins
from omnirl.api.environment import EnvBackend, EnvFinding
from omnirl.api.errors import ConfigError
from omnirl.api.plugin import EnvBackendSpec, load_object
from omnirl.config import files
from omnirl.config import overrides as override_rules
from omnirl.config.resolve import resolve_environment
from omnirl.doctor import environment, other_process
from omnirl.plugins.sources import one_line

_PATIENCE = 10_000
"""Further steps that an episode may take to end."""


@dataclass(frozen=True)
class EnvironmentReport:
    """What was found. steps, episodes: played with random actions; steps_per_s: of one environment, through all that
    stands between it and a sampler."""

    environment: str
    backend: str
    steps: int
    episodes: int
    steps_per_s: float
    findings: tuple[EnvFinding, ...]

    @property
    def errors(self) -> tuple[EnvFinding, ...]:
        """What training would fail on, or learn wrongly from."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def warnings(self) -> tuple[EnvFinding, ...]:
        """What works less well than it could."""
        return tuple(finding for finding in self.findings if finding.severity == "warning")


def check_environment(
    env_id: str | None = None, *, backend: str = "gymnasium", overrides: Sequence[str] = (), steps: int = 1000
) -> EnvironmentReport:
    """Play ``steps`` random steps of an environment and look for what breaks training.

    env_id: ``env.id``, for backends that have ids. overrides: further keys, such as ``"env.kwargs.size=8"``. Raises
    ConfigError where the environment cannot be built at all: an unknown id or key, a space that nothing supports.
    """
    if steps < 1:
        raise ConfigError(f"steps: {steps}, must be at least 1")
    env = {"module": backend} if env_id is None else {"module": backend, "id": env_id}
    tree = files.merge(files.from_mapping({"env": env}, ""), override_rules.parse(overrides))
    spec, config = resolve_environment(tree, plugins.load())
    found, play = _look(load_object(spec.backend), config, spec, steps)
    unique = {(finding.name, finding.text): finding for finding in found}
    return EnvironmentReport(
        environment=str(getattr(config, "id", None) or spec.name),
        backend=spec.name,
        steps=play.steps,
        episodes=play.episodes,
        steps_per_s=play.steps_per_s,
        findings=tuple(sorted(unique.values(), key=lambda finding: finding.severity)),  # errors first
    )


def _look(
    functions: EnvBackend, config: Any, spec: EnvBackendSpec, steps: int
) -> tuple[list[EnvFinding], environment.Play]:
    """The backend's own findings, then those by other names."""
    found: list[EnvFinding] = []
    play = environment.Play()
    try:
        env_spec = functions.get_env_spec(config)
        if functions.check is not None:
            found += functions.check(config, steps)
        if not any(finding.severity == "error" for finding in found):
            patience = 0 if functions.check is not None else _PATIENCE
            play = environment.look(functions, config, env_spec, steps, patience)
            names = {finding.name for finding in found}
            found += [finding for finding in play.findings if finding.name not in names]
    except ConfigError:
        raise
    except Exception as error:  # of the environment's constructor, or of its close
        found.append(
            EnvFinding("raises", "error", one_line(error), "mend the environment: a worker would fail too")
        )
    return [*found, *other_process.look(spec, config)], play
