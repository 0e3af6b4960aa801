"""Collect rollouts: step B sub-environments with an exploring policy into time-major arrays.

This is the sampler's hot path. A step is one call of the policy, one of the environment and a few row copies
into arrays allocated once per rollout; Python touches a single sub-environment only where its episode ends.

Going on exactly after a restart needs no help from the environment: episode k of sub-environment i always
begins from the same seed, so resetting to it and replaying the actions since leads to the same state. The
hash of the last observation proves that it did.

Letters: T steps, B sub-environments, S steps of history; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from omnirl.api.algorithm import ActContext, Policy
from omnirl.api.data import ActionSample, Array, Obs, Rollout
from omnirl.api.environment import Environment, Streams
from omnirl.api.errors import CheckpointError, PluginError
from omnirl.api.specs import ObservationSpec
from omnirl.loops import observations
from omnirl.loops.frame_stacks import FrameStacks, frame_stacks
from omnirl.loops.history import ActionHistory


def collect_loop(
    environment: Environment,
    policy: Policy,
    unroll_length: int,
    streams: Streams,
    observation: ObservationSpec | None = None,
) -> RolloutCollector:
    """A collector of rollouts of ``unroll_length`` steps T from all B sub-environments of ``environment``.

    Where ``observation`` is given and says that frames are stacked, the policy acts on stacks of the single frames
    that the environment hands out. Nothing is reset before the first :meth:`RolloutCollector.collect`.
    """
    if unroll_length < 1:
        raise ValueError(f"unroll_length must be at least 1, not {unroll_length}")
    stacks = frame_stacks(observation, environment.num_envs)
    return RolloutCollector(environment, policy, unroll_length, streams, stacks)


class RolloutCollector:
    """Steps one environment with one policy; see :func:`collect_loop`.

    ``number`` counts the rollouts collected. Where the environment or the policy raises, the collector is
    spent: build a new one with a new environment.
    """

    def __init__(
        self,
        environment: Environment,
        policy: Policy,
        unroll_length: int,
        streams: Streams,
        stacks: FrameStacks | None = None,
    ) -> None:
        self.number = 0
        self._environment = environment
        self._policy = policy
        self._finish = getattr(policy, "finish", None)
        self._goes_on = getattr(environment, "continues", _never)
        self._length = unroll_length
        self._streams = streams
        self._stacks = stacks
        self._envs = environment.num_envs
        self._episodes = np.zeros(self._envs, np.int64)
        self._history = ActionHistory(self._envs)
        # The rows [B, *obs] and [B] that the next rollout begins with; None until the first reset.
        self._obs: Obs | None = None
        self._first = np.ones(self._envs, np.bool_)

    def collect(self, version: int, env_steps: int) -> Rollout:
        """Step T times. ``version`` is that of the policy's weights; ``env_steps`` were requested before.

        The arrays are new and belong to the caller. Raises ValueError where a policy changes the names of its
        extras within a rollout, and whatever the environment or the policy raises.
        """
        length, envs, stacks = self._length, self._envs, self._stacks
        if self._obs is None:
            self._obs = self._reset_all()
        if stacks is None:
            whole = obs = observations.allocate((length + 1, envs), observations.read(self._obs, 0))
        else:
            whole, obs = stacks.allocate(length + 1)
        observations.write(obs, 0, self._obs)
        first = np.zeros((length + 1, envs), np.bool_)
        first[0] = self._first
        reward = np.empty((length, envs), np.float32)
        terminated = np.empty((length, envs), np.bool_)
        truncated = np.empty((length, envs), np.bool_)
        rows: dict[str, Array] = {}
        action = reward  # replaced at the first step
        finals: list[Obs] = []
        final_at: list[Array] = []

        policy, environment, progress = self._policy, self._environment, self._streams.progress
        rng = self._streams.policy(self.number)
        for t in range(length):
            steps = env_steps + t * envs
            seen = observations.read(obs, t) if stacks is None else stacks.observations
            sample = policy.sample_action(seen, ActContext(rng, steps, progress(steps), first[t]))
            if t == 0:
                _check_sample(sample, envs)
                rows = {name: _rows(length, value) for name, value in sample.extras.items()}
                action = rows["action"] = _rows(length, sample.action)
            action[t] = sample.action
            if len(sample.extras) != len(rows) - 1:
                raise ValueError(
                    f"the policy's extras changed from {sorted(rows)} to {sorted(sample.extras)}"
                )
            for name, value in sample.extras.items():
                rows[name][t] = value

            # The stored row is what the environment gets, so that replaying it repeats the episode.
            step = environment.step(action[t])
            observations.write(obs, t + 1, step.obs)
            if stacks is not None:
                stacks.push(step.obs)
            reward[t] = step.reward
            terminated[t] = step.terminated
            np.greater(step.truncated, step.terminated, out=truncated[t])  # terminated wins when both are set
            ended = (terminated[t] | truncated[t]).nonzero()[0]
            if ended.size:
                # Copied before any reset, which may write into the arrays of the step.
                finals.append(observations.read(step.final_obs, ended))
                final_at.append(np.stack((np.full_like(ended, t), ended), axis=1))
                first[t + 1, ended] = True
                for i in ended.tolist():
                    if not self._goes_on(i):
                        self._episodes[i] += 1
                        self._history.begin(i, ahead=t + 1)
                    self._reset(i, obs, (t + 1, i))

        extras: Mapping[str, Array] = rows if self._finish is None else self._finish(dict(rows))
        self._history.extend(action)
        self._obs, self._first = observations.copy(observations.read(obs, length)), first[length].copy()
        rollout = Rollout(
            obs=whole,
            first=first,
            action=action,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            final_obs=observations.concatenate(finals, self._obs),
            final_at=np.concatenate(final_at) if final_at else np.empty((0, 2), np.int64),
            extras={name: value for name, value in extras.items() if name != "action"},
            number=self.number,
            version=version,
            env_steps=env_steps,
        )
        self.number += 1
        return rollout

    def state_dict(self) -> Mapping[str, Any]:
        """What is needed to go on exactly. Saving changes nothing.

        ``actions`` [S, B, *act] since the oldest unfinished episode, ``starts`` [B] in them, ``episodes``
        [B], ``digests`` [B, 32] of the last observations, ``number``, ``begun`` and the policy's own state.
        """
        actions, starts = self._history.since_oldest()
        digests = np.zeros((self._envs, 32), np.uint8)
        if self._obs is not None:
            for i in range(self._envs):
                digests[i] = observations.digest(observations.read(self._obs, i))
        return {
            "number": self.number,
            "begun": self._obs is not None,
            "episodes": self._episodes.copy(),
            "actions": actions,
            "starts": starts,
            "digests": digests,
            "policy": self._policy.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> bool:
        """Repeat the episodes that were under way; to be called before the first :meth:`collect`.

        Returns False where a sub-environment did not come to the observation it had: it begins its next
        episode instead. Raises CheckpointError where the state is that of another number of environments.
        """
        episodes = np.asarray(state["episodes"])
        if len(episodes) != self._envs:
            raise CheckpointError(
                f"the checkpoint's sampler has {len(episodes)} environments, this one {self._envs}: "
                "resume with the num_envs_per_sampler of the run"
            )
        self.number = int(state["number"])
        self._policy.load_state_dict(state["policy"])
        if not state["begun"]:
            return True
        self._episodes = np.array(episodes, np.int64)
        actions, starts = np.asarray(state["actions"]), np.asarray(state["starts"])
        self._obs = self._reset_all()
        exact = np.full(self._envs, self._environment.seedable)
        self._first = starts == len(actions)
        if self._environment.seedable:
            exact &= self._replay(self._obs, actions, starts)
        for i in range(self._envs):
            exact[i] &= np.array_equal(
                observations.digest(observations.read(self._obs, i)), state["digests"][i]
            )
        self._history.restore(actions, starts)
        for i in np.flatnonzero(~exact).tolist():
            self._history.begin(i)
            self._first[i] = True
            self._episodes[i] += 1
            self._reset(i, self._obs, i)
        return bool(exact.all())

    def _replay(self, obs: Obs, actions: Array, starts: Array) -> Array:
        """Step through ``actions`` [S, B, *act], freshly reset, and leave the last observations in ``obs``.

        Sub-environments are stepped together but began their episodes at different steps: what one does
        before its own start is thrown away by the reset there. Returns [B] bool: none ended for good early.
        """
        exact = np.ones(self._envs, np.bool_)
        for s, action in enumerate(actions):
            step = self._environment.step(action)
            observations.write(obs, slice(None), step.obs)
            if self._stacks is not None:
                self._stacks.push(step.obs)
            ended = np.asarray(step.terminated) | np.asarray(step.truncated)
            begins = starts == s + 1
            for i in np.flatnonzero(ended | begins).tolist():
                goes_on = ended[i] and self._goes_on(i)
                exact[i] &= not ended[i] or goes_on or starts[i] > s
                if begins[i] and goes_on:
                    self._environment.reset(i, self._seed(i))  # only the next reset leaves the game before
                self._reset(i, obs, i)
            self._first = begins | ended
        return exact

    def _reset_all(self) -> Obs:
        """Begin an episode of every sub-environment; its first observations [B, *obs]."""
        obs = observations.reset_all(self._environment, self._seed)
        if self._stacks is not None:
            self._stacks.fill(obs)
        return obs

    def _reset(self, index: int, obs: Obs, place: Any) -> None:
        """Begin an episode of sub-environment ``index``; its first observation goes to ``obs[place]``."""
        row = self._environment.reset(index, self._seed(index))
        observations.write(obs, place, row)
        if self._stacks is not None:
            self._stacks.begin(index, row)

    def _seed(self, index: int) -> int:
        return self._streams.episode_seed(index, int(self._episodes[index]))


def _never(index: int) -> bool:
    """Where the environment does not say otherwise, an episode that ended does not go on."""
    return False


def _check_sample(sample: Any, envs: int) -> None:
    """Raises PluginError where ``sample`` is no ActionSample or an extra has not one entry per sub-environment."""
    if not isinstance(sample, ActionSample):
        raise PluginError(f"the policy's sample_action returned {type(sample).__name__}, not an ActionSample")
    for name, value in sample.extras.items():
        if np.shape(value)[:1] != (envs,):
            text = (
                f"the policy's extra {name!r} has shape {np.shape(value)}: its first axis must be B = {envs}"
            )
            raise PluginError(text)


def _rows(length: int, value: Array) -> Array:
    """Storage [T, *shape] for values of one step."""
    value = np.asarray(value)
    return np.empty((length, *value.shape), value.dtype)
