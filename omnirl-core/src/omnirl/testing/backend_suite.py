"""What every environment backend must do, as checks that a third party's tests subclass.

In a test file of your backend::

    from acme_envs.plugin import ACME          # the EnvBackendSpec
    from omnirl.testing import BackendSuite

    class TestAcme(BackendSuite):
        spec = ACME
        environments = {                       # the env section, without module, by a name of your choice
            "maze": {"id": "maze", "size": 5},
            "maze, vectorised": {"id": "maze", "size": 5, "vectorized": True},
        }

pytest then runs every check below on each of them. List one that ends by termination and one that is cut, one for
each kind of space, and one for each way that the backend steps several environments (a simulator that resets itself
in the same step, in the next one, or not at all): the rollouts must be the same.

Where you can say what really happens in an environment, say it: a few obvious lines that share nothing with your
backend, which every transition is then compared with ::

        def reference(self, env):              # the env section -> an object with reset and step, or None
            return SlowMaze(env["size"])       # reset(seed) -> obs; step(action) -> obs, reward, terminated, truncated

Letters: T steps, B sub-environments; ``*obs``, ``*act`` the spec's shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ValidationError

from omnirl.api.data import Array, Rollout
from omnirl.api.environment import EnvBackend
from omnirl.api.plugin import EnvBackendSpec, load_object
from omnirl.api.specs import ContinuousAction, EnvSpec
from omnirl.config.models import undescribed
from omnirl.loops.aggregate import aggregate
from omnirl.loops.collection import collect_loop
from omnirl.loops.evaluation import evaluation_loop
from omnirl.loops.forms import spec_misfits
from omnirl.testing import trees
from omnirl.testing.backend_bench import BackendBench, ends, newest_frames, observation_of
from omnirl.testing.fakes import FakePolicy, FakeStreams, check_observation
from omnirl.testing.suite import loaded_by, raises, skip


class BackendSuite(BackendBench):
    """Subclass it under a name that begins with ``Test``; set ``spec`` and ``environments``; see the module's
    docstring. The attributes and hooks are in :mod:`omnirl.testing.backend_bench`."""

    spec: ClassVar[EnvBackendSpec]

    # ------------------------------------------------------------------ the descriptor

    def test_every_part_resolves(self) -> None:
        """The import strings lead to a pydantic model and to an EnvBackend."""
        config = load_object(self.spec.config)
        assert isinstance(config, type), f"config is {config!r}, not a class"
        assert issubclass(config, BaseModel), f"config is {config!r}, not a pydantic model"
        backend = load_object(self.spec.backend)
        assert isinstance(backend, EnvBackend), f"backend is {type(backend).__name__}, not an EnvBackend"

    def test_every_key_is_described(self) -> None:
        """The description is what ``omnirl envs show`` prints and what the reference is made of."""
        missing = list(undescribed(load_object(self.spec.config)))
        assert not missing, f"keys without a description: {', '.join(missing)}"

    def test_files_are_checked_without_the_simulator(self) -> None:
        """Importing the configuration's model imports none of ``simulators``, nor torch nor ray."""
        heavy = ("torch", "ray", *self.simulators)
        code = f"from omnirl.api import load_object\nload_object({self.spec.config!r})"
        loaded = loaded_by(code, heavy)
        assert not loaded, f"{self.spec.config} imports {', '.join(loaded)}"

    def test_unknown_keys_are_refused(self, env: Mapping[str, Any]) -> None:
        """A slip of the pen in a file is found before anything starts."""
        model = load_object(self.spec.config)
        model.model_validate(dict(env))
        wrong = {**env, "no_such_key": 1}
        assert raises(lambda: model.model_validate(wrong), ValidationError), "an unknown key was taken"

    # ------------------------------------------------------------------ environments

    def test_rows_are_what_the_spec_says(self, env: Mapping[str, Any]) -> None:
        """Shapes, dtypes and finite numbers, at resets, steps and ends; and the spec is the same when asked again."""
        spec = self.env_spec(env)
        misfits = list(spec_misfits(spec))
        assert not misfits, f"get_env_spec gave {'; '.join(misfits)}"
        assert spec == self.env_spec(env), "get_env_spec gave something else the second time"
        steps = self.play(env)  # through a RecordingEnvironment, which checks shapes and dtypes
        found = [*trees.nonfinite({"obs": steps.obs, "final_obs": steps.final_obs}, "the environment's")]
        found += trees.nonfinite({"reward": steps.reward}, "the environment's")
        assert not found, f"not finite: {', '.join(found)}"
        assert steps.ended.any(), f"no episode ended in {self.steps} steps: raise `steps`"

    def test_an_episode_depends_on_its_seed_alone(self, env: Mapping[str, Any]) -> None:
        """The same seeds and actions repeat every row, in a second environment of any number of copies."""
        self._seedable(env)
        first = self.play(env)
        trees.assert_same(self.play(env).tree(), first.tree(), "a second environment's")
        alone = self.play(env, num_envs=1, actions=first.action[:, :1])
        trees.assert_same(alone.tree(), first.column(0), "the first of several, alone: its")

    def test_other_seeds_are_other_episodes(self, env: Mapping[str, Any]) -> None:
        """Sub-environments whose seeds differ do not live the same life."""
        if not self.is_random(env):
            skip("is_random(env) says that nothing here is drawn from the seed")
        steps = self.play(env, same_actions=True)
        lives = [steps.column(i) for i in range(self.num_envs)]
        assert any(not trees.same(life, lives[0]) for life in lives[1:]), "all seeds gave the same episodes"

    def test_actions_are_clipped_and_left_alone(self, env: Mapping[str, Any]) -> None:
        """Actions are in environment units; what lies outside the bounds is brought inside, in a copy."""
        spec = self.env_spec(env)
        given = self.play(env).given
        assert given == "kept", f"the array of actions was {given}"
        if not isinstance(spec.action, ContinuousAction) or not spec.action.bounded:
            return
        self._seedable(env)
        low, high = spec.action.bounds()
        shape = (self.steps, self.num_envs, *spec.action.shape)
        wide = (
            np.random.default_rng(0)
            .uniform(low - (high - low), high + (high - low), shape)
            .astype(np.float32)
        )
        inside = self.play(env, actions=np.clip(wide, low, high))
        trees.assert_same(
            self.play(env, actions=wide).tree(), inside.tree(), "with actions out of bounds, the"
        )

    def test_it_does_what_the_reference_does(self, env: Mapping[str, Any]) -> None:
        """Every observation, reward and end is that of the hand-written reference."""
        reference = self.reference(env)
        if reference is None:
            skip("reference(env) is not defined")
        steps = self.play(env, num_envs=1)
        seeds = iter(range(len(steps.reward) + 1))
        obs = reference.reset(next(seeds))
        for t, action in enumerate(steps.action[:, 0]):
            trees.assert_same(observation_of(steps.before, (t, 0)), obs, f"the observation before step {t}")
            obs, reward, terminated, truncated = reference.step(action)
            found = (steps.reward[t, 0], steps.terminated[t, 0], steps.truncated[t, 0])
            expected = (np.float32(reward), bool(terminated), bool(truncated))
            assert found == expected, f"step {t}: reward and ends are {found}, not {expected}"
            ended = terminated or truncated
            after = observation_of(steps.final_obs if ended else steps.obs, (t, 0))
            trees.assert_same(after, obs, f"the {'final ' if ended else ''}observation after step {t}")
            if ended:
                obs = reference.reset(next(seeds))

    def test_it_can_be_closed(self, env: Mapping[str, Any]) -> None:
        """Before the first reset, in the middle of an episode, and once more."""
        self.build(env).close()
        environment = self.build(env)
        environment.reset(0, 0)
        environment.close()
        environment.close()

    # ------------------------------------------------------------------ loops

    def test_every_cell_of_a_rollout_is_a_real_transition(self, env: Mapping[str, Any]) -> None:
        """What the collection loop stores is what stepping the environment by hand gives: no dummy rows, final
        observations in their place, an end is either terminated or truncated."""
        rollouts = self.collect(env)
        spec = self.env_spec(env)
        for rollout in rollouts:
            _check_form(rollout, spec, self.unroll_length, self.num_envs)
        if not self.build(env).seedable:
            skip("the environment is not seedable, so it cannot be stepped again by hand")
        action = np.concatenate([rollout.action for rollout in rollouts])
        steps = self.play(env, actions=action)
        found = {
            "obs": _joined([_rows(newest_frames(r.observations(), spec)) for r in rollouts]),
            "next_obs": _joined([newest_frames(r.next_obs(), spec) for r in rollouts]),
            "reward": np.concatenate([rollout.reward for rollout in rollouts]),
            "terminated": np.concatenate([rollout.terminated for rollout in rollouts]),
            "truncated": np.concatenate([rollout.truncated for rollout in rollouts]),
        }
        trees.assert_same(found, steps.transitions(), "the rollouts'")

    def test_rollouts_are_not_written_to_again(self, env: Mapping[str, Any]) -> None:
        """An environment may use its arrays again; a rollout that has been handed over stays as it is."""
        collector = self.collector(env)
        first = collector.collect(0, 0)
        before = trees.read_only(first)
        collector.collect(0, first.steps)
        for name in ("obs", "action", "reward", "terminated", "truncated", "first", "final_obs"):
            trees.assert_same(getattr(first, name), getattr(before, name), f"an older rollout's {name}")

    def test_the_collector_goes_on_exactly(self, env: Mapping[str, Any]) -> None:
        """Saved in the middle of episodes and loaded by new objects, it collects what it would have collected."""
        self._seedable(env)
        collector = self.collector(env)
        steps = sum(collector.collect(0, i).steps for i in range(2))
        state = dict(collector.state_dict())
        trees.assert_plain(state, "the state")
        kept = trees.through_a_checkpoint(state)
        expected = collector.collect(0, steps)
        restored = self.collector(env)
        assert restored.load_state_dict(kept), "load_state_dict says that the episodes did not repeat"
        found = restored.collect(0, steps)
        for name in ("obs", "first", "action", "reward", "terminated", "truncated", "final_obs", "final_at"):
            trees.assert_same(getattr(found, name), getattr(expected, name), f"after a restart, {name}")
        assert found.number == expected.number, f"rollout {found.number} follows, not {expected.number}"

    def test_the_loop_lets_the_policy_finish(self, env: Mapping[str, Any]) -> None:
        """A policy's ``finish`` is called once per rollout with all its extras and the actions, and what it returns is
        what the rollout carries; and ``act`` tells the policy where it is."""
        spec, backend = self.env_spec(env), load_object(self.spec.backend)
        policy = FinishingPolicy(spec, self.num_envs)
        loop = backend.collection_loop or partial(collect_loop, observation=spec.observation)
        collector = loop(self.build(env), policy, self.unroll_length, FakeStreams(target_steps=10_000))
        size = self.unroll_length * self.num_envs
        rollouts = [collector.collect(4, 100), collector.collect(5, 100 + size)]
        for i, rollout in enumerate(rollouts):
            assert set(rollout.extras) == {"finished"}, f"a rollout has the extras {sorted(rollout.extras)}"
            trees.assert_same(rollout.extras["finished"], rollout.action, "finish was given actions; they")
            told = (rollout.number, rollout.version, rollout.env_steps)
            assert told == (i, 4 + i, 100 + i * size), f"number, version and env_steps are {told}"
        steps = [act.env_steps for act in policy.contexts]
        expected = [100 + t * self.num_envs for t in range(2 * self.unroll_length)]
        assert steps == expected, f"act.env_steps was {steps}, not {expected}"
        first = np.stack([act.first for act in policy.contexts])
        trees.assert_same(first, np.concatenate([r.first[:-1] for r in rollouts]), "what act.first said")

    def test_evaluations_play_what_was_asked_for(self, env: Mapping[str, Any]) -> None:
        """Exactly n episodes, whose figures are those that ``EnvSpec.eval_metrics`` announces."""
        spec, backend = self.env_spec(env), load_object(self.spec.backend)
        played = []
        for _ in range(2):
            environment = self.build(env, "evaluator")
            policy = FakePolicy(spec, self.num_envs)
            loop = backend.evaluation_loop or partial(evaluation_loop, observation=spec.observation)
            episodes = list(loop(environment, policy, 5, FakeStreams()))
            environment.close()
            assert len(episodes) == 5, f"{len(episodes)} episodes were played, not 5"
            assert all(episode.length >= 1 for episode in episodes), "an episode has no step"
            figures = dict((backend.aggregate_evaluations or aggregate)(episodes))
            assert set(figures) == set(spec.eval_metrics), (
                f"the figures are {sorted(figures)}, eval_metrics says {sorted(spec.eval_metrics)}"
            )
            assert not list(trees.nonfinite(figures, "figures")), f"not finite: {figures}"
            played.append(figures)
        if environment.seedable:
            trees.assert_same(played[1], played[0], "the same evaluation again: its figures")

    def _seedable(self, env: Mapping[str, Any]) -> None:
        environment = self.build(env)
        seedable = environment.seedable
        environment.close()
        if not seedable:
            skip("the environment says that it is not seedable")


