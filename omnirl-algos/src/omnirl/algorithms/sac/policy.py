"""SAC's policy: a squashed Gaussian, or for discrete actions a softmax. Imports no torch."""

from __future__ import annotations

from omnirl.algorithms.sac.config import Config
from omnirl.algorithms.shared.bounded_heads import entropy_head
from omnirl.algorithms.shared.head_policy import HeadPolicy
from omnirl.api import EnvSpec, PolicyContext


class Policy(HeadPolicy):
    """Evaluation takes tanh of the mean, or the most probable action; collecting a sample."""

    def __init__(self, config: Config, spec: EnvSpec, context: PolicyContext) -> None:
        super().__init__(
            config.network,
            spec,
            context,
            head=entropy_head(spec.action, context.num_envs, config.memory.unroll_length),
            memory=config.memory,
            random_steps=config.policy.random_steps,
        )
