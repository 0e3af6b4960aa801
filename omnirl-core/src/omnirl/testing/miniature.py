"""A whole run in a few lines and one process: a sampler, a memory and a learner, paced as the runtime paces them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnirl.api.algorithm import Clock, FlowContext, LearnerContext, MemoryContext, PolicyContext
from omnirl.api.data import Array, Rollout
from omnirl.api.environment import Environment
from omnirl.api.plugin import AlgorithmSpec, load_object
from omnirl.api.specs import EnvSpec
from omnirl.loops.collection import collect_loop
from omnirl.testing.fakes import FakeStreams
from omnirl.testing.trees import copied, read_only


class Miniature:
    """``algorithm`` with its plain configuration ``modules``, in ``environment``.

    total_updates: the stop target, which schedules see. frozen: hand over read-only copies, as Ray does.
    ``rollouts`` lists what was collected, ``metrics`` what each update reported.
    """

    def __init__(
        self,
        algorithm: AlgorithmSpec,
        modules: Mapping[str, Any],
        spec: EnvSpec,
        environment: Environment,
        *,
        total_updates: int = 100,
        seed: int = 1,
        frozen: bool = False,
    ) -> None:
        config = load_object(algorithm.config).model_validate(dict(modules))
        num_envs = environment.num_envs
        self.flow = load_object(algorithm.data_flow)(config, FlowContext(num_envs, 1))
        context = LearnerContext(rank=0, world_size=1, rendezvous=None, device="cpu", threads=1, seed=seed)
        self.learner = load_object(algorithm.learner)(config, spec, context)
        memory = load_object(algorithm.memory)
        self.memory = memory(config, spec, MemoryContext(0, 1, self.learner.reduce))
        self.policy = load_object(algorithm.policy)(config, spec, PolicyContext("sampler", 0, 1, num_envs))
        steps = self.flow.warmup_steps + total_updates * self.flow.steps_per_update
        streams = FakeStreams(seed, target_steps=steps)
        self.collector = collect_loop(
            environment, self.policy, self.flow.unroll_length, streams, spec.observation
        )
        self.updates = 0
        self.collected = 0
        self.rollouts: list[Rollout] = []
        self.metrics: list[dict[str, float]] = []
        self._total = total_updates
        self._frozen = frozen

    def run(self, updates: int) -> Miniature:
        """Make ``updates`` more, each with the rollouts that it is paced to; the policy has the newest weights then."""
        for _ in range(updates):
            self.update()
        self.policy.set_weights(self.weights())
        return self

    def update(self) -> None:
        """Collect what is due with the newest weights, and learn once."""
        self.policy.set_weights(self.weights())
        flow = self.flow
        while self.collected < flow.warmup_steps + (self.updates + 1) * flow.steps_per_update:
            rollout = self.collector.collect(self.updates, self.collected)
            rollout = read_only(rollout) if self._frozen else rollout
            self.rollouts.append(rollout)
            self.learner.observe(rollout)
            self.memory.add(rollout, self.updates)
            self.collected += rollout.steps
        clock = Clock(self.updates, self.collected, self.updates / self._total, self.updates)
        feedback = self.learner.learn(self.memory.next_batch(clock), clock)
        if feedback is not None:
            self.memory.feedback(feedback)
        self.updates += 1
        self.metrics.append(dict(self.learner.metrics()))

    def weights(self) -> dict[str, Array]:
        """The newest weights, copied as a run copies them."""
        weights: dict[str, Array] = copied(dict(self.learner.get_weights()))
        return dict(read_only(weights)) if self._frozen else weights

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on exactly."""
        return {
            "learner": dict(self.learner.state_dict()),
            "memory": dict(self.memory.state_dict()),
            "collector": dict(self.collector.state_dict()),
            "updates": self.updates,
            "collected": self.collected,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Miniature:
        """Go on from there; to be called before the first update."""
        self.updates, self.collected = int(state["updates"]), int(state["collected"])
        self.learner.load_state_dict(state["learner"])
        self.memory.load_state_dict(state["memory"])
        self.policy.set_weights(self.weights())
        self.collector.load_state_dict(state["collector"])
        return self
