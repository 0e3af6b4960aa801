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
from omnirl.doctor.apart import EndedError, HungError, call_apart
from omnirl.plugins.sources import one_line

TIMEOUT = 120.0
_LONGEST = 1e6
_PATIENCE = 10_000
"""Further steps that an episode may take to end."""
_SLOW_OR_HANGS = (
    "if it hangs there, mend it: on Ray it costs a worker each time, and with --local the run hangs too; if it is only "
    "slow, play fewer --steps or allow a longer --timeout"
)
_MEND_END = (
    "mend the environment: a worker would end there too, and with --local the whole run, without a word"
)


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
    env_id: str | None = None,
    *,
    backend: str = "gymnasium",
    overrides: Sequence[str] = (),
    steps: int = 1000,
    timeout: float = TIMEOUT,
) -> EnvironmentReport:
    """Play ``steps`` random steps of an environment and look for what breaks training.

    It is played in a copy of this process, which an environment may crash or end without harm. env_id: ``env.id``, for
    backends that have ids. overrides: further keys, such as ``"env.kwargs.size=8"``. timeout: seconds for the whole
    check; what takes longer is an error of the environment. Raises ConfigError where the environment cannot be built at
    all: an unknown id or key, a space that nothing supports.
    """
    if steps < 1:
        raise ConfigError(f"steps: {steps}, must be at least 1")
    if not 0 < timeout <= _LONGEST:
        raise ConfigError(f"timeout: {timeout:g}, must be more than 0 and at most {_LONGEST:g} seconds")
    env = {"module": backend} if env_id is None else {"module": backend, "id": env_id}
    tree = files.merge(files.from_mapping({"env": env}, ""), override_rules.parse(overrides))
    spec, config = resolve_environment(tree, plugins.load())
    found, play = _look(spec, config, steps, timeout)
    unique = {(finding.name, finding.text): finding for finding in found}
    return EnvironmentReport(
        environment=str(getattr(config, "id", None) or spec.name),
        backend=spec.name,
        steps=play.steps,
        episodes=play.episodes,
        steps_per_s=play.steps_per_s,
        findings=tuple(sorted(unique.values(), key=lambda finding: finding.severity)),  # errors first
    )


@dataclass(frozen=True)
class _Played:
    """What comes of the play."""

    found: list[EnvFinding]
    steps: int = 0
    episodes: int = 0
    steps_per_s: float = 0.0


def _look(spec: EnvBackendSpec, config: Any, steps: int, timeout: float) -> tuple[list[EnvFinding], _Played]:
    """The findings of the play, and whether another process can build the environment too."""
    functions = load_object(spec.backend)
    try:
        played = call_apart(lambda: _play(functions, config, steps), timeout)
    except HungError as hung:
        text = f"it was not done within {timeout:g} s (--timeout){_at(hung.where)}"
        return [EnvFinding("timeout", "error", text, _SLOW_OR_HANGS)], _Played([])
    except EndedError as ended:
        text = f"it ended the process that played it ({ended.how}){_at(ended.where)}"
        return [EnvFinding("ends", "error", text, _MEND_END)], _Played([])
    return [*played.found, *other_process.look(spec, config, timeout)], played


def _at(where: str) -> str:
    return f": it was in {where}" if where else ""


def _play(functions: EnvBackend, config: Any, steps: int) -> _Played:
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
    except (Exception, SystemExit) as error:  # of the environment's constructor, or of its close
        found.append(
            EnvFinding("raises", "error", one_line(error), "mend the environment: a worker would fail too")
        )
    return _Played(found, play.steps, play.episodes, play.steps_per_s)
