"""What omnirl-algos provides, as rows of import strings. Imports no torch, numpy or pydantic."""

from __future__ import annotations

from omnirl.api import AlgorithmSpec, PresetSpec, Supports, hookimpl

OMNIRL_API = 1

_AGENT_FILE = "omnirl.algorithms.shared.training.torch_state:AGENT_FILE"
_HEALTH = ("grad_norm", "lr", "nonfinite_updates", "nonfinite_in_row")


def _algorithm(
    name: str, summary: str, *, family: str, supports: Supports, figures: tuple[str, ...]
) -> AlgorithmSpec:
    """The row of the package ``name``, whose parts are called as in every other package."""
    package = f"omnirl.algorithms.{name}"
    return AlgorithmSpec(
        name=name,
        summary=summary,
        family=family,
        supports=supports,
        config=f"{package}.config:Config",
        data_flow=f"{package}.config:data_flow",
        policy=f"{package}.policy:Policy",
        memory=f"{package}.memory:Memory",
        learner=f"{package}.learner:Learner",
        agent_file=_AGENT_FILE,
        metric_names=(*figures, *_HEALTH),
    )


def _value_learner(name: str, summary: str) -> AlgorithmSpec:
    return _algorithm(
        name,
        summary,
        family="value",
        supports=Supports(
            actions=("discrete",),
            observations=("vector", "image", "dict"),
            action_mask=True,
            learners=True,
        ),
        figures=("loss", "q_value", "td_error", "epsilon"),
    )


def _policy_gradient(name: str, summary: str, figures: tuple[str, ...] = ()) -> AlgorithmSpec:
    return _algorithm(
        name,
        summary,
        family="policy gradient",
        supports=Supports(
            actions=("discrete", "multi_discrete", "continuous"),
            observations=("vector", "image", "dict"),
            action_mask=True,
            learners=True,
        ),
        figures=("policy_loss", "value_loss", "entropy", *figures, "explained_variance"),
    )


def _actor_critic(
    name: str,
    summary: str,
    figures: tuple[str, ...] = (),
    *,
    actions: tuple[str, ...] = ("bounded_continuous",),
) -> AlgorithmSpec:
    return _algorithm(
        name,
        summary,
        family="actor-critic",
        supports=Supports(actions=actions, observations=("vector", "dict"), learners=True),
        figures=("critic_loss", "actor_loss", "q_value", *figures),
    )


ALGORITHMS = (
    _policy_gradient(
        "ppo",
        "Proximal policy optimization: on-policy, the robust first choice",
        ("approx_kl", "clip_fraction"),
    ),
    _policy_gradient("a2c", "Advantage actor-critic: on-policy, one gradient step per short rollout"),
    _policy_gradient(
        "impala",
        "IMPALA: samplers never wait for the learner, which corrects for their lag",
        ("approx_kl", "clip_fraction"),
    ),
    *(
        _value_learner(name, summary)
        for name, summary in (
            ("dqn", "Deep Q-network: off-policy, one network of action values"),
            ("ddqn", "Double DQN: the overestimation of DQN mended by choosing with the other network"),
            ("dueling_dqn", "Dueling DQN: double DQN on a network of a value and advantages"),
            ("per_dqn", "PER-DQN: double DQN that replays more often what it was wrong about"),
            ("c51", "Categorical DQN: learns the distribution of the return over fixed atoms"),
            ("qr_dqn", "Quantile regression DQN: learns the quantiles of the return"),
        )
    ),
    _actor_critic("ddpg", "Deep deterministic policy gradient: off-policy, for bounded continuous actions"),
    _actor_critic("td3", "Twin delayed DDPG: its overestimation mended by two critics and smoothed targets"),
    _actor_critic(
        "sac",
        "Soft actor-critic: off-policy, random as far as it pays, few environment steps",
        ("entropy", "temperature"),
        actions=("discrete", "bounded_continuous"),
    ),
    _actor_critic(
        "tqc",
        "Truncated quantile critics: SAC whose critics give distributions, cut against overestimation",
        ("entropy", "temperature"),
    ),
)

