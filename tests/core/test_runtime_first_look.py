"""A plugin of the wrong form is told by name, in a line per misfit, before anything is learnt from it: no restart."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnirl.run
from omnirl.api import (
    ActionSample,
    ArraySpec,
    ContinuousAction,
    DictSpec,
    DiscreteAction,
    EnvSpec,
    MultiDiscreteAction,
    PluginError,
)
from omnirl.api.errors import DiskError, WorkersFailedError
from omnirl.loops.forms import observation_misfits, spec_misfits
from omnirl.testing import environments, toy
from omnirl.testing.inline import InlineEnvironment

BACKEND, ALGORITHM = "environment backend 'testing': ", "algorithm 'toy': "


def train(folder: Path) -> None:
    """Two updates of the toy algorithm with three sub-environments that observe [1] float32."""
    runner = {"ckpt_dir": str(folder), "max_updates": 2, "num_samplers": 1, "num_envs_per_sampler": 3}
    config = {
        "runner": {**runner, "num_evaluators": 1, "num_episodes": 1},
        "env": {"module": "omnirl.testing.environments", "id": "count", "length": 5},
        "agent": {"module": "omnirl.testing.algorithm"},
        "modules": {"memory": {"unroll_length": 8}},
    }
    omnirl.run.train(config, local=True)


def refused(folder: Path) -> tuple[str, ...]:
    """The lines of the PluginError that the run ends with."""
    with pytest.raises(PluginError) as caught:
        train(folder)
    return caught.value.lines


def of_step(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Steps whose fields are functions of what they should be."""

    def step(self: Any, action: Any) -> Any:
        right = original(self, action)
        return dataclasses.replace(
            right, **{name: change(getattr(right, name)) for name, change in changes.items()}
        )

    original = InlineEnvironment.step
    monkeypatch.setattr(InlineEnvironment, "step", step)


@pytest.mark.parametrize(
    ("changes", "misfits"),
    [
        ({"reward": lambda reward: 1.0}, ["reward has shape (), not (3,)"]),
        ({"reward": lambda reward: reward[:, None]}, ["reward has shape (3, 1), not (3,)"]),
        ({"terminated": lambda ended: False}, ["terminated has shape (), not (3,)"]),
        ({"truncated": lambda ended: None}, ["truncated is None, not an array of shape (3,)"]),
        (
            {"obs": lambda obs: obs[:1], "reward": lambda reward: reward.astype(str)},
            ["the observation has shape (1, 1), not (3, 1)", "reward is <U32, not float32"],
        ),
    ],
)
def test_a_step_of_the_wrong_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Any, misfits: list[str]
) -> None:
    of_step(monkeypatch, **changes)
    context = "step returns B rows; its spec and what it returns must agree: "
    assert refused(tmp_path) == tuple(f"{BACKEND}{context}{misfit}" for misfit in misfits)


