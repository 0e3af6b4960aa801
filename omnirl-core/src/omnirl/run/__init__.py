"""Train, evaluate and load agents from Python: what the commands of ``omnirl`` call, and what a notebook can.

::

    import omnirl.run

    summary = omnirl.run.train("cartpole-ppo", overrides=["runner.max_steps=20000"], local=True)
    print(summary.evaluation["return_mean"])
    policy = omnirl.run.load_policy(summary.run_dir)
    action = policy.choose_action(observations)     # [B, *obs] -> [B, *act]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from signal import Signals
from typing import Any

import numpy as np

from omnirl import plugins
from omnirl.api.algorithm import ActContext, Policy, PolicyContext
from omnirl.api.data import Array, Obs
from omnirl.api.errors import ConfigError, NotFoundError
from omnirl.api.observer import Observer, RunSummary
from omnirl.api.plugin import load_object
from omnirl.api.specs import EnvSpec
from omnirl.config import check, files
from omnirl.config.resolve import ResolvedConfig
from omnirl.loops.aggregate import aggregate
from omnirl.plugins import Registry
from omnirl.run.checking import EnvironmentReport, check_environment
from omnirl.run.sources import RUNS, Source, configure, configured_agent, saved_run
from omnirl.run.viewing import Recording, enjoy, record
from omnirl.runtime import setup
from omnirl.runtime.agents import agent_path, load_agent
from omnirl.runtime.changes import explained
from omnirl.runtime.dispatch import ObserverThread
from omnirl.runtime.evaluate import Evaluation, play, summarise
from omnirl.runtime.plan import WorkerPlan
from omnirl.runtime.prepare import PreparedRun, prepare
from omnirl.runtime.run_dir import CONFIG_FILE, Chooser, Resume, RunFolder, claimed
from omnirl.runtime.signals import stop_requests
from omnirl.runtime.train import TrainLoop
from omnirl.runtime.transport import LocalTransport, Transport

__all__ = [
    "EnvironmentReport",
    "LoadedPolicy",
    "Recording",
    "check_environment",
    "configure",
    "enjoy",
    "evaluate",
    "load_policy",
    "record",
    "train",
]


def train(
    config: ResolvedConfig | Source,
    *,
    overrides: Sequence[str] = (),
    local: bool = False,
    resume: Resume = "auto",
    observers: Sequence[str] = (),
    observer_objects: Sequence[Observer] = (),
) -> RunSummary:
    """Train to the stop target, on Ray or, with ``local``, in this process.

    resume: ``"auto"`` goes on with an unfinished run of the same configuration, ``"never"`` leaves it alone,
    ``"must"`` goes on with the run in ``runner.ckpt_dir`` whatever its configuration was. observers: names of
    further observers. Raises an OmniRLError, whose ``exit_code`` the command line ends with.
    """
    registry = plugins.load()
    if not isinstance(config, ResolvedConfig):
        config = configure(config, overrides=overrides, registry=registry)
    watchers = [*_default_observers(registry, observers), *observer_objects]
    if local:
        check.check_one_process(config)
    with claimed(_folder(config, resume)) as folder:
        earlier = files.load_file(folder.path / CONFIG_FILE).data if folder.resume else None
        prepared = prepare(setup.decide(config, earlier), folder, earlier)
        thread = ObserverThread(watchers)
        try:
            thread.send("run_started", prepared.info(local))
            for clash in registry.clashes("omnirl_observers"):
                thread.send("event", clash)
            with explained(prepared.changes):
                summary = _run(prepared, thread, local)
        except BaseException as error:
            thread.send("run_finished", prepared.failed(error))
            raise
        else:
            thread.send("run_finished", summary)
            return summary
        finally:
            thread.close()


def _run(prepared: PreparedRun, watchers: ObserverThread, local: bool) -> RunSummary:
    config, plan = prepared.config, prepared.plan
    folder = Path(prepared.settings.saves.run_dir)
    transport_of_run = _transport(config, plan, local, folder)
    with stop_requests() as stop, transport_of_run as transport, prepared.written_config():
        stop.catch()  # after ray.init, which sets handlers of its own
        aggregation = plan.env_backend.aggregate_evaluations or aggregate
        loop = TrainLoop(
            plan,
            prepared.target,
            prepared.settings,
            transport,
            watchers,
            stop,
            aggregation,
            prepared.resumed,
        )
        try:
            summary = loop.run()
        except ConfigError as error:  # what only a worker could find, such as a network that does not fit
            raise check.placed(config, error) from error
    interrupted = summary.status == "interrupted"
    return replace(summary, message=Signals(stop.signal).name) if interrupted else summary


def evaluate(
    source: ResolvedConfig | Source,
    *,
    overrides: Sequence[str] = (),
    model: str | None = None,
    episodes: int | None = None,
    local: bool = False,
) -> Evaluation:
    """Evaluate an agent file of a run: a run's folder, or a configuration whose ``runner.ckpt_dir`` holds one.

    model: such as ``"agent_100"``; by default ``runner.eval_model``, else the newest. episodes: in all, over the
    configuration's evaluators. One evaluator runs in this process, several on Ray unless ``local``.
    """
    if isinstance(source, ResolvedConfig):
        config = source
        folder = Path(config.runner.ckpt_dir or RUNS / setup.run_name(config))
    else:
        config, folder = saved_run(source, overrides)
    if not folder.is_dir():
        raise NotFoundError(f"{folder}: no such run")
    config = setup.decide(config)
    path = agent_path(folder, model) if model else configured_agent(config, folder)
    env_spec = setup.env_spec_of(config)
    weights, meta = load_agent(path, config, env_spec)
    plan, _ = setup.plan_of(config, env_spec)
    plan = _for_evaluation(plan, episodes)
    with _transport(config, plan, local or plan.num_evaluators == 1, None) as transport:
        played = play(plan, weights, int(meta["updates"]), transport)
    metrics, each = summarise(plan, played)
    return Evaluation(path.stem, str(folder), sum(map(len, played)), metrics, each)


def _for_evaluation(plan: WorkerPlan, episodes: int | None) -> WorkerPlan:
    """At least one evaluator; ``episodes`` in all, spread over the evaluators, the last ones with one fewer."""
    count = max(1, plan.num_evaluators)
    if episodes is None:
        return replace(plan, num_evaluators=count)
    if episodes < 1:
        raise ConfigError(f"episodes: {episodes}, must be at least 1")
    count = max(number for number in range(1, count + 1) if episodes % number == 0)
    return replace(plan, num_evaluators=count, episodes=episodes // count)


@dataclass(frozen=True)
class LoadedPolicy:
    """A trained policy that acts deterministically. ``meta`` is what its agent file says of the run."""

    policy: Policy
    spec: EnvSpec
    meta: Mapping[str, Any]

    def choose_action(self, obs: Obs) -> Array:
        """[B, *obs] -> [B, *act], in environment units; ``*obs`` as ``spec.observation.stacked()`` says."""
        rows = next(iter(obs.values())) if isinstance(obs, Mapping) else obs
        context = ActContext(np.random.default_rng(0), 0, 1.0, np.zeros(len(rows), bool))
        return self.policy.choose_action(obs, context)


def load_policy(run: str | os.PathLike[str], model: str | None = None, *, num_envs: int = 1) -> LoadedPolicy:
    """The policy of an agent file of a run's folder (the newest by default), acting on ``num_envs`` rows at once."""
    config, folder = saved_run(run, ())
    env_spec = setup.env_spec_of(config)
    weights, meta = load_agent(agent_path(folder, model), config, env_spec)
    context = PolicyContext("evaluator", 0, 1, num_envs)
    policy: Policy = load_object(config.algorithm.policy)(config.agent, env_spec, context)
    policy.set_weights(weights)
    return LoadedPolicy(policy, env_spec, meta)


