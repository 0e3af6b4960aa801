"""Every key of every algorithm does something: with another value a short run acts or learns otherwise."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.api import ContinuousAction, DiscreteAction, EnvSpec, PolicyContext
from omnirl.api.plugin import load_object
from omnirl.config.models import all_keys
from omnirl.loops.collection import collect_loop
from omnirl.testing.fakes import FakeStreams, vector_spec
from omnirl.testing.miniature import Miniature
from omnirl.testing.noise import Noise, NoiseEnvironment

SPECS = {spec.name: spec for spec in ALGORITHMS}
DISCRETE = vector_spec(3, DiscreteAction(3))
CONTINUOUS = vector_spec(3, ContinuousAction((-2.0, -1.0), (2.0, 3.0)))
VALUES = ("dqn", "ddqn", "dueling_dqn", "per_dqn", "c51", "qr_dqn")
ACTOR_CRITICS = ("ddpg", "td3", "sac", "tqc")

REPLAY = {"capacity": 200, "batch_size": 8, "warmup_steps": 32, "unroll_length": 4, "n_step": 2}
SMALL: dict[str, dict[str, Any]] = {
    **{
        name: {"memory": REPLAY, "learner": {"target_update_interval": 2, "steps_per_update": 8}}
        for name in VALUES
    },
    **{name: {"memory": REPLAY, "learner": {"steps_per_update": 8}} for name in ACTOR_CRITICS},
    "ppo": {"memory": {"unroll_length": 8}, "learner": {"minibatch_size": 8, "epochs": 3}},
    "a2c": {"memory": {"unroll_length": 8}},
    "impala": {"memory": {"unroll_length": 4, "rollouts_per_update": 2}},
}
"""What is small enough for a few updates, and moves everything in them."""

OTHER: dict[str, Any] = {
    "learner.adam_epsilon": 0.1,
    "learner.c_bar": 0.5,
    "learner.clip": 0.001,
    "learner.critic_lr": 0.05,
    "learner.critic_reduction": "mean",
    "learner.dropped_quantiles": 5,
    "learner.ent_coef": 0.7,
    "learner.epochs": 2,
    "learner.gae_lambda": 0.5,
    "learner.gamma": 0.5,
    "learner.initial_temperature": 0.2,
    "learner.kappa": 0.01,
    "learner.loss": "mse",
    "learner.lr": 0.05,
    "learner.max_grad_norm": 1e-3,
    "learner.minibatch_size": 4,
    "learner.next_action": "online",
    "learner.num_atoms": 11,
    "learner.num_quantiles": 7,
    "learner.optimizer": "adam",
    "learner.pg_rho_bar": 0.5,
    "learner.policy_delay": 3,
    "learner.rho_bar": 0.5,
    "learner.rmsprop_decay": 0.5,
    "learner.rmsprop_epsilon": 0.3,
    "learner.steps_per_update": 16,
    "learner.target_entropy": -7.0,
    "learner.target_entropy_ratio": 0.2,
    "learner.target_kl": 1e-12,
    "learner.target_noise": 0.9,
    "learner.target_noise_clip": 0.01,
    "learner.target_update_interval": 3,
    "learner.tau": 0.5,
    "learner.temperature": 0.3,
    "learner.temperature_lr": 0.05,
    "learner.v_max": 3.0,
    "learner.v_min": -3.0,
    "learner.value_clip": 1e-3,
    "learner.vf_coef": 3.0,
    "learner.vtrace_lambda": 0.5,
    "memory.alpha": 0.1,
    "memory.batch_size": 16,
    "memory.beta": 0.9,
    "memory.capacity": 64,
    "memory.n_step": 3,
    "memory.priority_epsilon": 5.0,
    "memory.rollouts_per_update": 1,
    "memory.unroll_length": 16,
    "memory.warmup_steps": 48,
    "network.activation": "elu",
    "network.critic_hidden_sizes": [5],
    "network.critic_layer_norm": True,
    "network.hidden_sizes": [5],
    "network.num_critics": 3,
    "network.num_quantiles": 7,
    "network.shared_trunk": True,
    "policy.epsilon": 0.9,
    "policy.ladder_alpha": 3.0,
    "policy.log_std_init": -2.0,
    "policy.noise.dt": 0.01,
    "policy.noise.std": 0.9,
    "policy.noise.theta": 0.9,
    "policy.random_steps": 0,
}
"""Another value than that of SMALL and the defaults; a switch is turned."""
BESIDE: dict[str, dict[str, Any]] = {
    "a2c-learner.adam_epsilon": {"learner.optimizer": "adam"},
    "impala-learner.adam_epsilon": {"learner.optimizer": "adam"},
    "learner.next_action": {"learner.lr": 0.05, "learner.target_update_interval": 4},
    "policy.noise.dt": {"policy.noise.kind": "ou"},
    "policy.noise.std": {"policy.noise.kind": "gaussian"},
    "policy.noise.theta": {"policy.noise.kind": "ou"},
}
"""What has to be set on both sides for a key to be used."""
OF_DISCRETE = {"learner.critic_reduction", "learner.target_entropy_ratio"}
ELSEWHERE = {"network.kind", "network.class", "network.kwargs", "policy.noise.kind"}
"""Which network is built has tests of its own; the kind of noise is set by those of its keys."""


def leaves(algorithm: str) -> list[str]:
    names = {".".join(map(str, path)) for path in all_keys(load_object(SPECS[algorithm].config))}
    return sorted(name for name in names if not any(other.startswith(f"{name}.") for other in names))


def cases() -> list[Any]:
    return [
        pytest.param(algorithm, key, id=f"{algorithm}-{key}")
        for algorithm in SPECS
        for key in leaves(algorithm)
        if key not in ELSEWHERE
    ]


def put(modules: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    first, _, rest = key.partition(".")
    return {**modules, first: put(modules.get(first, {}), rest, value) if rest else value}


@cache
def outcome(algorithm: str, spec: EnvSpec, settings: tuple[tuple[str, Any], ...]) -> list[bytes]:
    """The actions of a short run of sampler 1 of 2, and what the learner has become."""
    modules = SMALL[algorithm]
    for key, value in settings:
        modules = put(modules, key, list(value) if isinstance(value, tuple) else value)
    environment = NoiseEnvironment(spec, 2, Noise(terminates=0.1, truncates=0.1))
    run = Miniature(SPECS[algorithm], modules, spec, environment, total_updates=12)
    config = load_object(SPECS[algorithm].config).model_validate(modules)
    run.policy = load_object(SPECS[algorithm].policy)(config, spec, PolicyContext("sampler", 1, 2, 2))
    streams = FakeStreams(1, target_steps=100)
    run.collector = collect_loop(environment, run.policy, run.flow.unroll_length, streams, spec.observation)
    run.run(12)
    actions = [rollout.action.tobytes() for rollout in run.rollouts]
    return [*actions, *(array.tobytes() for array in run.weights().values())]


def default(algorithm: str, key: str) -> Any:
    value: Any = load_object(SPECS[algorithm].config).model_validate(SMALL[algorithm])
    for name in key.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize(("algorithm", "key"), cases())
def test_another_value_makes_another_run(algorithm: str, key: str) -> None:
    if key in OTHER:
        other = OTHER[key]
    else:
        was = default(algorithm, key)
        assert isinstance(was, bool), f"{key} needs another value in the table above"
        other = not was
    continuous = key == "policy.log_std_init" or (algorithm in ACTOR_CRITICS and key not in OF_DISCRETE)
    spec = CONTINUOUS if continuous else DISCRETE
    beside = tuple(BESIDE.get(key, BESIDE.get(f"{algorithm}-{key}", {})).items())
    changed = (key, tuple(other) if isinstance(other, list) else other)
    assert outcome(algorithm, spec, (*beside, changed)) != outcome(algorithm, spec, beside)