def test_numbers_of_another_kind_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole rewards, ends that are 0 or 1, lists: nothing is lost where they become the arrays of a rollout."""
    whole = {name: lambda array: array.astype(int).tolist() for name in ("reward", "terminated", "truncated")}
    of_step(monkeypatch, **whole, obs=lambda obs: obs.astype(np.float64))
    train(tmp_path)


@pytest.mark.parametrize(
    ("returned", "misfit"),
    [
        (lambda row: np.stack([row] * 3), "the observation has shape (3, 1), not (1,)"),
        (lambda row: (row, {}), "the observation is a tuple, not an array of shape (1,)"),
    ],
)
def test_a_reset_that_returns_more_than_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, returned: Any, misfit: str
) -> None:
    original = InlineEnvironment.reset
    monkeypatch.setattr(InlineEnvironment, "reset", lambda *args: returned(original(*args)))
    context = "reset returns one row; its spec and what it returns must agree: "
    assert refused(tmp_path) == (f"{BACKEND}{context}{misfit}",)


@pytest.mark.parametrize(
    ("build", "line"),
    [
        (
            lambda config, context: None,
            "build_env returned NoneType, which has no reset, step, close, seedable",
        ),
        (
            lambda config, context: environments.build_env(config, dataclasses.replace(context, num_envs=1)),
            "build_env was asked for 3 sub-environments, num_envs says 1",
        ),
    ],
)
def test_an_environment_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Any, line: str
) -> None:
    monkeypatch.setattr(environments, "PROPS", dataclasses.replace(environments.PROPS, build_env=build))
    assert refused(tmp_path) == (BACKEND + line,)


@pytest.mark.parametrize(
    ("sample", "line"),
    [
        (lambda s: ActionSample(s.action[:, None]), "its policy: the action has shape (3, 1), not (3,)"),
        (lambda s: ActionSample(s.action.astype(float)), "its policy: the action is float64, not int64"),
    ],
)
def test_actions_of_the_wrong_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: Any, line: str
) -> None:
    original = toy.ToyPolicy.sample_action
    monkeypatch.setattr(toy.ToyPolicy, "sample_action", lambda *args: sample(original(*args)))
    assert refused(tmp_path) == (ALGORITHM + line,)


@pytest.mark.parametrize(
    ("sample", "line"),
    [
        (lambda s: s.action, "the policy's sample_action returned ndarray, not an ActionSample"),
        (
            lambda s: ActionSample(s.action, {"p": np.ones(2)}),
            "the policy's extra 'p' has shape (2,): its first axis must be B = 3",
        ),
    ],
)
def test_samples_of_the_wrong_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: Any, line: str
) -> None:
    original = toy.ToyPolicy.sample_action
    monkeypatch.setattr(toy.ToyPolicy, "sample_action", lambda *args: sample(original(*args)))
    assert refused(tmp_path) == (line,)


@pytest.mark.parametrize(
    ("weights", "line"),
    [
        (
            lambda arrays: list(arrays),
            "the learner's weights are a list, not a mapping of names to numpy arrays",
        ),
        (
            lambda arrays: {name: array.tolist() for name, array in arrays.items()},
            "the learner's weights: 'weight' is a list, not a numpy array of numbers",
        ),
        (
            lambda arrays: {**arrays, "label": np.array(["a"], object)},
            "the learner's weights: 'label' is a object array, not a numpy array of numbers",
        ),
    ],
)
def test_weights_that_are_no_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weights: Any, line: str
) -> None:
    original = toy.ToyLearner.get_weights
    monkeypatch.setattr(toy.ToyLearner, "get_weights", lambda self: weights(original(self)))
    assert refused(tmp_path) == (line,)


def test_a_metric_that_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy.ToyLearner, "metrics", lambda self: {"batch_mean": "none"})
    assert refused(tmp_path) == ("the figure 'batch_mean' for log.csv is 'none', not a number",)


def test_an_evaluations_figure_without_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = dataclasses.replace(environments.PROPS, aggregate_evaluations=lambda episodes: {"solved": 1.0})
    monkeypatch.setattr(environments, "PROPS", odd)
    (line,) = refused(tmp_path)
    assert line.startswith("evaluations give the figures solved, which EnvSpec.eval_metrics does not name")


def test_a_learner_that_raises_is_told_with_its_own_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learn(self: Any, batch: Any, clock: Any) -> None:
        raise ZeroDivisionError("nothing in the batch")

    monkeypatch.setattr(toy.ToyLearner, "learn", learn)
    with pytest.raises(WorkersFailedError) as caught:
        train(tmp_path)
    lines = caught.value.lines
    assert lines[0] == "the learner failed: ZeroDivisionError: nothing in the batch"
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == "ZeroDivisionError: nothing in the batch"


def test_a_state_that_no_checkpoint_can_hold_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = toy.ToyLearner.state_dict
    odd = {"optimizer": [{"seen": {1, 2}}]}
    monkeypatch.setattr(toy.ToyLearner, "state_dict", lambda self: {**original(self), **odd})
    with pytest.raises(
        DiskError, match="TypeError: what is to be saved holds a set at learner/optimizer/0/seen:"
    ):
        train(tmp_path)


# ---------------------------------------------------------------- before a worker starts


@pytest.mark.parametrize(
    ("functions", "first"),
    [
        (environments.build_env, "omnirl.testing.environments:PROPS is a function, not an EnvBackend"),
        (
            dataclasses.replace(environments.PROPS, get_env_spec=lambda config: ((4,), 2)),
            "get_env_spec returned tuple, not an EnvSpec",
        ),
        (
            dataclasses.replace(environments.PROPS, get_env_spec=lambda config: 1 // 0),
            "get_env_spec raised ZeroDivisionError: integer division or modulo by zero",
        ),
    ],
)
def test_a_backend_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, functions: Any, first: str
) -> None:
    monkeypatch.setattr(environments, "PROPS", functions)
    assert refused(tmp_path)[0] == BACKEND + first


FOUR, TWO = ArraySpec((4,)), DiscreteAction(2)


@pytest.mark.parametrize(
    ("spec", "misfits"),
    [
        (EnvSpec(FOUR, TWO), []),
        (EnvSpec(DictSpec((("x", FOUR),)), MultiDiscreteAction((2, 3))), []),
        (EnvSpec(FOUR, ContinuousAction((-1.0,), (float("inf"),))), []),
        (EnvSpec(DictSpec((("x", FOUR), ("nothing", ArraySpec((0,))))), TWO), []),
        (EnvSpec(DictSpec(()), TWO), ["an observation of no numbers at all"]),
        (EnvSpec(4, TWO), ["the observation as int, not an ArraySpec or a DictSpec of them"]),  # type: ignore[arg-type]
        (EnvSpec(FOUR, 2), ["2 as action, not a DiscreteAction, MultiDiscreteAction or ContinuousAction"]),  # type: ignore[arg-type]
        (
            EnvSpec(ArraySpec(4, float, "flat"), DiscreteAction(0)),  # type: ignore[arg-type]
            [
                "the observation with the shape 4, which is not a tuple of whole numbers",
                "the observation with the dtype <class 'float'>, which is not the name of one, such as 'float32'",
                "the observation with the layout 'flat', which is none of vector, image",
                "an action of n = 0 choices, which is not a whole number from 1",
            ],
        ),
        (
            EnvSpec(ArraySpec((3, 0)), ContinuousAction((), ())),
            [
                "an observation of no numbers at all",
                "an action from low = () to high = (), which are not bounds of one size",
            ],
        ),
        (
            EnvSpec(DictSpec((("x", ArraySpec((4,), "flaot32")),)), ContinuousAction((1.0,), (-1.0,))),
            [
                "the observation 'x' with the dtype 'flaot32', which is not the name of one, such as 'float32'",
                "an action from low = (1.0,) to high = (-1.0,), which are not bounds of one size",
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_spec_is_told_all_at_once(spec: Any, misfits: list[str]) -> None:
    assert list(spec_misfits(spec)) == misfits


def test_a_mask_of_int8_is_no_mask() -> None:
    """Used as it is, it would pick rows by number."""
    spec = DictSpec((("x", FOUR), ("action_mask", ArraySpec((2,), "bool"))))
    obs = {"x": np.zeros(4, np.float32), "action_mask": np.ones(2, np.int8)}
    assert list(observation_misfits("obs", obs, spec, ())) == ["obs 'action_mask' is int8, not bool"]
    assert list(observation_misfits("obs", {**obs, "action_mask": [True, False]}, spec, ())) == []
    assert list(observation_misfits("obs", {"x": obs["x"]}, spec, ())) == [
        "obs has entries named ['x'], not ['action_mask', 'x']"
    ]
