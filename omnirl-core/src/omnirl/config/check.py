"""Mistakes that only show across sections (stage 1), against the environment or the hardware (stage 2)."""

from __future__ import annotations

import os
import re
from pathlib import Path as FilePath

from omnirl.api.algorithm import DataFlow, FlowContext
from omnirl.api.errors import ClusterError, ConfigError, PluginError
from omnirl.api.plugin import load_object
from omnirl.api.specs import EnvSpec
from omnirl.config import hardware
from omnirl.config.messages import Mistake, located
from omnirl.config.positions import Positions
from omnirl.config.resolve import ResolvedConfig
from omnirl.config.sections import SECTIONS
from omnirl.config.spaces import space_mistakes
from omnirl.plugins.sources import one_line

_PLACED = re.compile(r"([A-Za-z_]\w*(?:\.\w+)+): (.+)", re.DOTALL)


def check_files(config: ResolvedConfig) -> None:
    """Stage 1: what needs no environment and no hardware.

    Calls the algorithm's ``data_flow`` (with ``num_samplers: auto`` resolved), which refuses sizes that
    do not fit each other. Raises ConfigError with a line for each mistake.
    """
    runner = config.runner
    name = config.algorithm.name
    mistakes = []
    if runner.eval_model is None:
        mistakes += _without_end(config)
    if runner.num_learners > 1 and not config.algorithm.supports.learners:
        mistakes.append(
            Mistake(("runner", "num_learners"), f"{name} learns in one process, not in {runner.num_learners}")
        )
    elif num_samplers(config) < runner.num_learners:
        samplers = num_samplers(config)
        text = f"{runner.num_learners} learners need at least as many samplers, not {samplers}"
        mistakes.append(Mistake(("runner", "num_learners"), text))
    if getattr(config.env, "render_mode", None) == "human" and runner.num_evaluators > 1:
        text = f"human opens one window: set runner.num_evaluators to 1, not {runner.num_evaluators}"
        mistakes.append(Mistake(("env", "render_mode"), text))
    if runner.ckpt_dir is not None:
        problem = _unusable(FilePath(runner.ckpt_dir))
        if problem:
            mistakes.append(Mistake(("runner", "ckpt_dir"), problem))
    mistakes += _stop_mistakes(config)
    mistakes += _flow_mistakes(config, num_samplers(config))
    raise_all(config, mistakes)


def check_end(config: ResolvedConfig) -> None:
    """Raise ConfigError unless the configuration says when training stops."""
    raise_all(config, _without_end(config))


def check_one_process(config: ResolvedConfig) -> None:
    """Raise ConfigError where a run in one process (``--local``) is asked for several learners."""
    count = config.runner.num_learners
    if count > 1:
        text = f"{count} learners need processes of their own: leave --local out, or set it to 1"
        raise_all(config, [Mistake(("runner", "num_learners"), text)])


def check_spaces(config: ResolvedConfig, env_spec: EnvSpec) -> None:
    """Stage 2: raise ConfigError where the algorithm or its network do not fit the spaces."""
    mistakes = space_mistakes(config, env_spec)
    if config.runner.stop_return is not None and "return_mean" not in env_spec.eval_metrics:
        text = f"{config.backend.name} reports no return_mean, only {', '.join(env_spec.eval_metrics) or 'nothing'}"
        mistakes.append(Mistake(("runner", "stop_return"), text))
    raise_all(config, mistakes)


def check_device(config: ResolvedConfig) -> None:
    """Stage 2: ``device.learner: cuda`` without CUDA is a ConfigError; too few GPUs for the learners a ClusterError
    (too few resources). A cluster that is joined may have them elsewhere.

    Asked of a child process, and only for cuda, so that this one never imports torch.
    """
    if config.device.learner != "cuda":
        return
    problem = hardware.cuda_problem()
    if problem:
        raise_all(config, [Mistake(("device", "learner"), problem)])
    learners = config.runner.num_learners
    if learners > 1 and config.ray.address == "local" and (found := hardware.cuda_devices()) < learners:
        text = (
            f"{learners} learners need a GPU each, torch finds {found}: lower it, or use device.learner=cpu"
        )
        raise ClusterError(config.line("runner.num_learners", text))


