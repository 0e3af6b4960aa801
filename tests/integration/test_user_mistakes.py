"""Every kind of mistake in a configuration, with the real plugins: told in its line, before anything is started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from omnirl.cli.app import run

PPO, DQN = ("cartpole-ppo",), ("cartpole-dqn",)


IN_FILES: list[tuple[tuple[str, ...], str]] = [
    ((*PPO, "modules.learner.gama=0.9"), "modules.learner.gama: unknown key (did you mean 'gamma'?)"),
    ((*PPO, "runer.max_updates=3"), "runer: unknown section (did you mean 'runner'?)"),
    ((*PPO, "env.id="), "env.id: must be text, not null"),
    (("--algo", "ppo", "--updates", "1"), "env.module: missing: which environment backend?"),
    (
        ("--env", "CartPole-v1", "--updates", "1"),
        "agent.module: missing: which algorithm? (installed: a2c, c51, ddpg, ddqn, dqn, dueling_dqn, impala",
    ),
    (("--algo", "ppo", "--env", "CartPole-v1"), "runner.max_updates: missing: say when training stops"),
    ((*PPO, "modules.learner.epochs=many"), "modules.learner.epochs: must be a whole number, not 'many'"),
    ((*PPO, "modules.learner.lr=fast"), "modules.learner.lr: must be a number or a schedule"),
    ((*PPO, "modules.learner.lr=-1e-3"), "modules.learner.lr: must be at least 0 throughout, and is -0.001"),
    ((*PPO, "modules.learner.clip=-0.2"), "modules.learner.clip: must be at least 0 throughout"),
    ((*PPO, "modules.learner.gamma=1.01"), "modules.learner.gamma: must be at most 1, not 1.01"),
    ((*PPO, "modules.learner.gamma=.nan"), "modules.learner.gamma: must be a finite number, not .nan"),
    ((*PPO, "modules.learner.minibatch_size=0"), "modules.learner.minibatch_size: must be at least 1, not 0"),
    (
        (*PPO, "runner.num_samplers=1", "modules.learner.minibatch_size=257"),
        "modules.learner.minibatch_size: 257 is more than the samples of an update, 256 = unroll_length 32 x "
        "8 environments x 1 samplers",
    ),
    (
        (*DQN, "modules.memory.batch_size=200000"),
        "modules.memory.batch_size: 200000 is more than the capacity",
    ),
    (
        (*DQN, "modules.memory.warmup_steps=200000"),
        "modules.memory.warmup_steps: 200000 is more than the cap",
    ),
    ((*DQN, "modules.memory.warmup_steps=9"), "modules.memory.warmup_steps: 9 is less than the first batch"),
    ((*DQN, "modules.memory.n_step=0"), "modules.memory.n_step: must be at least 1, not 0"),
    (
        (*DQN, "modules.policy.epsilon=1.5"),
        "modules.policy.epsilon: must be between 0 and 1 throughout, and re",
    ),
    (
        (*DQN, "modules.policy.epsilon={kind: linear, start: 1, end: -0.1}"),
        "override modules.policy.epsilon: must be between 0 and 1 throughout, and reaches -0.1",
    ),
    ((*DQN, "modules.learner.tau=2"), "modules.learner.tau: must be at most 1, not 2"),
    ((*DQN, "modules.learner.clip=0.2"), "modules.learner.clip: unknown key ('clip' is a key of ppo) [algo"),
    ((*PPO, "runner.num_samplers=0"), "runner.num_samplers: must be 'auto' or at least 1, not 0"),
    (
        (*PPO, "runner.num_learners=3", "runner.num_samplers=2"),
        "runner.num_learners: 3 learners need at least as many samplers, not 2",
    ),
    (
        (*PPO, "agent.module=pppo"),
        "agent.module: unknown algorithm 'pppo' (did you mean 'ppo'?); installed: a2c",
    ),
    ((*PPO, "env.module=gym"), "env.module: unknown environment backend 'gym'"),
    (
        (*PPO, "modules.network.kind=cn"),
        "modules.network.kind: must be 'auto', 'mlp', 'cnn', 'resnet' or 'minatar', not 'cn' (did you mean",
    ),
    (
        (*PPO, "env.render_mode=human", "runner.num_evaluators=3"),
        "env.render_mode: human opens one window: set runner.num_evaluators to 1, not 3",
    ),
    (
        (*PPO, "env.wrappers=[atarii]"),
        "override env.wrappers.0: unknown wrapper 'atarii' (did you mean 'atari'?)",
    ),
    (
        (*PPO, "env.wrappers=[atari, {time_limit: {stepps: 9, steps: 9}}]"),
        "override env.wrappers.1.time_limit.stepps: unknown key (did you mean 'steps'?) [backend gymnasium]",
    ),
    ((*PPO, "runner.ckpt_dir=/dev/null"), "runner.ckpt_dir: /dev/null is a file, not a folder"),
    ((*PPO, "device.learner=tpu"), "device.learner: must be 'auto', 'cpu', 'cuda' or 'gpu', not 'tpu'"),
    ((*PPO, "ray.address=somewhere"), "ray.address: must be local, auto or host:port, not 'somewhere'"),
    ((*PPO, "runner.save_memory=no"), "runner.save_memory: must be true or false, not 'no'"),
    ((*PPO, "runner.save_memory=off"), "runner.save_memory: must be true or false, not 'off'"),
    ((*PPO, "runner.max_updates=1:30"), "runner.max_updates: must be a whole number, not '1:30'"),
    ((*PPO, "seed=-1"), "seed: must be at least 0, not -1"),
    ((*PPO, "=3"), "override '=3': expected KEY=VALUE, such as runner.max_updates=100"),
    ((*PPO, "modules..lr=3"), "override 'modules..lr=3': expected KEY=VALUE"),
    ((*PPO, "modules.learner.lr=[1"), "override modules.learner.lr: expected ',' or ']'"),
]


@pytest.mark.parametrize(("arguments", "expected"), IN_FILES, ids=[" ".join(item[0]) for item in IN_FILES])
def test_a_mistake_that_shows_without_an_environment(
    arguments: tuple[str, ...], expected: str, refused: Callable[..., list[str]]
) -> None:
    (line,) = refused("train", *arguments, "--local")
    assert expected in line
    assert refused("train", *arguments, "--dry-run") == [line]
    if not any(argument.startswith("--") for argument in arguments):
        assert refused("config", "validate", *arguments) == [line]


class Picture(gymnasium.Env[Any, Any]):
    """Observes a grey picture."""

    observation_space = spaces.Box(0, 255, (36, 36), np.uint8)
    action_space = spaces.Discrete(2)


class Words(gymnasium.Env[Any, Any]):
    """Observes a word beside a number."""

    observation_space = spaces.Dict({"place": spaces.Discrete(3), "said": spaces.Text(9)})
    action_space = spaces.Discrete(2)


@pytest.fixture
def environments() -> Iterator[None]:
    gymnasium.register("mistakes/Picture-v0", Picture)
    gymnasium.register("mistakes/Words-v0", Words)
    yield
    del gymnasium.registry["mistakes/Picture-v0"], gymnasium.registry["mistakes/Words-v0"]


IN_ENVIRONMENTS: list[tuple[tuple[str, ...], str]] = [
    (
        (*PPO, "env.id=CartPole-v9"),
        "override env.id: unknown environment 'CartPole-v9' (did you mean 'CartPole-v1'?)",
    ),
    (
        (*PPO, "env.id=nobody/Walks-v0"),
        "override env.id: unknown environment 'nobody/Walks-v0'; if another package",
    ),
    (
        (*PPO, "env.imports=[no_such_envs]"),
        "override env.imports: cannot import 'no_such_envs': ModuleNotFoundErr",
    ),
    ((*PPO, "env.kwargs={sutton: 1}"), "override env.kwargs.sutton: 'CartPole-v1' takes no such argument"),
    (
        (*PPO, "env.wrappers=[{time_limit: {steps: 9}}, {crop: {top: 3}}]"),
        "override env.wrappers.1.crop: needs a picture [height, width] or [height, width, channels], not Box(",
    ),
    (
        (*DQN, "env.id=Pendulum-v1"),
        "dqn needs discrete actions; Pendulum-v1 has continuous actions of 1 value in [-2, 2] (installed for it: ",
    ),
    (
        (*PPO, "modules.network.kind=cnn"),
        "override modules.network.kind: cnn takes image observations; CartPole-v1 has vector observations of shape "
        "[4] (use mlp)",
    ),
    (
        (*DQN, "env.id=mistakes/Picture-v0", "modules.network.kind=mlp"),
        "modules.network.kind: mlp takes vector observations; mistakes/Picture-v0 has image observations of shape "
        "[1, 36, 36] (use cnn)",
    ),
    (
        (*PPO, "env.id=mistakes/Words-v0"),
        "entry 'said': the observation space Text(1, 9",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "expected"), IN_ENVIRONMENTS, ids=[" ".join(item[0]) for item in IN_ENVIRONMENTS]
)
def test_a_mistake_that_the_environment_shows(
    arguments: tuple[str, ...],
    expected: str,
    refused: Callable[..., list[str]],
    environments: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["config", "validate", *arguments]) == 0  # which opens no environment
    capsys.readouterr()
    (line,) = refused("config", "validate", "--deep", *arguments)
    assert expected in line
    assert refused("train", *arguments, "--dry-run") == [line]
    assert refused("train", *arguments, "--local") == [line]


@pytest.mark.parametrize(
    ("name", "extra"), [("LunarLander-v3", "box2d"), ("HalfCheetah-v5", "mujoco"), ("ALE/Pong-v5", "atari")]
)
def test_an_environment_of_an_extra_names_its_pip_install(
    name: str, extra: str, refused: Callable[..., list[str]]
) -> None:
    module = {"box2d": "Box2D", "mujoco": "mujoco", "atari": "ale_py"}[extra]
    try:
        __import__(module)
    except ImportError:
        (line,) = refused("train", *PPO, f"env.id={name}", "--local")
        assert f'run: pip install "omnirl-gymnasium[{extra}]"' in line
    else:
        pytest.skip(f"{extra} is installed")


def test_cuda_without_cuda(refused: Callable[..., list[str]]) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    (line,) = refused("train", *PPO, "--device", "cuda", "--local")
    assert line.startswith("--device device.learner: ")
    assert "use cpu or auto" in line
