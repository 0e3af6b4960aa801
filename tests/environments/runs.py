"""Runs the command line on one environment and says what came of it: the return, the time, the learner's memory."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

OMNIRL = Path(sys.executable).with_name("omnirl")
_TIMEOUT = 3600.0
_POLL = 0.5


@dataclass(frozen=True)
class Outcome:
    """One ended command. error: its last line where it failed. memory: MB of the learner's process at most."""

    typed: str
    code: int
    seconds: float
    finished: dict[str, Any]
    error: str
    memory: float | None


class LearnerMemory(threading.Thread):
    """Watches the resident memory of the learner among the processes of a run."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._process = process
        self.ended = threading.Event()
        self.most: float | None = None

    def run(self) -> None:
        """Look twice a second."""
        while not self.ended.wait(_POLL):
            try:
                for child in psutil.Process(self._process).children(recursive=True):
                    if "LearnerWorker" in " ".join(child.cmdline()):
                        self.most = max(self.most or 0.0, child.memory_info().rss / 1e6)
            except psutil.Error:
                continue


def omnirl(*arguments: str, folder: Path, name: str) -> Outcome:
    """``omnirl *arguments``, its output in ``folder/name.log``."""
    log = folder / f"{name}.log"
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [str(OMNIRL), *arguments], stdout=output, stderr=subprocess.STDOUT, cwd=folder
        )
        memory = LearnerMemory(process.pid)
        memory.start()
        try:
            code = process.wait(_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.terminate()
            code = process.wait()
        memory.ended.set()
        memory.join()
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    events = [json.loads(line) for line in lines if line.startswith('{"event"')]
    finished = next((event for event in events if event["event"] == "finished"), {})
    told = [line.strip() for line in lines if line.strip() and not line.startswith("{")]
    message = str(finished.get("message") or "").strip().splitlines() or told or [f"exit code {code}"]
    error = "" if code == 0 else message[-1]
    shown = " ".join(word for word in arguments if word != "--json")
    return Outcome(f"omnirl {shown}", code, time.monotonic() - began, finished, error, memory.most)


def random_returns(env: dict[str, Any], episodes: int, seed: int = 0) -> np.ndarray:
    """The returns of uniformly random actions, seen as an evaluation sees them."""
    from omnirl.api import ContinuousAction, EnvContext
    from omnirl.envs.gymnasium.backend import build_env
    from omnirl.envs.gymnasium.config import GymnasiumConfig

    environment = build_env(GymnasiumConfig.model_validate(env), EnvContext("evaluator", 0, 1))
    action, rng = environment.action, np.random.default_rng(seed)
    returns = []
    for episode in range(episodes):
        environment.reset(0, seed + episode)
        total, ended = 0.0, False
        while not ended:
            if isinstance(action, ContinuousAction):
                own = rng.uniform(*action.bounds())[None].astype(np.float32)
            else:
                own = rng.integers(action.n, size=1)
            step = environment.step(own)
            total += float(step.reward[0])
            ended = bool(step.terminated[0] or step.truncated[0])
        returns.append(total)
    environment.close()
    return np.array(returns)


def standard_errors_above(trained: dict[str, Any], random: np.ndarray) -> float:
    """By how many standard errors of the difference the trained return is above the random one."""
    spread = np.hypot(
        trained["return_std"] / np.sqrt(trained["episodes"]), random.std(ddof=1) / np.sqrt(len(random))
    )
    return float((trained["return_mean"] - random.mean()) / spread)
