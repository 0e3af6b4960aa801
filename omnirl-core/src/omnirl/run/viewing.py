"""Watch a saved agent: film its episodes into a video, or show them in a window."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omnirl.api.data import Episode
from omnirl.api.errors import ConfigError, OmniRLError, WorkersFailedError
from omnirl.config import check
from omnirl.plugins.sources import one_line
from omnirl.run.sources import configured_agent, saved_run
from omnirl.runtime import setup
from omnirl.runtime.agents import agent_path, load_agent
from omnirl.runtime.evaluate import Evaluation, summarise
from omnirl.runtime.plan import WorkerPlan
from omnirl.runtime.video import check_target
from omnirl.runtime.viewer import Viewer
from omnirl.runtime.weights import Weights, pack

_VERBS = {"frames": "filmed", "window": "shown in a window"}


@dataclass(frozen=True)
class Recording:
    """A video and what happens in it. frames: played, all of which an mp4 shows; height, width: in pixels."""

    path: Path
    frames: int
    frames_per_second: float
    height: int
    width: int
    evaluation: Evaluation


def record(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    overrides: Sequence[str] = (),
    model: str | None = None,
    episodes: int = 1,
) -> Recording:
    """Film ``episodes`` of a run's agent with its deterministic policy; needs no display.

    out: an ``.mp4`` or ``.gif`` that is not there yet; by default the agent's name in the run's folder. The
    episodes are those that the first evaluator plays. model: such as ``"agent_100"`` or ``"best"``, by default
    ``runner.eval_model``, else the newest. Raises an OmniRLError with one line: what is missing, and the way out.
    """
    viewing = _Viewing(run, overrides, model, episodes, "frames")
    path = Path(out) if out is not None else _free_name(viewing.folder, viewing.agent.stem)
    check_target(path)
    played, video = viewing.play(lambda viewer, weights: viewer.film(weights, path))
    height, width = video.shape[:2]
    evaluation = viewing.evaluation(played)
    return Recording(path, video.frames, video.frames_per_second, height, width, evaluation)


def enjoy(
    run: str | os.PathLike[str],
    *,
    overrides: Sequence[str] = (),
    model: str | None = None,
    episodes: int = 1,
) -> Evaluation:
    """Show ``episodes`` of a run's agent in a window, at the environment's own speed; see :func:`record`."""
    viewing = _Viewing(run, overrides, model, episodes, "window")
    return viewing.evaluation(viewing.play(lambda viewer, weights: viewer.evaluate(weights)))


class _Viewing:
    """A run, one of its agents and a plan for one evaluator."""

    def __init__(
        self,
        run: str | os.PathLike[str],
        overrides: Sequence[str],
        model: str | None,
        episodes: int,
        view: str,
    ) -> None:
        if episodes < 1:
            raise ConfigError(f"episodes: {episodes}, must be at least 1")
        config, self.folder = saved_run(run, overrides)
        self.config, self.view = setup.decide(config), view
        self.agent = agent_path(self.folder, model) if model else configured_agent(config, self.folder)
        env_spec = setup.env_spec_of(self.config)
        self._weights, meta = load_agent(self.agent, config, env_spec)
        self._version = int(meta["updates"])
        plan, _ = setup.plan_of(self.config, env_spec)
        self._plan: WorkerPlan = replace(plan, num_evaluators=1, episodes=episodes)
        if view not in plan.env_backend.views:
            text = f"{config.backend.name} has no environments that can be {_VERBS[view]}"
            line = f"{text}; omnirl test reports what the agent reaches"
            raise ConfigError(config.line(("env", "module"), line))

    def play(self, watch: Callable[[Viewer, Weights], Any]) -> Any:
        """What ``watch`` returns; a mistake of the environment is told as a worker's."""
        viewer: Viewer | None = None
        try:
            viewer = Viewer(self._plan, self.view)
            return watch(viewer, Weights(self._version, pack(self._weights)))
        except ConfigError as error:
            raise check.placed(self.config, error) from error
        except OmniRLError:
            raise
        except Exception as error:  # of the environment, the policy or the drawing
            lines = traceback.format_exc().rstrip().splitlines()
            text = f"while {setup.environment_name(self.config)} was {_VERBS[self.view]}: {one_line(error)}"
            raise WorkersFailedError([text, *lines]) from error
        finally:
            if viewer is not None:
                viewer.close()

    def evaluation(self, episodes: Sequence[Episode]) -> Evaluation:
        """The figures of what was played."""
        metrics, each = summarise(self._plan, [list(episodes)])
        return Evaluation(self.agent.stem, str(self.folder), len(episodes), metrics, each)


def _free_name(folder: Path, agent: str) -> Path:
    """``agent_100.mp4`` in the run's folder, or ``agent_100-2.mp4`` and so on where that is there already."""
    names = (f"{agent}{suffix}.mp4" for suffix in ("", *(f"-{number}" for number in range(2, 10_000))))
    return next(path for path in (folder / name for name in names) if not path.exists())