def _folder(config: ResolvedConfig, resume: Resume) -> RunFolder:
    """The folder this run uses, claimed."""
    load = config.runner.load_checkpoint
    if load is not None and resume == "auto":
        resume = "auto" if load else "never"
    chooser = Chooser(config.plain(), resume, lambda path: files.load_file(path).data)
    named = config.runner.ckpt_dir
    if named is None:
        return chooser.default(RUNS / setup.run_name(config))
    if resume == "must":
        return chooser.existing(Path(named))
    return chooser.named(Path(named))


def _default_observers(registry: Registry, names: Sequence[str]) -> list[Observer]:
    """The observers that watch every run but the console, which the caller brings, and those named; each once."""
    usual = [spec for spec in registry.default_observers() if spec.name != "console"]
    wanted = dict.fromkeys([*usual, *map(registry.observer, names)])
    return [load_object(spec.load)() for spec in wanted]


@contextmanager
def _transport(
    config: ResolvedConfig, plan: WorkerPlan, local: bool, run_folder: Path | None
) -> Iterator[Transport]:
    """Where the workers live, for the length of the block; whatever happens, nothing is left running. run_folder: that
    of a training run, with learners and samplers; None: only its evaluators are needed."""
    with ExitStack() as stack:
        if local:
            transport: Transport = LocalTransport()
        else:
            from omnirl.runtime.cluster import Needs, connected

            training = run_folder is not None
            cpus = plan.num_evaluators + (plan.num_samplers + plan.num_learners if training else 0)
            ray = config.ray
            cluster = stack.enter_context(
                connected(
                    ray.address,
                    Needs(cpus, plan.num_learners if training and plan.device == "cuda" else 0),
                    num_cpus=ray.num_cpus,
                    object_store_memory=ray.object_store_memory,
                    start_timeout=ray.start_timeout_s,
                    folder=run_folder,
                )
            )
            from omnirl.runtime.ray_transport import RayTransport

            transport = RayTransport(cluster, ray.start_timeout_s)
        stack.callback(transport.close)
        yield transport
