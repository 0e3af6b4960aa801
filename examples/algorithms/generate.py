"""Writes this folder's templates from the models that check configurations: every key, described, with its default. ::

    python examples/algorithms/generate.py

A test compares the files with what would be written now.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.api import load_object
from omnirl.cli.parameters import section_model, yaml_text

FOLDER = Path(__file__).parent
_CARTPOLE, _PENDULUM = "CartPole-v1 --steps 100000", "Pendulum-v1 --steps 20000"
_ANY, _DISCRETE, _BOUNDED = "discrete and continuous", "discrete", "bounded continuous"


class Template(NamedTuple):
    """A file: whose keys, for which actions, an environment to try it on, and what of it is not the default."""

    algorithm: str
    title: str
    actions: str
    trial: str
    changes: Mapping[str, Any] = {}
    note: str = "every key with its default"


TEMPLATES = {
    "ppo": Template("ppo", "PPO", _ANY, _CARTPOLE),
    "a2c": Template("a2c", "A2C", _ANY, "CartPole-v1 --steps 500000"),
    "impala": Template("impala", "IMPALA", _ANY, "CartPole-v1 --steps 500000"),
    "dqn": Template("dqn", "DQN", _DISCRETE, _CARTPOLE),
    "ddqn": Template("ddqn", "Double DQN", _DISCRETE, _CARTPOLE),
    "dueling_dqn": Template("dueling_dqn", "Dueling DQN", _DISCRETE, _CARTPOLE),
    "per_dqn": Template("per_dqn", "Double DQN with prioritized replay", _DISCRETE, _CARTPOLE),
    "c51": Template("c51", "C51", _DISCRETE, _CARTPOLE),
    "qr_dqn": Template("qr_dqn", "QR-DQN", _DISCRETE, _CARTPOLE),
    "ddpg": Template("ddpg", "DDPG", _BOUNDED, _PENDULUM),
    "td3": Template("td3", "TD3", _BOUNDED, _PENDULUM),
    "sac": Template("sac", "SAC", _BOUNDED, _PENDULUM),
    "sac-discrete": Template(
        "sac",
        "SAC",
        _DISCRETE,
        _CARTPOLE,
        changes={
            "learner.steps_per_update": 2,
            "memory.capacity": 100_000,
            "memory.batch_size": 64,
            "memory.unroll_length": 32,
            "network.hidden_sizes": (64, 64),
        },
        note="every key, with small networks and batches, which are enough for CartPole",
    ),
    "tqc": Template("tqc", "TQC", _BOUNDED, _PENDULUM),
}
"""By the file's name."""


def template_text(name: str) -> str:
    """What ``<name>.yaml`` is to hold. KeyError where a changed key is none of the algorithm's."""
    template = TEMPLATES[name]
    spec = next(spec for spec in ALGORITHMS if spec.name == template.algorithm)
    changes = dict(template.changes)
    body = list(_section(load_object(spec.config)(), changes, "", indent="  "))
    if changes:
        raise KeyError(f"{template.algorithm} has no {', '.join(changes)}")
    unset = " (null: unset)" if any(line.endswith(": null") for line in body) else ""
    head = [
        f"# {template.title}, for {template.actions} actions: {template.note}{unset}.",
        "#",
        f"#   omnirl train examples/algorithms/{name}.yaml --env {template.trial}",
        "agent:",
        f"  module: {template.algorithm}",
        "modules:",
    ]
    return "\n".join([*head, *body]) + "\n"


def _section(defaults: BaseModel, changes: dict[str, Any], prefix: str, indent: str) -> Iterator[str]:
    """The lines of a section: each key below its description. What is taken goes out of ``changes``."""
    for name, field in type(defaults).model_fields.items():
        key, value = field.alias or name, getattr(defaults, name)
        if section_model(field) is not None and isinstance(value, BaseModel):
            yield f"{indent}{key}:"
            yield from _section(value, changes, f"{prefix}{key}.", indent + "  ")
            continue
        yield from textwrap.wrap(
            field.description or "",
            width=118,
            initial_indent=f"{indent}# ",
            subsequent_indent=f"{indent}# ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield f"{indent}{key}: {yaml_text(changes.pop(prefix + key, value))}"


def main() -> None:
    """Write all files."""
    for name in TEMPLATES:
        (FOLDER / f"{name}.yaml").write_text(template_text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
