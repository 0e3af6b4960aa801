"""Run deterministic evaluation episodes without favouring short ones.

With "the first n episodes that finish", an environment whose episodes are short contributes more of them and
the mean is biased. Here each sub-environment has a quota fixed in advance: number i plays ``(n + i) // B``.

Letters: B sub-environments, n episodes; ``*obs`` the observation's shape.
"""

from __future__ import annotations

import numpy as np

from omnirl.api.algorithm import ActContext, Policy
from omnirl.api.data import Array, Episode
from omnirl.api.environment import Environment, Streams
from omnirl.api.specs import ObservationSpec
from omnirl.loops import observations
from omnirl.loops.frame_stacks import frame_stacks


def quotas(num_episodes: int, num_envs: int) -> Array:
    """Episodes of each sub-environment, int64 [B]: ``(n + i) // B``, which sums to n."""
    return (num_episodes + np.arange(num_envs, dtype=np.int64)) // num_envs


def evaluation_loop(
    environment: Environment,
    policy: Policy,
    num_episodes: int,
    streams: Streams,
    observation: ObservationSpec | None = None,
) -> list[Episode]:
    """Play ``num_episodes`` with the policy's deterministic actions, listed by sub-environment.

    Where ``observation`` is given and says that frames are stacked, the policy acts on stacks of the single frames
    that the environment hands out.
    Episode k of sub-environment i begins from ``streams.episode_seed(i, k)``. A sub-environment that has
    played its quota is stepped along, since the others need it, and ignored. Returns are summed in float64; an
    environment's own figures are taken as :class:`omnirl.api.MeasuredEnvironment` says.
    Raises ValueError for less than one episode, and whatever the environment or the policy raises.
    """
    if num_episodes < 1:
        raise ValueError(f"num_episodes must be at least 1, not {num_episodes}")
    envs = environment.num_envs
    quota = quotas(num_episodes, envs)
    played: list[list[Episode]] = [[] for _ in range(envs)]
    begun = np.zeros(envs, np.int64)
    total, length = np.zeros(envs, np.float64), np.zeros(envs, np.int64)

    obs = observations.reset_all(environment, lambda i: streams.episode_seed(i, 0))
    seen, stacks = obs, frame_stacks(observation, envs)
    if stacks is not None:
        stacks.fill(obs)
        seen = stacks.observations
    # Nothing is collected, so the clock stands still; the generator is there for policies that demand one.
    rng, progress, first = streams.policy(0), streams.progress(0), np.ones(envs, np.bool_)
    measure = getattr(environment, "episode_metrics", None)
    remaining = num_episodes
    while remaining:
        step = environment.step(policy.choose_action(seen, ActContext(rng, 0, progress, first)))
        observations.write(obs, slice(None), step.obs)
        if stacks is not None:
            stacks.push(step.obs)
        total += step.reward
        length += 1
        first = np.asarray(step.terminated) | np.asarray(step.truncated)
        for i in np.flatnonzero(first).tolist():
            if len(played[i]) < quota[i]:
                metrics = dict(measure(i)) if measure is not None else {}
                played[i].append(Episode(float(total[i]), int(length[i]), metrics))
                remaining -= 1
            total[i], length[i] = 0.0, 0
            begun[i] += 1
            row = environment.reset(i, streams.episode_seed(i, int(begun[i])))
            observations.write(obs, i, row)
            if stacks is not None:
                stacks.begin(i, row)
    return [episode for episodes in played for episode in episodes]