def placed(config: ResolvedConfig, error: ConfigError) -> ConfigError:
    """A plugin's error with the positions of the keys that its lines begin with (``env.id: ...``)."""
    positions = Positions(config.tree)
    mistakes = [_placed(config, line) for line in error.lines if _PLACED.fullmatch(line)]
    others = [line for line in error.lines if not _PLACED.fullmatch(line)]
    return ConfigError([*(positions.line(item.path, item.text, item.at) for item in mistakes), *others])


def num_samplers(config: ResolvedConfig) -> int:
    """The number of samplers, ``auto`` resolved for this machine."""
    number, learners = config.runner.num_samplers, config.runner.num_learners
    return max(learners, hardware.cores() - learners) if number == "auto" else number


def raise_all(config: ResolvedConfig, mistakes: list[Mistake]) -> None:
    """Raise one ConfigError with a line per mistake, in file order; nothing where there is none."""
    if not mistakes:
        return
    positions = Positions(config.tree)
    mistakes = sorted(mistakes, key=lambda mistake: positions.order(mistake.at or mistake.path))
    raise ConfigError([positions.line(item.path, item.text, item.at) for item in mistakes])


def _without_end(config: ResolvedConfig) -> list[Mistake]:
    if config.runner.max_updates is not None or config.runner.max_steps is not None:
        return []
    text = "missing: say when training stops, by runner.max_updates or runner.max_steps"
    return [Mistake(("runner", "max_updates"), text)]


def _stop_mistakes(config: ResolvedConfig) -> list[Mistake]:
    """A return to stop at needs evaluations before the end."""
    runner = config.runner
    if runner.stop_return is None or (runner.eval_interval and runner.num_evaluators):
        return []
    needed = "runner.eval_interval" if runner.num_evaluators else "runner.num_evaluators"
    return [Mistake(("runner", "stop_return"), f"needs evaluations during training: set {needed}")]


def _unusable(folder: FilePath) -> str | None:
    """Why files cannot be written into ``folder``, which need not be there yet."""
    try:
        if folder.exists() and not folder.is_dir():
            return f"{folder} is a file, not a folder"
        existing = next((path for path in (folder, *folder.absolute().parents) if path.exists()), None)
    except OSError as error:
        return f"{folder} cannot be a folder: {error.strerror}"
    if existing is None or not existing.is_dir():
        return f"{folder} cannot be made: {existing} is a file"
    if not os.access(existing, os.W_OK | os.X_OK):
        verb = "written to" if existing == folder else "made"
        return f"{folder} cannot be {verb}: no permission to write in {existing}"
    return None


def _flow_mistakes(config: ResolvedConfig, samplers: int) -> list[Mistake]:
    """What the algorithm's data_flow refuses. Its lines may begin with a key: ``memory.capacity: ...``."""
    owner = f"algorithm {config.algorithm.name!r}"
    context = FlowContext(config.runner.num_envs_per_sampler, samplers)
    try:
        flow = load_object(config.algorithm.data_flow)(config.agent, context)
    except ConfigError as error:
        return [_placed(config, line) for line in error.lines]
    except Exception as error:
        raise PluginError(f"{owner}: its data_flow raised {one_line(error)}") from error
    if not isinstance(flow, DataFlow):
        raise PluginError(f"{owner}: its data_flow returned {flow!r}, not a DataFlow")
    if min(flow.unroll_length, flow.steps_per_update) < 1 or min(flow.warmup_steps, flow.max_lead) < 0:
        raise PluginError(f"{owner}: its data_flow returned {flow!r}, whose numbers are out of range")
    return []


def _placed(config: ResolvedConfig, line: str) -> Mistake:
    match = _PLACED.fullmatch(line)
    if match and match[1].partition(".")[0] in SECTIONS:
        keys = match[1].split(".")
        return Mistake(tuple(int(key) if key.isdigit() else key for key in keys), match[2])
    return located(("modules",), (), line, type(config.agent), config.tree.data.get("modules"))
