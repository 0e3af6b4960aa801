"""Fixtures of the algorithms' tests: right values from independent derivations, and a run in miniature."""

from __future__ import annotations

import dataclasses
import json
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnirl.api import (
    ActContext,
    Array,
    ArraySpec,
    Clock,
    DiscreteAction,
    EnvContext,
    EnvSpec,
    FlowContext,
    LearnerContext,
    Rollout,
)
from omnirl.api.plugin import AlgorithmSpec, load_object
from omnirl.testing.environments import PropConfig, build_env, get_env_spec
from omnirl.testing.miniature import Miniature

GOLDENS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "goldens.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="session")
def golden() -> Callable[[str], dict[str, Any]]:
    """``golden(id)`` -> inputs, expected, must_not_equal, tol_float32."""
    return GOLDENS.__getitem__


@dataclasses.dataclass(frozen=True)
class Probe:
    """The right answers of a probe (see omnirl.testing.probes), and how far the published ladder lets one be off.

    answers: observation -> value of the state, or values of the actions, or the best action where it is continuous.
    """

    answers: dict[float, Array]
    tolerance: float


@pytest.fixture(scope="session")
def probe() -> Callable[[str], Probe]:
    """``probe("probe_p1")``; the continuous form of a probe has its answers."""
    tolerances = {"P1": 0.05, "P3": 0.05, "P6": 1.0, "C3": 0.15}

    def right(env_id: str) -> Probe:
        name = env_id.split("_")[1].upper()
        kinds = GOLDENS["probe/expected_values"]["expected"][name]
        found = next(kinds[kind] for kind in ("action", "Q", "V") if kind in kinds)
        if name == "P7":  # a list over time
            found = {t / len(found): value for t, value in enumerate(found)}
        elif not isinstance(found, dict):
            found = {0.0: found}
        answers = {float(obs): np.atleast_1d(np.float32(value)) for obs, value in found.items()}
        return Probe(answers, tolerances.get(name, 0.1))

    return right


@pytest.fixture(scope="session")
def greedy() -> Callable[[Miniature, float], Array]:
    """``greedy(run, obs)`` -> what the trained policy does of an observation of one number, without exploring."""

    def choose(run: Miniature, obs: float) -> Array:
        act = ActContext(np.random.default_rng(0), 0, 1.0, np.zeros(8, bool))
        return run.policy.choose_action(np.full((8, 1), obs, np.float32), act)[0]

    return choose


@pytest.fixture(scope="session")
def specs() -> dict[str, AlgorithmSpec]:
    """The algorithms by name."""
    from omnirl.algorithms.plugin import ALGORITHMS

    return {spec.name: spec for spec in ALGORITHMS}


@pytest.fixture
def learner_context() -> LearnerContext:
    return LearnerContext(rank=0, world_size=1, rendezvous=None, device="cpu", threads=1, seed=3)


@pytest.fixture
def clock() -> Callable[..., Clock]:
    """A clock of update ``n``; 1000 updates are the whole run."""

    def at(update: int, seed: int | None = None) -> Clock:
        return Clock(update, update * 100, update / 1000, update + 17 if seed is None else seed)

    return at


@pytest.fixture
def make_rollout() -> Callable[..., Rollout]:
    """A random rollout [T, B] of 3 features, with an end of each kind, as a policy of ``log_prob`` -1 made
    it."""

    def make(
        steps: int = 8,
        envs: int = 2,
        *,
        seed: int = 0,
        number: int = 0,
        action: Array | None = None,
        rewards: Array | None = None,
        every_step_ends: bool = False,
    ) -> Rollout:
        rng = np.random.default_rng(seed)
        terminated = np.full((steps, envs), every_step_ends)
        truncated = np.zeros((steps, envs), bool)
        if not every_step_ends and steps > 4:
            terminated[2, 0] = truncated[4, envs - 1] = True
        final_at = np.argwhere(terminated | truncated).astype(np.int64)
        first = np.zeros((steps + 1, envs), bool)
        first[1:] = terminated | truncated
        return Rollout(
            obs=rng.standard_normal((steps + 1, envs, 3)).astype(np.float32),
            first=first,
            action=rng.integers(0, 2, (steps, envs)) if action is None else action,
            reward=rng.standard_normal((steps, envs)).astype(np.float32) if rewards is None else rewards,
            terminated=terminated,
            truncated=truncated,
            final_obs=rng.standard_normal((len(final_at), 3)).astype(np.float32),
            final_at=final_at,
            extras={"log_prob": np.full((steps, envs), -1.0, np.float32)},
            number=number,
        )

    return make


