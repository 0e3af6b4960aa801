"""Checks of acting and of the weights that travel to it."""

from __future__ import annotations

from functools import partial

import numpy as np

from omnirl.api.specs import DictSpec, EnvSpec
from omnirl.testing import trees
from omnirl.testing.algorithm_bench import AlgorithmBench
from omnirl.testing.fakes import check_action, check_legal
from omnirl.testing.noise import Noise
from omnirl.testing.suite import disturb, raises, skip


class ActingChecks(AlgorithmBench):
    """The policy acts within the space, on its arguments alone, and as the learner says."""

    def test_actions_lie_in_the_space(self, env_spec: EnvSpec) -> None:
        """Shape, dtype and range of both kinds of action, and one row of each extra per environment."""
        run = self.miniature(env_spec)
        run.policy.set_weights(run.weights())
        obs = self.observations(env_spec)
        check_action(run.policy.choose_action(obs, self.context()), env_spec.action, self.num_envs)
        sample = run.policy.sample_action(obs, self.context())
        check_action(sample.action, env_spec.action, self.num_envs)
        for name, value in sample.extras.items():
            assert np.shape(value)[:1] == (self.num_envs,), f"extra {name!r} has shape {np.shape(value)}"

    def test_illegal_actions_are_never_taken(self, env_spec: EnvSpec) -> None:
        """Where observations have an ``action_mask``, neither kind of action is ever one that it forbids."""
        if not isinstance(env_spec.observation, DictSpec) or env_spec.observation.mask is None:
            skip("nothing is masked")
        run = self.miniature(env_spec).run(2)
        for seed, obs in enumerate(self.many_observations(env_spec, 50)):
            context = self.context(seed)
            for action in (
                run.policy.choose_action(obs, context),
                run.policy.sample_action(obs, context).action,
            ):
                check_legal(action, obs, env_spec.action)

    def test_acting_depends_on_its_arguments_alone(self, env_spec: EnvSpec) -> None:
        """``choose_action`` is deterministic, ``sample_action`` draws from ``act.rng`` alone, and neither writes
        into the observations."""
        weights, obs = self.miniature(env_spec).run(1).weights(), self.observations(env_spec)
        results, before = [], trees.copied(obs)
        for attempt in range(2):
            disturb(attempt)
            policy = self.policy(env_spec)
            policy.set_weights(weights)
            sample = policy.sample_action(obs, self.context(seed=5))
            chosen = policy.choose_action(obs, self.context(seed=attempt))
            results.append({"sampled": sample.action, "extras": dict(sample.extras), "chosen": chosen})
        trees.assert_same(obs, before, "after acting, the observations given to the policy: one")
        trees.assert_same(results[1], results[0], "the same call's")

    def test_an_update_changes_the_weights(self, env_spec: EnvSpec) -> None:
        """Three updates on random data move at least one number that is no counter."""
        run = self.miniature(env_spec)
        before = run.weights()
        after = run.run(3).weights()
        assert set(after) == set(before), f"the names changed from {sorted(before)} to {sorted(after)}"
        floats = [name for name, array in before.items() if array.dtype.kind == "f"]
        moved = [name for name in floats if not trees.same(after[name], before[name])]
        assert moved, f"three updates changed none of {floats}"

    def test_weights_are_taken_strictly(self, env_spec: EnvSpec) -> None:
        """A missing or an extra name is a KeyError: else half a network would act unnoticed."""
        weights, policy = self.miniature(env_spec).weights(), self.policy(env_spec)
        policy.set_weights(weights)
        for name in weights:
            less = {key: value for key, value in weights.items() if key != name}
            assert raises(partial(policy.set_weights, less), KeyError), f"{name!r} was not missed"
        more = {**weights, "no_such_weight": np.zeros(1, np.float32)}
        assert raises(partial(policy.set_weights, more), KeyError), "an extra name was taken"

    def test_weights_carry_all_that_acting_needs(self, env_spec: EnvSpec) -> None:
        """A policy that is given only the last version acts as the one that was there all along: a normaliser's
        statistics travel with the weights."""
        run = self.miniature(env_spec, Noise(scale=7.0)).run(4)
        weights, obs = run.weights(), self.observations(env_spec)
        run.policy.set_weights(weights)
        fresh = self.policy(env_spec)
        fresh.set_weights(weights)
        for kind in ("choose_action", "sample_action"):
            old = getattr(run.policy, kind)(obs, self.context())
            new = getattr(fresh, kind)(obs, self.context())
            if kind == "sample_action":
                old, new = old.action, new.action
            trees.assert_same(new, old, f"{kind} with the same weights")

    def test_the_policy_acts_as_the_learner_says(self, env_spec: EnvSpec) -> None:
        """The policy's numpy arithmetic is that of the learner's network, normaliser included."""
        run = self.miniature(env_spec, Noise(scale=3.0)).run(4)
        policy = self.policy(env_spec, "evaluator")
        policy.set_weights(run.weights())
        for obs in self.many_observations(env_spec, 100):  # few discrete actions differ by a small mistake
            expected = self.greedy_action(run.learner, obs)
            if expected is None:
                skip("greedy_action(learner, obs) is not defined")
            chosen = policy.choose_action(obs, self.context())
            assert np.allclose(chosen, expected, rtol=1e-4, atol=1e-5), f"{chosen} is chosen, not {expected}"