class FinishingPolicy(FakePolicy):
    """A fake policy whose extras become one, the actions that it was shown."""

    def finish(self, extras: Mapping[str, Array]) -> dict[str, Array]:
        """``{"finished": actions [T, B, *act]}``, copied."""
        assert set(extras) == {"version", "action"}, f"finish was given {sorted(extras)}"
        return {"finished": extras["action"].copy()}


def _check_form(rollout: Rollout, spec: EnvSpec, length: int, envs: int) -> None:
    """Shapes, dtypes, and that the flags agree with each other."""
    check_observation(rollout.observations(), spec.observation.stacked(), (length + 1, envs))
    check_observation(rollout.final_obs, spec.observation, (len(rollout.final_at),))
    for name, dtype in (("reward", "float32"), ("terminated", "bool"), ("truncated", "bool")):
        array = getattr(rollout, name)
        assert array.shape == (length, envs), f"{name} has shape {array.shape}, not {(length, envs)}"
        assert array.dtype == np.dtype(dtype), f"{name} is {array.dtype}, not {dtype}"
    both = np.argwhere(rollout.terminated & rollout.truncated).tolist()
    assert not both, f"terminated and truncated at once at {both}: terminated wins"
    ended = rollout.terminated | rollout.truncated
    assert rollout.first.shape == (length + 1, envs), f"first has shape {rollout.first.shape}"
    trees.assert_same(rollout.first[1:], ended, "first, one row down from the ends,")
    places, expected = sorted(map(tuple, rollout.final_at.tolist())), list(map(tuple, ends(ended)))
    assert places == expected, f"final_at is {places}, the ends are at {expected}"


def _rows(obs: Any) -> Any:
    return {name: array[:-1] for name, array in obs.items()} if isinstance(obs, Mapping) else obs[:-1]


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], Mapping):
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return np.concatenate(parts)
