"""The testing backend passes BackendSuite; a backend with one defect fails the check that is there for it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from omnirl.testing import BackendSuite
from omnirl.testing.environments import BACKEND, ENVIRONMENTS, PropConfig, build_single

FAKES = str(Path(__file__).parent / "fakes")
RANDOM = {"probe_p2", "probe_p5", "probe_c2", "two_step", "chain5", "pixels", "motion"}


class TestTestingBackend(BackendSuite):
    spec = BACKEND
    simulators = ("gymnasium",)
    steps = 60
    environments = {name: {"id": name} for name in ENVIRONMENTS if name not in ("bad", "sleepy")}  # noqa: RUF012

    def is_random(self, env):
        return env["id"] in RANDOM

    def reference(self, env):
        return build_single(PropConfig(**env))


class Chain5(BackendSuite):
    """What the defects are shown on: episodes that depend on seed and action, and end in both ways."""

    spec = BACKEND
    environments = {"chain": {"id": "chain5"}}  # noqa: RUF012

    def reference(self, env):
        return build_single(PropConfig(**env))


DEFECTS = [
    ("every_part_resolves", {"backend": "broken_backends:NO_BACKEND"}, "is object, not an EnvBackend"),
    ("every_part_resolves", {"config": "omnirl.testing.environments:build_env"}, "not a class"),
    ("every_key_is_described", {"config": "broken_backends:CarelessConfig"}, "description: id"),
    ("unknown_keys_are_refused", {"config": "broken_backends:CarelessConfig"}, "unknown key was taken"),
    ("rows_are_what_the_spec_says", {"backend": "broken_backends:DOUBLE"}, "is float64, not float32"),
    ("rows_are_what_the_spec_says", {"backend": "broken_backends:NAN"}, "not finite"),
    ("rows_are_what_the_spec_says", {"backend": "broken_backends:SHAPELESS"}, "the observation as int"),
    ("rows_are_what_the_spec_says", {"backend": "broken_backends:ANOTHER_SPEC"}, "the second time"),
    ("an_episode_depends_on_its_seed_alone", {"backend": "broken_backends:GLOBAL"}, "second environment"),
    ("an_episode_depends_on_its_seed_alone", {"backend": "broken_backends:COUPLED"}, "alone"),
    ("other_seeds_are_other_episodes", {"backend": "broken_backends:SEED"}, "the same episodes"),
    ("actions_are_clipped_and_left_alone", {"backend": "broken_backends:WRITES"}, "was changed in step"),
    ("actions_are_clipped_and_left_alone", {"backend": "broken_backends:UNCLIPPED"}, "out of bounds"),
    ("it_does_what_the_reference_does", {"backend": "broken_backends:REWARD"}, "reward and ends are"),
    ("it_can_be_closed", {"backend": "broken_backends:CLOSE"}, "closed already"),
    ("every_cell_of_a_rollout_is_a_real_transition", {"backend": "broken_backends:BOTH"}, "at once"),
    ("every_cell_of_a_rollout_is_a_real_transition", {"backend": "broken_backends:FINAL"}, "next_obs"),
    ("every_cell_of_a_rollout_is_a_real_transition", {"backend": "broken_backends:DUMMY"}, "obs"),
    ("rollouts_are_not_written_to_again", {"backend": "broken_backends:SAME"}, "an older rollout's reward"),
    ("the_collector_goes_on_exactly", {"backend": "broken_backends:FORGETS"}, "did not repeat"),
    ("the_loop_lets_the_policy_finish", {"backend": "broken_backends:UNFINISHED"}, "the extras"),
    ("the_loop_lets_the_policy_finish", {"backend": "broken_backends:STANDING"}, "env_steps"),
    ("evaluations_play_what_was_asked_for", {"backend": "broken_backends:FEW"}, "4 episodes were played"),
    ("evaluations_play_what_was_asked_for", {"backend": "broken_backends:OTHER_FIGURES"}, "surprise"),
]


def run_check(suite, name):
    method = getattr(suite(), f"test_{name}")
    takes = method.__code__.co_varnames[: method.__code__.co_argcount]
    method(*suite.environments.values()) if "env" in takes else method()


@pytest.mark.parametrize(("check", "parts", "words"), DEFECTS, ids=lambda value: str(value)[:60])
def test_a_defect_fails_its_check(check, parts, words, monkeypatch):
    monkeypatch.syspath_prepend(FAKES)
    run_check(Chain5, check)  # so that it is the defect that fails

    class Broken(Chain5):
        spec = dataclasses.replace(BACKEND, **parts)

    with pytest.raises((AssertionError, RuntimeError)) as caught:
        run_check(Broken, check)
    assert words in str(caught.value)


def test_a_model_that_imports_the_simulator_fails():
    class Heavy(Chain5):
        simulators = ("omnirl.testing.chains",)

    with pytest.raises(AssertionError, match=r"PropConfig imports omnirl\.testing\.chains"):
        run_check(Heavy, "files_are_checked_without_the_simulator")


def test_an_environment_whose_episodes_never_end_in_time_fails():
    class Short(Chain5):
        steps = 3
        environments = {"count": {"id": "count", "length": 4}}  # noqa: RUF012

    with pytest.raises(AssertionError, match="raise `steps`"):
        run_check(Short, "rows_are_what_the_spec_says")


def test_every_check_has_been_seen_to_fail():
    checks = {name for name in dir(BackendSuite) if name.startswith("test_")}
    elsewhere = {"test_files_are_checked_without_the_simulator"}
    assert {f"test_{check}" for check, _, _ in DEFECTS} | elsewhere == checks
