"""Named random streams: every random number of a run comes from a generator keyed by names, never from a shared one.

A key is hashed (sha256) into a seed, or into a ``numpy.random.SeedSequence``, so a stream depends on its names alone:
not on how many numbers another one drew, on the order of calls or on the process. That is what makes a resumed run
repeat.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


def _digest(names: tuple[str | int, ...]) -> bytes:
    return hashlib.sha256("/".join(map(str, names)).encode()).digest()


def generator(*names: str | int) -> np.random.Generator:
    """A fresh generator for a key, such as ``("policy", seed, "sampler", 0, incarnation, number)``."""
    # An array of words is taken as it is; a list of the same numbers one by one, in four times that.
    sequence = np.random.SeedSequence(np.frombuffer(_digest(names), "<u4"))
    return np.random.Generator(np.random.PCG64(sequence))


def integer(*names: str | int) -> int:
    """A seed in [0, 2**31) for a key: small enough for every simulator, and cheap enough for every update."""
    return int.from_bytes(_digest(names)[:4], "little") >> 1


@dataclass(frozen=True)
class SamplerStreams:
    """The streams of one incarnation of one sampler. ``target_steps`` is the run's stop target in steps."""

    seed: int
    sampler: int
    incarnation: int
    target_steps: int

    def policy(self, number: int) -> np.random.Generator:
        """The policy's generator for rollout ``number``."""
        return generator("policy", self.seed, "sampler", self.sampler, self.incarnation, number)

    def episode_seed(self, index: int, episode: int) -> int:
        """The seed of ``episode`` of sub-environment ``index``."""
        return integer("episode", self.seed, self.sampler, self.incarnation, index, episode)

    def progress(self, env_steps: int) -> float:
        """The fraction of the stop target reached."""
        return min(1.0, env_steps / self.target_steps)


@dataclass(frozen=True)
class EvaluatorStreams:
    """The streams of one evaluation of one version: the same version always plays the same episodes."""

    seed: int
    version: int
    evaluator: int

    def policy(self, number: int) -> np.random.Generator:
        """The policy's generator; a deterministic policy draws nothing from it."""
        return generator("policy", self.seed, "evaluator", self.version, self.evaluator, number)

    def episode_seed(self, index: int, episode: int) -> int:
        """The seed of ``episode`` of sub-environment ``index``."""
        return integer("evaluation", self.seed, self.version, self.evaluator, index, episode)

    def progress(self, env_steps: int) -> float:
        """An evaluation acts as at the end of the run."""
        return 1.0
