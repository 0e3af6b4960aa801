"""Plays an environment with random actions and says what would break training, and how to mend it.

What is looked at here every backend has: its ``Environment``. What a backend hides from it, such as the dtypes that it
casts, the backend's own ``EnvBackend.check`` looks at; what that finds replaces what is found here by the same name.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from omnirl.api.algorithm import ActContext
from omnirl.api.data import Array, Obs
from omnirl.api.environment import EnvBackend, EnvContext, EnvFinding, Environment
from omnirl.api.errors import ConfigError
from omnirl.api.specs import DictSpec, EnvSpec, ObservationSpec
from omnirl.loops import observations
from omnirl.testing.fakes import FakePolicy, RecordingEnvironment

SAMPLER = EnvContext("sampler", 0, 1)
_SLOW_STEP = 0.002
"""Seconds; a sampler of one environment then collects fewer than 500 steps per second."""
_REPEATED = 200
"""Steps that are made a second time, to see whether a seed repeats them."""
_UNMEASURED = 10
"""Steps before the clock starts: the first ones load what is loaded lazily."""


@dataclass
class Play:
    """What happened. rows: hashes of observation, reward and ends by step, resets included; actions: [steps, 1, *act];
    seconds: of the ``timed`` steps."""

    findings: list[EnvFinding] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    actions: list[Array] = field(default_factory=list)
    steps: int = 0
    episodes: int = 0
    seconds: float = 0.0
    timed: int = 0

    @property
    def broken(self) -> bool:
        """Whether an error was found."""
        return any(finding.severity == "error" for finding in self.findings)

    @property
    def steps_per_s(self) -> float:
        """Steps of one environment per second, 0 where too few were made."""
        return self.timed / self.seconds if self.seconds > 0 else 0.0


def look(backend: EnvBackend, config: Any, spec: EnvSpec, steps: int, patience: int) -> Play:
    """Play ``steps`` steps, and up to ``patience`` more where no episode has ended: none has to where it is 0.

    An error ends the play. Raises ConfigError where the environment cannot be built from its configuration.
    """
    play = Play()
    spec = replace(spec, observation=_single_frames(spec.observation))
    environment = backend.build_env(config, SAMPLER)
    try:
        _play(environment, spec, play, steps, patience)
        if not play.broken:
            play.findings += _endless(play) if patience else ()
            play.findings += _unseeded(backend, config, spec, play) if environment.seedable else ()
            play.findings += _slow(config, play)
    finally:
        environment.close()
    if "frames" in backend.views:
        play.findings += _picture(backend, config)
    return play


def _single_frames(observation: ObservationSpec) -> ObservationSpec:
    """What an environment hands out, whatever is stacked of it later."""
    if isinstance(observation, DictSpec):
        return DictSpec(tuple((name, replace(entry, frame_stack=1)) for name, entry in observation.entries))
    return replace(observation, frame_stack=1)


def _play(environment: Environment, spec: EnvSpec, play: Play, steps: int, patience: int) -> None:
    checked = RecordingEnvironment(environment, spec)
    policy = FakePolicy(spec, 1)
    rng = np.random.default_rng(0)
    try:
        obs = observations.reset_all(checked, lambda index: 0)
        play.rows.append(_hash(obs))
        play.findings += _nonfinite(obs, np.zeros(1), play)
        while play.steps < (steps if play.episodes else steps + patience) and not play.broken:
            context = ActContext(rng, play.steps, 0.0, np.zeros(1, np.bool_))
            action = policy.sample_action(obs, context).action
            began = time.perf_counter()
            step = checked.step(action)
            passed = time.perf_counter() - began
            play.steps += 1
            if play.steps > _UNMEASURED:
                play.seconds, play.timed = play.seconds + passed, play.timed + 1
            final = step.final_obs if step.terminated[0] or step.truncated[0] else step.obs
            play.findings += _nonfinite(final, step.reward, play)
            if len(play.actions) < _REPEATED:
                play.actions.append(action)
                play.rows.append(_hash(final, step.reward, step.terminated, step.truncated))
            observations.write(obs, slice(None), step.obs)
            if step.terminated[0] or step.truncated[0]:
                play.episodes += 1
                observations.write(obs, 0, checked.reset(0, play.episodes))
    except AssertionError as error:  # what the fakes say of a wrong form
        remedy = "return what get_env_spec announces; omnirl.testing.BackendSuite checks a whole backend"
        play.findings.append(EnvFinding("form", "error", f"{_when(play)}{error}", remedy))
    except ConfigError as error:
        play.findings += [
            EnvFinding("configuration", "error", line, "change that key") for line in error.lines
        ]
    except Exception as error:
        play.findings.append(_raised(f"step {play.steps + 1}", error))


def _hash(obs: Obs, *others: Array) -> bytes:
    parts = [observations.digest(obs), *(observations.digest(np.asarray(other)) for other in others)]
    return b"".join(part.tobytes() for part in parts)


def _when(play: Play) -> str:
    return f"after step {play.steps}: " if play.steps else "at the reset: "


def _raised(where: str, error: Exception) -> EnvFinding:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return EnvFinding(
        "raises", "error", f"{where}: {text}", "mend the environment: a worker would fail there too"
    )


def _nonfinite(obs: Obs, reward: Array, play: Play) -> Iterator[EnvFinding]:
    arrays = dict(obs) if hasattr(obs, "items") else {"": obs}
    named = {f"observation {name}".rstrip(): np.asarray(rows) for name, rows in arrays.items()}
    for name, array in {**named, "reward": np.asarray(reward)}.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            value = array[~np.isfinite(array)].flat[0]
            remedy = "find the division or the logarithm that gives it; a rollout that holds one is refused"
            yield EnvFinding("finite", "error", f"step {play.steps}: the {name} is {value}", remedy)


def _endless(play: Play) -> Iterator[EnvFinding]:
    if not play.episodes:
        yield EnvFinding(
            "endless",
            "error",
            f"no episode ended in {play.steps:,} steps: an evaluation, which plays whole ones, might never end",
            "truncate episodes after a number of steps",
        )


def _unseeded(backend: EnvBackend, config: Any, spec: EnvSpec, play: Play) -> Iterator[EnvFinding]:
    """The same seeds and actions once more, in an environment of its own."""
    environment = backend.build_env(config, SAMPLER)
    try:
        episodes = 0
        obs = observations.reset_all(environment, lambda index: 0)
        differs = 0 if _hash(obs) != play.rows[0] else None
        for number, action in enumerate(play.actions, 1):
            if differs is not None:
                break
            step = environment.step(action)
            ended = bool(step.terminated[0] or step.truncated[0])
            final = step.final_obs if ended else step.obs
            if _hash(final, step.reward, step.terminated, step.truncated) != play.rows[number]:
                differs = number
            if ended:
                episodes += 1
                environment.reset(0, episodes)
    finally:
        environment.close()
    if differs is not None:
        where = f"step {differs}" if differs else "the first observation"
        yield EnvFinding(
            "unseeded",
            "warning",
            f"the same seed and actions gave something else at {where}: runs and resumes do not repeat",
            "draw every random number from a generator that reset(seed) makes (Gymnasium: self.np_random)",
        )


def _slow(config: Any, play: Play) -> Iterator[EnvFinding]:
    if play.timed and play.seconds / play.timed > _SLOW_STEP:
        remedy = "more samplers (runner.num_samplers)"
        if hasattr(config, "vectorization"):
            remedy += (
                ", or several environments per sampler in processes of their own (env.vectorization=process)"
            )
        milliseconds = 1000 * play.seconds / play.timed
        text = f"a step takes {milliseconds:.1f} ms, so one environment gives {play.steps_per_s:,.0f} steps/s"
        yield EnvFinding("slow", "warning", text, remedy)


def _picture(backend: EnvBackend, config: Any) -> Iterator[EnvFinding]:
    """What ``omnirl record`` would run into, where the environment draws at all."""
    try:
        environment: Any = backend.build_env(config, EnvContext("evaluator", 0, 1, "frames"))
    except ConfigError:
        return  # it cannot be filmed, and says so
    try:
        environment.reset(0, 0)
        picture = np.asarray(environment.render())
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
            text = f"its picture is {picture.dtype} {list(picture.shape)}, not uint8 [height, width, 3]"
            yield EnvFinding("render", "warning", text, "return such an array from render()")
    except Exception as error:
        lines = error.lines if isinstance(error, ConfigError) else (f"{type(error).__name__}: {error}",)
        for line in lines:
            text = f"it cannot be filmed: {' '.join(line.split())}"
            yield EnvFinding("render", "warning", text, "mend render(); training does not need it")
    finally:
        environment.close()