PRESETS = tuple(
    PresetSpec(name, summary, f"omnirl.presets:{name}.yaml")
    for name, summary in (
        ("cartpole-ppo", "CartPole-v1 with PPO: 500 within 100,000 steps"),
        ("cartpole-dqn", "CartPole-v1 with DQN: above 475 within 100,000 steps"),
        ("cartpole-ddqn", "CartPole-v1 with double DQN: above 475 within 100,000 steps"),
        ("cartpole-dueling-dqn", "CartPole-v1 with dueling DQN: above 475 within 100,000 steps"),
        ("cartpole-per-dqn", "CartPole-v1 with PER-DQN: above 450 within 200,000 steps"),
        ("cartpole-c51", "CartPole-v1 with C51: above 450 within 500,000 steps"),
        ("cartpole-qr-dqn", "CartPole-v1 with QR-DQN: above 380 within 100,000 steps"),
        ("acrobot-dqn", "Acrobot-v1 with DQN: above -100 within 100,000 steps"),
        ("acrobot-qr-dqn", "Acrobot-v1 with QR-DQN: above -90 within 100,000 steps"),
        ("lunarlander-per-dqn", "LunarLander-v3 with PER-DQN: above 200 within 300,000 steps"),
        ("cartpole-a2c", "CartPole-v1 with A2C, for 500,000 steps"),
        ("cartpole-impala", "CartPole-v1 with IMPALA, for 500,000 steps"),
        ("pendulum-ppo", "Pendulum-v1 with PPO: above -200 within 300,000 steps"),
        ("pendulum-ddpg", "Pendulum-v1 with DDPG: about -150 within 20,000 steps"),
        ("pendulum-td3", "Pendulum-v1 with TD3: about -150 within 20,000 steps"),
        ("pendulum-sac", "Pendulum-v1 with SAC: about -150 within 20,000 steps"),
        ("pendulum-tqc", "Pendulum-v1 with TQC: about -150 within 20,000 steps"),
        ("cartpole-sac", "CartPole-v1 with SAC for discrete actions: above 350 within 100,000 steps"),
        ("mountaincar-dqn", "MountainCar-v0 with DQN, for 120,000 steps"),
        ("mountaincar-qr-dqn", "MountainCar-v0 with QR-DQN, for 120,000 steps"),
        ("mountaincar-continuous-td3", "MountainCarContinuous-v0 with TD3: about 93 within 300,000 steps"),
        ("lunarlander-continuous-sac", "LunarLanderContinuous-v3 with SAC: about 260 within 500,000 steps"),
        (
            "halfcheetah-sac",
            "HalfCheetah-v5 with SAC (Spinning Up: 6,081 at 100,000 steps, 9,163 at 300,000)",
        ),
        (
            "halfcheetah-td3",
            "HalfCheetah-v5 with TD3 (its authors: 4,894 at 100,000 steps, 7,485 at 300,000)",
        ),
        ("hopper-sac", "Hopper-v5 with SAC (Spinning Up: 2,887 at 300,000 steps)"),
        ("hopper-td3", "Hopper-v5 with TD3 (its authors: 2,458 at 300,000 steps)"),
        ("lunarlander-ppo", "LunarLander-v3 with PPO: above 200 within 1,000,000 steps"),
        ("bipedalwalker-ppo", "BipedalWalker-v3 with PPO, for 5,000,000 steps"),
        ("carracing-ppo", "CarRacing-v3 with PPO on pictures, for 4,000,000 steps"),
        ("halfcheetah-ppo", "HalfCheetah-v5 with PPO, for 1,000,000 steps"),
        ("minatar-breakout-dqn", "MinAtar/Breakout-v0 with DQN, an update per frame, for 1,000,000 steps"),
        ("minatar-breakout-ppo", "MinAtar/Breakout-v1 with PPO, for 5,000,000 steps"),
        ("pong-dqn", "ALE/Pong-v5 with DQN, for 10,000,000 steps"),
        ("pong-ppo", "ALE/Pong-v5 with PPO, for 10,000,000 steps"),
        ("breakout-dqn", "ALE/Breakout-v5 with DQN, for 10,000,000 steps"),
        ("breakout-ppo", "ALE/Breakout-v5 with PPO, for 10,000,000 steps"),
    )
)


@hookimpl
def omnirl_algorithms() -> tuple[AlgorithmSpec, ...]:
    """The algorithms."""
    return ALGORITHMS


@hookimpl
def omnirl_presets() -> tuple[PresetSpec, ...]:
    """The tuned configurations."""
    return PRESETS
