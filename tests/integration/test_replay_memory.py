"""A replay that the machine has no room for is refused before anything starts, with exit code 6."""

from __future__ import annotations

from collections.abc import Callable

import pytest

ARGUMENTS = (
    "agent.module=dqn", "env.module=omnirl.testing.environments", "env.id=motion", "env.size=84", "env.frame_stack=4",
    "runner.max_steps=2000", "runner.num_samplers=1",
)  # fmt: skip


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """``room(count)``: the machine has so many bytes left."""

    def set_room(count: int) -> None:
        monkeypatch.setattr("omnirl.config.hardware.available_memory", lambda: count)

    return set_room


@pytest.mark.parametrize("command", [("train", "--local"), ("train",), ("config", "validate", "--deep")])
def test_a_million_pictures_need_seven_gigabytes(
    command: tuple[str, ...], room: Callable[[int], None], refused: Callable[..., list[str]]
) -> None:
    room(4 * 10**9)
    lines = refused(*command, *ARGUMENTS, "modules.memory.capacity=1000000", code=6)
    assert lines == [
        "override modules.memory.capacity: the replay needs 7.3 GB of memory; 4.0 GB are there: lower it from 1000000 "
        "to at most 518585"
    ]


def test_a_checkpoint_that_holds_the_replay_needs_it_twice(
    room: Callable[[int], None], refused: Callable[..., list[str]]
) -> None:
    room(10 * 10**9)
    arguments = (*ARGUMENTS, "modules.memory.capacity=1000000", "runner.save_memory=true")
    (line,) = refused("train", *arguments, "--local", code=6)
    assert "needs 14.7 GB of memory, half of them for the copy that a checkpoint is written from" in line


def test_the_default_capacity_is_named_without_a_place(
    room: Callable[[int], None], refused: Callable[..., list[str]]
) -> None:
    room(10**8)
    (line,) = refused("train", *ARGUMENTS, "--local", code=6)
    assert line.startswith(
        "modules.memory.capacity: the replay needs 0.7 GB of memory; 0.1 GB are there: lower it "
    )


@pytest.mark.parametrize("algorithm", ["ddqn", "per_dqn", "c51", "sac"])
def test_every_algorithm_with_a_replay_says_what_it_reserves(algorithm: str) -> None:
    from omnirl.algorithms.plugin import ALGORITHMS
    from omnirl.api import ArraySpec, ContinuousAction, DiscreteAction, EnvSpec, load_object

    spec = next(spec for spec in ALGORITHMS if spec.name == algorithm)
    action = ContinuousAction((-1.0,), (1.0,)) if algorithm == "sac" else DiscreteAction(2)
    config = load_object(spec.config).model_validate({"memory": {"capacity": 1000}})
    # Two observations of three floats, an action of 4 or 8 bytes, reward, discount: 36 bytes, or aligned 40.
    reserved = load_object(spec.memory).reserved(config, EnvSpec(ArraySpec((3,)), action))
    assert reserved == 1000 * (36 if algorithm == "sac" else 40)
