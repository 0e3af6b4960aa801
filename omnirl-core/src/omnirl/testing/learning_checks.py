"""Checks of updates and of the states that they go on from."""

from __future__ import annotations

import numpy as np

from omnirl.api.environment import EnvContext
from omnirl.api.errors import CheckpointError
from omnirl.api.specs import EnvSpec
from omnirl.testing import trees
from omnirl.testing.algorithm_bench import AlgorithmBench
from omnirl.testing.environments import PropConfig, build_env, get_env_spec
from omnirl.testing.miniature import Miniature
from omnirl.testing.noise import Noise
from omnirl.testing.spaces import resized
from omnirl.testing.suite import disturb, raises, skip


class LearningChecks(AlgorithmBench):
    """The learner learns, repeats itself, survives odd data and goes on exactly."""

    def test_states_go_on_bit_for_bit(self, env_spec: EnvSpec) -> None:
        """Saved after two updates and loaded into new objects, the next two are those of a run that never
        stopped; and saving changes nothing."""
        unbroken = self.miniature(env_spec).run(4)
        saved = self.miniature(env_spec).run(2)
        state = saved.state_dict()
        trees.assert_plain(state, "the state")
        kept = trees.through_a_checkpoint(state)
        saved.run(2)
        trees.assert_same(trees.through_a_checkpoint(state), kept, "a state that was saved before: its")
        trees.assert_same(saved.state_dict(), unbroken.state_dict(), "after a save, the state")
        restored = self.miniature(env_spec).load_state_dict(kept).run(2)
        trees.assert_same(restored.weights(), unbroken.weights(), "after a restart, the weights")
        trees.assert_same(restored.state_dict(), unbroken.state_dict(), "after a restart, the state")
        trees.assert_same(restored.metrics, unbroken.metrics[2:], "after a restart, the metrics")

    def test_the_same_run_twice(self, env_spec: EnvSpec) -> None:
        """The same clock and seeds give the same bits, whatever the process drew elsewhere."""
        states = []
        for attempt in range(2):
            disturb(attempt)
            run = self.miniature(env_spec).run(3)
            states.append({"weights": run.weights(), "state": run.state_dict(), "metrics": run.metrics})
        trees.assert_same(states[1], states[0], "the second run's")

    def test_a_state_of_other_spaces_is_refused(self, env_spec: EnvSpec) -> None:
        """A learner of four features does not take the state of one of three; with what it raises, resuming ends in
        one line."""
        state = self.miniature(env_spec).run(1).learner.state_dict()
        learner = self.miniature(resized(env_spec)).learner
        expected = (CheckpointError, KeyError, ValueError, TypeError)
        assert raises(lambda: learner.load_state_dict(state), expected), "the state of other spaces was taken"

    def test_nothing_becomes_nan(self, env_spec: EnvSpec, noise: Noise) -> None:
        """Odd but legal data, such as episodes of one step, leave weights and metrics finite."""
        run = self.miniature(env_spec, noise).run(3)
        found = [*trees.nonfinite(run.weights(), "weights")]
        for i, metrics in enumerate(run.metrics):
            found += trees.nonfinite(metrics, f"metrics of update {i + 1}")
        assert not found, f"not finite: {', '.join(found)}"

    def test_nan_is_survived_and_counted(self, env_spec: EnvSpec) -> None:
        """Updates on NaN rewards leave the weights finite and show in ``nonfinite_in_row``."""
        run = self.miniature(env_spec, Noise(reward=float("nan"))).run(2)
        found = [*trees.nonfinite(run.weights(), "weights")]
        assert not found, f"after an update on NaN rewards not finite: {', '.join(found)}"
        in_row = run.learner.nonfinite_in_row
        assert in_row == 2, f"nonfinite_in_row is {in_row} after two updates on NaN"

    def test_arrays_may_be_read_only(self, env_spec: EnvSpec) -> None:
        """Whatever comes out of Ray cannot be written to; learning from it gives the same weights."""
        expected = self.miniature(env_spec).run(2).weights()
        found = self.miniature(env_spec, frozen=True).run(2).weights()
        trees.assert_same(found, expected, "learning from read-only arrays: the weights")

    def test_the_metrics_are_those_that_were_announced(self, env_spec: EnvSpec) -> None:
        """log.csv's columns are fixed before the first row, by ``metric_names``."""
        run = self.miniature(env_spec).run(2)
        for metrics in run.metrics:
            assert set(metrics) == set(self.spec.metric_names), (
                f"metrics() gave {sorted(metrics)}, metric_names says {sorted(self.spec.metric_names)}"
            )
            assert all(isinstance(value, float) for value in metrics.values()), f"not all floats: {metrics}"
        idle = set(run.learner.metrics())
        assert idle <= set(self.spec.metric_names), f"without an update metrics() gave {sorted(idle)}"

    def test_termination_is_worth_nothing(self) -> None:
        """Three rewards of 1 and a terminal state are worth 2.71 (gamma 0.9): no value is taken from beyond."""
        found = self._learned("probe_p7", 0.0, self.probe_updates)
        assert abs(found - 2.71) <= self.probe_tolerance, (
            f"the value is {found:.2f}, not 2.71 (10 where the terminal state is bootstrapped from)"
        )

    def test_truncation_is_no_end(self) -> None:
        """The same rewards, cut after three steps, are worth 10: the value of the final observation is added."""
        found = self._learned("probe_p6", 0.0, 2 * self.probe_updates)
        assert abs(found - 10.0) <= 10 * self.probe_tolerance, (
            f"the value is {found:.2f}, not 10 (2.71 or less where truncation is taken for an end)"
        )

    def _learned(self, env_id: str, obs: float, updates: int) -> float:
        discrete = "discrete" in self.spec.supports.actions
        env = PropConfig(id=env_id if discrete else f"{env_id}_continuous")
        environment = build_env(env, EnvContext("sampler", 0, self.num_envs))
        run = Miniature(
            self.spec, self.probe_modules, get_env_spec(env), environment, total_updates=updates, seed=1
        )
        value = self.value(run.learner, np.full((1, 1), obs, np.float32))
        if value is None:
            skip("value(learner, obs) is not defined")
        run.run(updates)
        learned = self.value(run.learner, np.full((1, 1), obs, np.float32))
        return float(np.asarray(learned).ravel()[0])
