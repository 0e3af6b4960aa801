"""An evaluator that somebody watches: its one environment shows a window, or is filmed into a video."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from omnirl.api.data import Array, Episode, Obs, Step
from omnirl.api.environment import ViewedEnvironment
from omnirl.runtime.evaluator import Evaluator
from omnirl.runtime.plan import WorkerPlan
from omnirl.runtime.video import VideoFile
from omnirl.runtime.vital_signs import CountedEnvironment
from omnirl.runtime.weights import Weights


class Viewer(Evaluator):
    """Plays the plan's number of episodes before somebody's eyes."""

    def __init__(self, plan: WorkerPlan, view: str) -> None:
        super().__init__(plan, 0, view)

    def film(self, weights: Weights, path: Path) -> tuple[tuple[Episode, ...], VideoFile]:
        """Play with ``weights`` into a video at ``path``."""
        viewed = self.environment
        with VideoFile(path, float(viewed.frames_per_second)) as video:
            self.environment = FilmedEnvironment(viewed, video)
            return self.evaluate(weights), video


class FilmedEnvironment(CountedEnvironment):
    """An environment whose resets and steps become frames.

    The picture after a reset is kept until the first step: a loop may begin an episode that it does not play.
    """

    def __init__(self, environment: ViewedEnvironment, video: VideoFile) -> None:
        super().__init__(environment)
        self.__dict__["_film"] = video.add
        self.__dict__["_first"] = None

    def reset(self, index: int, seed: int) -> Obs:
        """Begin an episode."""
        obs = super().reset(index, seed)
        self.__dict__["_first"] = np.array(self.render())  # drawn anew before it is used
        return obs

    def step(self, action: Array) -> Step:
        """Step, and add the picture of where it leads."""
        step = super().step(action)
        if self._first is not None:
            self._film(self._first)
            self.__dict__["_first"] = None
        self._film(self.render())
        return step
