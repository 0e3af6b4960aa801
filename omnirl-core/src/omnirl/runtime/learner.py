"""The learner's process: a memory, a learner, and as many updates per call as pacing allows. A plain class.

The memory lives here, so a batch costs no call and no copy; a call has a fixed cost of several milliseconds on Ray,
so it carries updates until the driver's limit or a time budget is reached.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnirl.api.algorithm import Clock, LearnerContext, MemoryContext
from omnirl.api.data import Array, Rollout
from omnirl.api.errors import CheckpointError, ClusterError
from omnirl.api.plugin import load_object
from omnirl.config.hardware import available_memory
from omnirl.runtime import checkpoint
from omnirl.runtime.changes import MISFIT
from omnirl.runtime.plan import Started, WorkerPlan
from omnirl.runtime.ranks import RANKS, part_of_rank, shared
from omnirl.runtime.reservation import KEY, memory_problem
from omnirl.runtime.saving import CheckpointWriter, SaveOutcome, Snapshot, agent_file, replace_agent
from omnirl.runtime.seeding import integer
from omnirl.runtime.versions import versions
from omnirl.runtime.weights import Weights, pack


@dataclass(frozen=True)
class AdvanceOrder:
    """What one call is to do: take rollouts (``dues`` gives the update of each), then make at most ``updates``
    updates, for about ``seconds`` (inf: all of them). env_steps: collected so far. The metrics come back, and are
    cleared, where ``row_due`` or where the call ends at version ``row_at``."""

    dues: tuple[int, ...]
    updates: int
    seconds: float
    env_steps: int
    row_due: bool
    row_at: int


@dataclass(frozen=True)
class AdvanceReport:
    """What a call did. updates: made in the whole run; made: in this call; metrics: where the order
    asked for them; nonfinite_in_row: the latest updates without a finite loss and gradient; saves: checkpoints
    finished since the last call."""

    updates: int
    made: int
    seconds: float
    metrics: Mapping[str, float] | None
    nonfinite_in_row: int
    saves: tuple[SaveOutcome, ...]


class LearnerWorker:
    """One learner with its memory, which :meth:`start` builds; with several learners, the one of a rank."""

    learner: Any
    memory: Any

    def __init__(self, plan: WorkerPlan, rank: int) -> None:
        self.plan, self.rank = plan, rank
        self.updates = 0
        self.writer = CheckpointWriter()

    def free_port(self, host: str) -> int:
        """A port of this machine that nobody listens at, at its address ``host``."""
        with socket.create_server((host, 0)) as server:
            return int(server.getsockname()[1])

    def start(self, rendezvous: str | None) -> Started:
        """Build the learner and its memory; returns what the driver compares before training.

        ``rendezvous`` is where several learners meet: they are built at the same time.
        """
        plan, count = self.plan, self.plan.num_learners
        context = LearnerContext(
            rank=self.rank,
            world_size=count,
            rendezvous=rendezvous,
            device=plan.device,
            threads=plan.threads,
            seed=integer("learner", plan.seeds.learner),
        )
        self.learner = load_object(plan.algorithm.learner)(plan.agent_config, plan.env_spec, context)
        problem = memory_problem(
            plan.algorithm,
            plan.agent_config,
            plan.env_spec,
            saved=False,
            available=available_memory(),
            learners=count,
        )
        if problem:
            raise ClusterError(f"{KEY}: {problem}")
        memory = load_object(plan.algorithm.memory)
        self.memory = memory(
            plan.agent_config, plan.env_spec, MemoryContext(self.rank, count, self.learner.reduce)
        )
        return Started(True, versions())

    def weights(self) -> Weights:
        """The newest version, frozen."""
        return Weights(self.updates, pack(self.learner.get_weights()))

    def advance(self, order: AdvanceOrder, *rollouts: Rollout) -> tuple[AdvanceReport, Weights | None]:
        """Take the rollouts and learn. Rank 0 returns its newest version too."""
        began = time.perf_counter()
        for due, rollout in zip(order.dues, rollouts, strict=True):
            self.learner.observe(rollout)
            self.memory.add(rollout, due)
        made = 0
        while made < order.updates:
            clock = self._clock(order.env_steps)
            feedback = self.learner.learn(self.memory.next_batch(clock), clock)
            if feedback is not None:
                self.memory.feedback(feedback)
            self.updates += 1
            made += 1
            if time.perf_counter() - began >= order.seconds:
                break
        row = made > 0 and (order.row_due or self.updates == order.row_at)
        report = AdvanceReport(
            updates=self.updates,
            made=made,
            seconds=time.perf_counter() - began,
            metrics=self.metrics() if row else None,
            nonfinite_in_row=self.learner.nonfinite_in_row if made else 0,
            saves=self.writer.outcomes(),
        )
        return report, self.weights() if self.rank == 0 else None

    def metrics(self) -> dict[str, float]:
        """The learner's figures since the last row."""
        return dict(self.learner.metrics())

    def _clock(self, env_steps: int) -> Clock:
        progress = min(1.0, self.updates / self.plan.target_updates)
        seed = integer("clock", self.plan.seeds.learner, self.updates)
        return Clock(self.updates, env_steps, progress, seed)

    def part(self, memory: bool) -> dict[str, Any]:
        """What a checkpoint holds of this rank: the learner's state and, where wanted, the memory's."""
        part = {"learner": dict(self.learner.state_dict())}
        if memory:
            part["memory"] = dict(self.memory.state_dict())
        return part

    def save(self, snapshot: Snapshot, *others: Mapping[str, Any]) -> tuple[SaveOutcome, ...]:
        """Snapshot now, write in the background; return the outcomes of earlier saves.

        The snapshot brings the driver's and the samplers' state; this adds its own part and those of the ``other``
        ranks, from 1.
        """
        self.writer.wait()
        own = self.part(snapshot.save_memory)
        snapshot.tree.update(own)
        if others:
            snapshot.tree[RANKS] = {
                str(rank): {**part, "learner": shared(part["learner"], own["learner"])}
                for rank, part in enumerate(others, 1)
            }
        weights = self.weights().packed.arrays()
        self.writer.start(snapshot, lambda path: self._write_agent(path, weights, snapshot.agent_meta))
        return self.writer.outcomes()

    def save_agent(self, folder: str, meta: Mapping[str, Any], weights: Weights) -> SaveOutcome:
        """Write the agent file of an earlier version, which turned out to be worth keeping.

        A save in the background ends first, so that its pruning cannot take the new file for an old one.
        """
        self.writer.wait()
        path = agent_file(Path(folder), weights.version)
        try:
            replace_agent(path, lambda name: self._write_agent(name, weights.packed.arrays(), meta))
        except Exception as problem:
            return SaveOutcome(weights.version, str(path), f"{type(problem).__name__}: {problem}")
        return SaveOutcome(weights.version, str(path))

    def _write_agent(self, path: str, arrays: Mapping[str, Array], meta: Mapping[str, Any]) -> None:
        load_object(self.plan.algorithm.agent_file).save(path, arrays, dict(meta))

    def finish_saves(self) -> tuple[SaveOutcome, ...]:
        """Wait for the background writer; return what it did."""
        self.writer.wait()
        return self.writer.outcomes()

    def restore(self, path: str, updates: int) -> None:
        """Go on from a checkpoint. Raises CheckpointError where its content does not fit."""
        manifest, tree = checkpoint.read(
            Path(path), lambda saved: part_of_rank(saved, self.rank, self.plan.num_learners)
        )
        if (found := manifest["counters"]["updates"]) != updates:
            raise CheckpointError(
                f"{path}: was replaced while the run went on from it (by one of update {found}, not {updates}): "
                "another process of this run still writes; resume when it has ended"
            )
        try:
            self.learner.load_state_dict(tree["learner"])
            if "memory" in tree:
                self.memory.load_state_dict(tree["memory"])
        except (KeyError, ValueError, TypeError) as error:
            raise CheckpointError(f"{MISFIT}: {type(error).__name__}: {error}") from error
        self.updates = updates

    def close(self) -> None:
        """Let the writer finish."""
        self.writer.wait()
