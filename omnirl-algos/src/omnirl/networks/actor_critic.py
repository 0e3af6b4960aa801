"""Policy and value networks of the actor-critic algorithms.

Letters: N batch rows, O outputs of the policy's head (logits, or the means of a continuous action [A]).
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from omnirl.api import ArraySpec
from omnirl.networks.build import build_network
from omnirl.networks.config import ActorCriticNetworkConfig
from omnirl.networks.mlp import MLP


class ActorCritic(nn.Module):
    """observations -> policy outputs [N, O] and values [N].

    Two separate networks, or one trunk under two linear heads (``shared``): unless the configuration says which, apart
    for vectors, and shared where there are images, as the Atari references have it, or a class of the user's own.
    Orthogonal initialisation with gain sqrt(2) in hidden layers, 0.01 in the policy's head, 1 in
    the value's (Huang et al. 2022). The parameters under ``policy.`` and ``log_std`` [A] (only where
    ``log_std_init`` is given) are all that acting needs.
    """

    def __init__(
        self,
        config: ActorCriticNetworkConfig,
        observation: ArraySpec,
        outputs: int,
        log_std_init: float | None,
        rng: Generator,
    ) -> None:
        super().__init__()
        self.policy = build_network(config, observation, outputs)
        self.policy.init_orthogonal(rng, output_gain=0.01)
        wanted = config.shared_trunk
        self.shared = not isinstance(self.policy, MLP) if wanted is None else wanted
        self.value = (
            MLP((self.policy.num_features, 1), config.activation)
            if self.shared
            else build_network(config, observation, 1)
        )
        self.value.init_orthogonal(rng, output_gain=1.0)
        self.log_std = None if log_std_init is None else nn.Parameter(torch.full((outputs,), log_std_init))

    def acting_names(self) -> list[str]:
        """The names of the parameters that acting needs."""
        return [name for name, _ in self.named_parameters() if not name.startswith("value.")]

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Policy outputs [N, O] and values [N]."""
        if self.shared:
            features = self.policy.features(obs)
            return self.policy.head(features), self.value(features).squeeze(1)
        return self.policy(obs), self.value(obs).squeeze(1)

    def values(self, obs: Tensor) -> Tensor:
        """Values [N] alone."""
        values: Tensor = self.value(self.policy.features(obs) if self.shared else obs).squeeze(1)
        return values
