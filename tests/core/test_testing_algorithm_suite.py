"""The toy passes AlgorithmSuite; a toy with one defect fails the check that is there for it, in words that name it."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from omnirl.api import ActionSample, ArraySpec, DictSpec, DiscreteAction, EnvSpec, Supports
from omnirl.testing import AlgorithmSuite, spaces
from omnirl.testing.algorithm import ALGORITHM
from omnirl.testing.algorithm_bench import EDGES
from omnirl.testing.fakes import FakePolicy

FAKES = str(Path(__file__).parent / "fakes")


class TestToy(AlgorithmSuite):
    spec = ALGORITHM


class TestToyWithReplay(AlgorithmSuite):
    spec = ALGORITHM
    modules = {"memory": {"kind": "replay"}}  # noqa: RUF012


def checks(suite: type) -> list[str]:
    return [name for name in dir(suite) if name.startswith("test_")]


def run_check(suite: type, name: str, tmp_path: Path) -> None:
    """Run one check as pytest does: over all the cases that its arguments ask for."""
    arguments = {"env_spec": suite().env_specs().values(), "noise": EDGES.values()}
    arguments["tmp_path"] = [tmp_path]
    taken = [key for key in inspect.signature(getattr(suite, name)).parameters if key != "self"]
    for values in itertools.product(*(arguments[key] for key in taken)):
        getattr(suite(), name)(**dict(zip(taken, values, strict=True)))


def with_parts(**parts: str) -> type[AlgorithmSuite]:
    class Suite(AlgorithmSuite):
        spec = dataclasses.replace(ALGORITHM, **parts)
        probe_updates = 60

        def value(self, learner, obs):
            values = getattr(learner, "values", None)
            return None if values is None else np.array([values.get(float(obs[0, 0]), 0.0)])

    return Suite


DEFECTS = [
    ("every_part_resolves", {"memory": "omnirl.testing.toy:lost"}, "has no 'lost'"),
    ("every_part_resolves", {"config": "omnirl.testing.toy:toy_memory"}, "not a class"),
    ("every_part_resolves", {"metric_names": ("loss", "loss")}, "twice"),
    ("every_key_is_described", {"config": "broken_toys:SilentConfig"}, "gamma"),
    ("acting_and_counting_need_no_torch", {"policy": "heavy_toy:ToyPolicy"}, "import torch"),
    ("the_four_numbers_pace_a_run", {"data_flow": "broken_toys:fractional_flow"}, "not whole numbers"),
    ("actions_lie_in_the_space", {"policy": "broken_toys:WrongDtype"}, "is float64, not int64"),
    ("actions_lie_in_the_space", {"policy": "broken_toys:OneExtraForAll"}, "'stamp' has shape"),
    ("acting_depends_on_its_arguments_alone", {"policy": "broken_toys:GlobalNoise"}, "sampled"),
    ("acting_depends_on_its_arguments_alone", {"policy": "broken_toys:RandomChoice"}, "chosen"),
    ("acting_depends_on_its_arguments_alone", {"policy": "broken_toys:InPlace"}, "observations given"),
    ("an_update_changes_the_weights", {"learner": "broken_toys:Stuck"}, "changed none of ['weight']"),
    ("weights_are_taken_strictly", {"policy": "broken_toys:Lenient"}, "was not missed"),
    ("weights_are_taken_strictly", {"policy": "broken_toys:LenientAboutMore"}, "an extra name was taken"),
    ("weights_carry_all_that_acting_needs", {"policy": "broken_toys:OwnStatistics"}, "same weights"),
    ("states_go_on_bit_for_bit", {"learner": "broken_toys:Forgetful"}, "after a restart"),
    ("states_go_on_bit_for_bit", {"learner": "broken_toys:DisturbedBySaving"}, "after a save"),
    ("states_go_on_bit_for_bit", {"learner": "broken_toys:KeepsItsState"}, "saved before"),
    ("states_go_on_bit_for_bit", {"learner": "broken_toys:StateOfObjects"}, "['generator'] is Generator"),
    ("the_same_run_twice", {"learner": "broken_toys:GloballyRandom"}, "second run's"),
    ("a_state_of_other_spaces_is_refused", {"learner": "broken_toys:TakesAnyState"}, "was taken"),
    ("nothing_becomes_nan", {"learner": "broken_toys:DividesByDeviation"}, "weights['weight']"),
    ("nan_is_survived_and_counted", {"learner": "broken_toys:LearnsFromNaN"}, "weights['weight']"),
    ("nan_is_survived_and_counted", {"learner": "broken_toys:DoesNotCountNaN"}, "nonfinite_in_row is 0"),
    ("arrays_may_be_read_only", {"learner": "broken_toys:WritesIntoRollouts"}, "read-only"),
    ("the_metrics_are_those_that_were_announced", {"learner": "broken_toys:UnannouncedMetric"}, "surprise"),
    ("termination_is_worth_nothing", {"learner": "broken_toys:NoTermination"}, "not 2.71"),
    ("truncation_is_no_end", {"learner": "broken_toys:TruncationAsEnd"}, "not 10"),
    ("agent_files_come_back", {"agent_file": "broken_toys:ROUNDING"}, "is float16"),
    ("garbage_is_no_agent_file", {"agent_file": "broken_toys:TRUSTING"}, "was loaded"),
    ("garbage_is_no_agent_file", {"agent_file": "broken_toys:PICKLED"}, "code in the file was run"),
]


@pytest.mark.parametrize(("check", "parts", "words"), DEFECTS, ids=lambda value: str(value)[:60])
def test_a_defect_fails_its_check(check, parts, words, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(FAKES)
    with pytest.raises((AssertionError, AttributeError, ValueError)) as caught:
        run_check(with_parts(**parts), f"test_{check}", tmp_path)
    assert words in str(caught.value)


def test_a_policy_that_disagrees_with_the_learner_fails(tmp_path):
    class Suite(AlgorithmSuite):
        spec = ALGORITHM

        def greedy_action(self, learner, obs):
            scores = obs @ learner.get_weights()["weight"]
            return scores.argmin(axis=1) if scores.shape[1] == 3 else np.tanh(-scores)

    with pytest.raises(AssertionError, match="is chosen, not"):
        run_check(Suite, "test_the_policy_acts_as_the_learner_says", tmp_path)


def test_a_policy_that_agrees_passes(tmp_path):
    class Suite(AlgorithmSuite):
        spec = ALGORITHM

        def greedy_action(self, learner, obs):
            scores = obs @ learner.get_weights()["weight"]
            return scores.argmax(axis=1) if scores.shape[1] == 3 else np.tanh(scores)

    run_check(Suite, "test_the_policy_acts_as_the_learner_says", tmp_path)


def test_a_learner_of_values_passes_both_probes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(FAKES)
    suite = with_parts(learner="broken_toys:TableLearner")
    run_check(suite, "test_termination_is_worth_nothing", tmp_path)
    run_check(suite, "test_truncation_is_no_end", tmp_path)


def test_a_space_that_is_not_refused_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(spaces, "check_spaces", lambda config, spec: None)
    with pytest.raises(AssertionError, match="multi_discrete actions is accepted"):
        run_check(TestToy, "test_what_it_supports_is_all_it_is_given", tmp_path)


def test_every_check_has_been_seen_to_fail():
    elsewhere = {"test_the_policy_acts_as_the_learner_says", "test_what_it_supports_is_all_it_is_given"}
    elsewhere.add("test_illegal_actions_are_never_taken")
    assert {f"test_{check}" for check, _, _ in DEFECTS} | elsewhere == set(checks(AlgorithmSuite))


def test_the_spaces_are_those_that_are_supported():
    assert set(TestToy().env_specs()) == {"discrete", "bounded_continuous", "continuous"}
    supports = dataclasses.replace(ALGORITHM.supports, actions=("bounded_continuous",))
    assert set(spaces.spaces_of(supports)) == {"bounded_continuous"}
    refused = spaces.refusals(ALGORITHM, {})
    assert set(refused) == {
        "multi_discrete actions",
        "image observations",
        "dict observations",
        "dict observations with an image",
        "discrete actions with a mask",
    }
    supports = Supports(("discrete", "multi_discrete"), ("vector", "image", "dict"), action_mask=True)
    assert set(spaces.spaces_of(supports)) == {
        "discrete",
        "multi_discrete",
        "dict",
        "dict with an image",
        "masked discrete",
        "masked multi_discrete",
    }


class BlindPolicy(FakePolicy):
    """Takes any action, whatever the mask says."""

    def choose_action(self, obs, act):
        return np.zeros(self._num_envs, np.int64)

    def sample_action(self, obs, act):
        return ActionSample(act.rng.integers(0, 3, self._num_envs))


@pytest.mark.parametrize("policy", [FakePolicy, BlindPolicy])
def test_a_policy_that_takes_illegal_actions_fails(policy, tmp_path):
    class Suite(TestToy):
        def env_specs(self):
            entries = (("x", ArraySpec((1,))), ("action_mask", ArraySpec((3,), "bool")))
            return {"masked": EnvSpec(DictSpec(entries), DiscreteAction(3))}

        def miniature(self, env_spec, noise=None, *, frozen=False):
            acting = policy(env_spec, self.num_envs)
            return SimpleNamespace(run=lambda updates: SimpleNamespace(policy=acting))

    if policy is FakePolicy:
        run_check(Suite, "test_illegal_actions_are_never_taken", tmp_path)
    else:
        with pytest.raises(AssertionError, match="action 0 is illegal: the mask is"):
            run_check(Suite, "test_illegal_actions_are_never_taken", tmp_path)
