"""The passes of an update of the actor-critic algorithms with replay, each with arrays of its own."""

from __future__ import annotations

from typing import NamedTuple

from omnirl.networks.actor_critics import Actor, ActorCritics
from omnirl.networks.ensemble_gradient import EnsemblePass, ensemble_pass
from omnirl.networks.output_gradient import OutputGradient, output_gradient


class Passes(NamedTuple):
    """``actor`` of the observations, which moves it; ``next_actor`` of the next ones. ``critics`` of the actions
    taken, which moves them; ``frozen_critics`` of the actor's; ``target_critics`` of the next ones."""

    actor: OutputGradient
    next_actor: Actor
    critics: EnsemblePass
    frozen_critics: EnsemblePass
    target_critics: EnsemblePass


def make_passes(networks: ActorCritics, next_actor: Actor, members: int | None = None) -> Passes:
    """The actor is judged by the first ``members`` critics (all). To be called when the parameters are where they
    stay, with their ``grad``."""
    return Passes(
        output_gradient(networks.actor),
        next_actor,
        ensemble_pass(networks.critics),
        ensemble_pass(networks.critics, members),
        ensemble_pass(networks.target_critics),
    )
