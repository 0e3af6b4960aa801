"""What OmniRL finds through the entry point: a descriptor made of strings, so that listing it imports nothing."""

from __future__ import annotations

from omnirl.api import AlgorithmSpec, Supports, hookimpl

OMNIRL_API = 1

REINFORCE = AlgorithmSpec(
    name="acme_reinforce",
    summary="REINFORCE with a linear policy and a linear baseline, in numpy",
    family="policy gradient",
    supports=Supports(actions=("discrete",), observations=("vector",)),
    config="acme_reinforce.config:ReinforceConfig",
    data_flow="acme_reinforce.config:data_flow",
    policy="acme_reinforce.policy:LinearPolicy",
    memory="acme_reinforce.memory:Memory",
    learner="acme_reinforce.learner:Learner",
    agent_file="acme_reinforce.agent_file:AGENT_FILE",
    metric_names=("baseline_loss", "entropy", "return_to_go", "nonfinite_updates"),
)


@hookimpl
def omnirl_algorithms() -> list[AlgorithmSpec]:
    """The one algorithm of this distribution."""
    return [REINFORCE]
