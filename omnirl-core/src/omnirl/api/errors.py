"""The errors a user may see. Each carries its exit code and one line per mistake; none shows a traceback.

A line names the culprit, the place and the way out: ``train.yaml:7:3 modules.learner.gama: unknown key (did you
mean 'gamma'?)``. Code that finds several mistakes raises one error with all the lines.
"""

from __future__ import annotations

from collections.abc import Iterable


class OmniRLError(Exception):
    """Base of all expected failures. ``lines`` are shown to the user as they are; ``exit_code`` ends the process."""

    exit_code = 1

    def __init__(self, lines: str | Iterable[str]) -> None:
        self.lines: tuple[str, ...] = (lines,) if isinstance(lines, str) else tuple(lines)
        super().__init__("\n".join(self.lines))

    def __reduce__(self) -> tuple[type[OmniRLError], tuple[tuple[str, ...]]]:
        return type(self), (self.lines,)


class ConfigError(OmniRLError):
    """A mistake in a file, an override or the command's use (exit 2)."""

    exit_code = 2


class SpaceError(ConfigError):
    """An environment's space is none that OmniRL describes (exit 2).

    A backend's ``get_env_spec`` raises it; each line then also names the algorithm that was to act there.
    """


class NotFoundError(OmniRLError):
    """A run, preset, file or model named on the command line is not there (exit 3)."""

    exit_code = 3


class PluginError(OmniRLError):
    """A plugin is there but cannot be used (exit 4)."""

    exit_code = 4


class CheckpointError(OmniRLError):
    """A checkpoint or agent file is damaged, foreign or does not fit (exit 5)."""

    exit_code = 5


class ClusterError(OmniRLError):
    """No cluster at the address, or too few resources (exit 6)."""

    exit_code = 6


class WorkersFailedError(OmniRLError):
    """Workers keep failing (exit 20)."""

    exit_code = 20


class LearnerLostError(WorkersFailedError):
    """One of several learners is gone, or did not answer in time, as another one noticed.

    ``Learner.learn`` and whatever else waits for the other learners raise it.
    """


class ClusterLostError(OmniRLError):
    """The cluster was lost during the run (exit 21)."""

    exit_code = 21


class NumericsError(OmniRLError):
    """Non-finite losses or gradients, too many in a row (exit 22)."""

    exit_code = 22


class DiskError(OmniRLError):
    """The run's folder cannot be written (exit 23)."""

    exit_code = 23


class OutOfMemoryError(OmniRLError):
    """Workers are killed because their machine runs out of memory (exit 24)."""

    exit_code = 24


class EvaluationBelowThreshold(OmniRLError):
    """An evaluation's mean return is below ``--min-return`` (exit 30)."""

    exit_code = 30
