"""The real suites: Box2D, MuJoCo, Atari and MinAtar are stepped and compared with plain Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from omnirl.api.environment import EnvContext
from omnirl.api.specs import ArraySpec, ContinuousAction, DiscreteAction
from omnirl.envs.gymnasium.backend import build_env, get_env_spec
from omnirl.envs.gymnasium.config import GymnasiumConfig

EXTRAS = {"box2d": "Box2D", "mujoco": "mujoco", "atari": "ale_py", "minatar": "minatar"}


def needs(extra: str) -> None:
    pytest.importorskip(EXTRAS[extra], reason=f"the extra {extra} is not installed")


def image(*shape: int) -> ArraySpec:
    return ArraySpec(shape, "uint8", layout="image")


def box(*bounds: tuple[float, float]) -> ContinuousAction:
    return ContinuousAction(tuple(low for low, _ in bounds), tuple(high for _, high in bounds))


SUITES: list[tuple[str, str, ArraySpec, Any, int]] = [
    ("box2d", "LunarLander-v3", ArraySpec((8,)), DiscreteAction(4), 200),
    ("box2d", "LunarLanderContinuous-v3", ArraySpec((8,)), box((-1, 1), (-1, 1)), 150),
    ("box2d", "BipedalWalker-v3", ArraySpec((24,)), box(*[(-1, 1)] * 4), 150),
    ("box2d", "CarRacing-v3", image(3, 96, 96), box((-1, 1), (0, 1), (0, 1)), 8),
    ("mujoco", "HalfCheetah-v5", ArraySpec((17,)), box(*[(-1, 1)] * 6), 100),
    ("mujoco", "Hopper-v5", ArraySpec((11,)), box(*[(-1, 1)] * 3), 100),
    ("mujoco", "Walker2d-v5", ArraySpec((17,)), box(*[(-1, 1)] * 6), 100),
    ("mujoco", "Ant-v5", ArraySpec((105,)), box(*[(-1, 1)] * 8), 50),
    ("mujoco", "Humanoid-v5", ArraySpec((348,)), box(*[(-0.4000000059604645, 0.4000000059604645)] * 17), 50),
    ("atari", "ALE/Pong-v5", image(3, 210, 160), DiscreteAction(6), 30),
    ("atari", "ALE/Breakout-v5", image(3, 210, 160), DiscreteAction(4), 30),
    ("minatar", "MinAtar/Breakout-v1", ArraySpec((400,)), DiscreteAction(3), 200),
    ("minatar", "MinAtar/Freeway-v1", ArraySpec((700,)), DiscreteAction(3), 100),
]


@pytest.mark.parametrize(
    ("extra", "name", "observation", "action", "steps"), SUITES, ids=[s[1] for s in SUITES]
)
def test_the_real_thing_is_stepped(
    extra: str, name: str, observation: ArraySpec, action: Any, steps: int
) -> None:
    """With nothing but its id; every value is that of plain Gymnasium, to whose registry the id was added."""
    needs(extra)
    config = GymnasiumConfig(id=name)
    spec = get_env_spec(config)
    assert (spec.observation, spec.action) == (observation, action)

    environment = build_env(config, EnvContext("sampler", 0, 2))
    plain = [gymnasium.make(name) for _ in range(2)]
    try:
        for i, env in enumerate(plain):
            env.action_space.seed(i)
            assert np.array_equal(
                environment.reset(i, 7 + i), as_stored(env.reset(seed=7 + i)[0], observation)
            )
        for t in range(steps):
            own = [env.action_space.sample() for env in plain]
            step = environment.step(np.array(own))
            for i, env in enumerate(plain):
                obs, reward, terminated, truncated, _ = env.step(own[i])
                assert np.array_equal(np.asarray(step.final_obs)[i], as_stored(obs, observation))
                assert step.reward[i] == np.float32(reward)
                assert (step.terminated[i], step.truncated[i]) == (terminated, truncated)
                if terminated or truncated:
                    again = as_stored(env.reset(seed=100 * t + i)[0], observation)
                    assert np.array_equal(environment.reset(i, 100 * t + i), again)
        assert np.isfinite(np.asarray(step.obs, np.float64)).all()
    finally:
        environment.close()
        for env in plain:
            env.close()


def as_stored(observation: Any, spec: ArraySpec) -> Any:
    if spec.layout == "image":
        return np.moveaxis(np.asarray(observation), -1, 0)
    return np.asarray(observation, np.float32).reshape(-1)


@pytest.mark.parametrize(
    ("extra", "name"),
    [("box2d", "LunarLander-v3"), ("mujoco", "HalfCheetah-v5"), ("minatar", "MinAtar/Asterix-v1")],
)
def test_an_episode_repeats_from_its_seed_whatever_was_played_before(extra: str, name: str) -> None:
    """What going on exactly after a restart stands on."""
    needs(extra)
    environment = build_env(GymnasiumConfig(id=name), EnvContext("sampler", 0, 1))
    shape, n = environment.action.shape, getattr(environment.action, "n", 0)

    def played(seed: int) -> list[list[float]]:
        rng = np.random.default_rng(seed)
        rows = [np.array(environment.reset(0, seed))]
        for _ in range(60):
            own = rng.integers(n, size=1) if n else rng.uniform(-1, 1, (1, *shape)).astype(np.float32)
            step = environment.step(own)
            rows.append(np.array(step.obs)[0])
            if step.terminated[0] or step.truncated[0]:
                break
        return [row.tolist() for row in rows]

    first = played(3)
    played(4)
    assert played(3) == first
    environment.close()


def test_games_are_found_by_their_old_names_too() -> None:
    needs("atari")
    assert get_env_spec(GymnasiumConfig(id="PongNoFrameskip-v4")).action == DiscreteAction(6)
