"""From a resolved configuration to the plan that workers are built from: every ``auto`` is decided here, once."""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from omnirl.api.algorithm import DataFlow, FlowContext
from omnirl.api.environment import Decision, DecisionContext, EnvBackend
from omnirl.api.errors import ConfigError, OmniRLError, PluginError, SpaceError
from omnirl.api.plugin import load_object
from omnirl.api.specs import EnvSpec
from omnirl.config import check, hardware, models
from omnirl.config.resolve import ResolvedConfig
from omnirl.loops.forms import spec_misfits
from omnirl.runtime.pacing import StopTarget
from omnirl.runtime.plan import Seeds, WorkerPlan


def decide(config: ResolvedConfig, earlier: Mapping[str, Any] | None = None) -> ResolvedConfig:
    """The configuration with every ``auto`` replaced, as it is written into run_config.yaml.

    earlier: that file's content, where a run goes on, whose decisions are kept. Raises ConfigError where the backend
    cannot decide.
    """
    if earlier is not None:
        config = config.decided(_kept(config.plain(), earlier))
    samplers = check.num_samplers(config)
    changes: dict[str, Any] = {"runner": {}, "device": {}}  # what was set keeps its place in the file
    if config.runner.num_samplers == "auto":
        changes["runner"]["num_samplers"] = samplers
    if config.device.threads == "auto":
        changes["device"]["threads"] = max(1, (hardware.cores() - samplers) // config.runner.num_learners)
    if config.device.learner == "auto":
        changes["device"]["learner"] = "cuda" if hardware.has_cuda(config.runner.num_learners) else "cpu"
    decisions = _of_backend(config, samplers)
    changes["env"] = {decision.key: decision.value for decision in decisions}
    notes = [f"env.{item.key}: auto is {item.value}: {item.reason}" for item in decisions if item.reason]
    return replace(config.decided(changes), notes=tuple(notes))


def _of_backend(config: ResolvedConfig, samplers: int) -> list[Decision]:
    """What the backend decides. Its simulator is imported only where it has anything to decide."""
    if "auto" not in models.plain(config.env).values():
        return []
    decide = _functions(config).decide
    if decide is None:
        return []
    context = DecisionContext(config.runner.num_envs_per_sampler, samplers)
    what = f"environment backend {config.backend.name!r}: decide"
    return _asked(config, what, lambda env: list(decide(env, context)))  # type: ignore[no-any-return]


def _kept(wanted: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """What each ``auto`` of ``wanted`` became in ``earlier``, in the same nested layout."""
    kept: dict[str, Any] = {}
    for key, value in wanted.items():
        before = earlier.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if below := _kept(value, before):
                kept[key] = below
        elif value == "auto" and before not in (None, "auto"):
            kept[key] = before
    return kept


def env_spec_of(config: ResolvedConfig) -> EnvSpec:
    """Ask the backend what the environment looks like; this imports its simulator. Raises ConfigError, or PluginError
    where the backend is not what it should be."""
    owner = f"environment backend {config.backend.name!r}"
    spec = _asked(config, f"{owner}: get_env_spec", _functions(config).get_env_spec)
    misfits = [f"{owner}: get_env_spec returned {misfit}" for misfit in spec_misfits(spec)]
    if misfits:
        raise PluginError(misfits)
    described: EnvSpec = spec
    return described


def _functions(config: ResolvedConfig) -> EnvBackend:
    """The backend's functions. Raises PluginError."""
    owner, reference = f"environment backend {config.backend.name!r}", config.backend.backend
    functions = _asked(config, f"{owner}: {reference}", lambda _: load_object(reference))
    if not isinstance(functions, EnvBackend):
        raise PluginError(f"{owner}: {reference} is a {type(functions).__name__}, not an EnvBackend")
    return functions


def _asked(config: ResolvedConfig, what: str, ask: Callable[[Any], Any]) -> Any:
    """What a backend's code answers for its section; its own failure is shown with its traceback."""
    try:
        return ask(config.env)
    except SpaceError as error:
        lines = [f"{line} [algorithm {config.algorithm.name}]" for line in error.lines]
        raise check.placed(config, ConfigError(lines)) from error
    except ConfigError as error:
        raise check.placed(config, error) from error
    except OmniRLError:
        raise
    except Exception as error:  # a plugin's code may raise anything
        text = f"{what} raised {type(error).__name__}: {error}"
        raise PluginError([text, *traceback.format_exc().rstrip().splitlines()]) from error


def decide_network(config: ResolvedConfig, env_spec: EnvSpec) -> ResolvedConfig:
    """The configuration with ``network.kind: auto`` decided for these observations, where the algorithm has it."""
    network = getattr(config.agent, "network", None)
    choose = getattr(network, "for_observation", None)
    if choose is None or getattr(network, "kind", None) != "auto":
        return config
    kind = choose(env_spec.observation).kind
    return config.decided({"modules": {"network": {"kind": kind}}})


def flow_of(config: ResolvedConfig) -> DataFlow:
    """The algorithm's four numbers, with the runner's ``max_lead`` where it is set."""
    runner = config.runner
    context = FlowContext(runner.num_envs_per_sampler, int(runner.num_samplers))
    flow: DataFlow = load_object(config.algorithm.data_flow)(config.agent, context)
    return flow if runner.max_lead is None else replace(flow, max_lead=runner.max_lead)


def plan_of(config: ResolvedConfig, env_spec: EnvSpec) -> tuple[WorkerPlan, StopTarget]:
    """The plan of a decided configuration, and where its run stops. Raises ConfigError."""
    runner = config.runner
    flow = flow_of(config)
    rollout_steps = flow.unroll_length * runner.num_envs_per_sampler
    if runner.max_updates is None and runner.max_steps is None:
        target = StopTarget(
            1, flow.warmup_steps + flow.steps_per_update, None
        )  # only evaluated, never trained
    else:
        target = StopTarget.of(flow, rollout_steps, runner.max_updates, runner.max_steps)
    if target.updates < 1:
        rollouts = math.ceil((flow.warmup_steps + flow.steps_per_update) / rollout_steps)
        least = rollouts * rollout_steps  # part of a rollout is not collected
        text = f"{runner.max_steps} steps allow no update; at least {least} are needed"
        raise ConfigError(config.line(("runner", "max_steps"), text))
    plan = WorkerPlan(
        algorithm=config.algorithm,
        agent=models.plain(config.agent),
        backend=config.backend,
        env=models.plain(config.env),
        env_spec=env_spec,
        flow=flow,
        num_envs=runner.num_envs_per_sampler,
        num_samplers=int(runner.num_samplers),
        num_evaluators=runner.num_evaluators,
        episodes=runner.num_episodes,
        seeds=Seeds(config.seed.learner, config.seed.sampler, config.seed.evaluator),
        target_updates=target.updates,
        target_steps=target.steps,
        device=config.device.learner,
        threads=int(config.device.threads),
        num_learners=runner.num_learners,
    )
    return plan, target


def run_name(config: ResolvedConfig) -> str:
    """The default folder's name: the preset, or algorithm and environment; and the seed."""
    sources = (origin.source for origin in config.tree.origins.values())
    preset = next((source[7:] for source in sources if source.startswith("preset ")), None)
    name = preset or f"{config.algorithm.name}-{environment_name(config)}"
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}-seed{config.seed.learner}"


def environment_name(config: ResolvedConfig) -> str:
    """The environment's id, or the backend's name where it has none."""
    return str(getattr(config.env, "id", "") or config.backend.name)