@pytest.fixture(scope="session")
def trees_equal() -> Callable[[Any, Any], bool]:
    """Whether two states (nested dicts of arrays and scalars) are equal bit for bit."""

    def equal(a: Any, b: Any) -> bool:
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
        return np.array_equal(a, b)

    return equal


@pytest.fixture
def vector_spec() -> EnvSpec:
    """Three features, two actions."""
    return EnvSpec(ArraySpec((3,)), DiscreteAction(2))


@pytest.fixture
def acted_rollout(make_rollout: Callable[..., Rollout]) -> Callable[..., Rollout]:
    """A rollout [8, 2] whose actions and log-probabilities are really those of a PPO ``policy``."""

    def make(policy: Any, *, seed: int = 0, number: int = 0) -> Rollout:
        rollout = make_rollout(8, 2, seed=seed, number=number)
        act = ActContext(np.random.default_rng(seed + 1), 0, 0.0, np.zeros(2, bool))
        samples = [policy.sample_action(row, act) for row in rollout.obs[:-1]]
        rows = {
            "action": np.stack([sample.action for sample in samples]),
            "outputs": np.stack([sample.extras["outputs"] for sample in samples]),
        }
        return dataclasses.replace(rollout, action=rows["action"], extras=policy.finish(rows))

    return make


@pytest.fixture
def miniature(specs: dict[str, AlgorithmSpec]) -> Callable[..., Miniature]:
    """``miniature(algorithm, modules, env_id, num_envs=8, steps=...)`` -> a finished :class:`Miniature`."""

    def run(
        algorithm: str, modules: Mapping[str, Any], env_id: str, *, steps: int, num_envs: int = 8
    ) -> Miniature:
        spec, env = specs[algorithm], PropConfig(id=env_id)
        config = load_object(spec.config).model_validate(modules)
        flow = load_object(spec.data_flow)(config, FlowContext(num_envs, 1))
        updates = (steps - flow.warmup_steps) // flow.steps_per_update
        environment = build_env(env, EnvContext("sampler", 0, num_envs))
        done = Miniature(spec, modules, get_env_spec(env), environment, total_updates=updates).run(updates)
        assert all(np.isfinite(list(row.values())).all() for row in done.metrics)
        return done

    return run


@pytest.fixture
def free_port() -> Callable[[], int]:
    """``free_port()`` -> a port of the loopback that nobody listens on."""

    def find() -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            return port

    return find


@pytest.fixture
def on_every_rank(free_port: Callable[[], int]) -> Callable[..., list[Any]]:
    """``on_every_rank(size, task)`` -> what ``task(context)`` gives on each of ``size`` learners, in rank order.

    Each is a thread with a group of its own, which talks to the others as if they were processes elsewhere. What one
    raises is raised here, after all have ended.
    """

    def run(size: int, task: Callable[[LearnerContext], Any], seed: int = 3) -> list[Any]:
        rendezvous = f"127.0.0.1:{free_port()}" if size > 1 else None
        contexts = [LearnerContext(rank, size, rendezvous, "cpu", 1, seed) for rank in range(size)]
        with ThreadPoolExecutor(size) as threads:
            futures = [threads.submit(task, context) for context in contexts]
        return [future.result() for future in futures]

    return run
