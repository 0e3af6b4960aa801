"""Everything that is decided and checked before the first worker starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnirl.api.observer import RunInfo, RunSummary
from omnirl.config import check, files
from omnirl.config.resolve import ResolvedConfig
from omnirl.runtime import checkpoint, setup
from omnirl.runtime.agents import check_fits
from omnirl.runtime.changes import Changes
from omnirl.runtime.checkpoint import Loaded
from omnirl.runtime.logbook import columns
from omnirl.runtime.pacing import StopTarget
from omnirl.runtime.plan import WorkerPlan
from omnirl.runtime.reservation import check_memory
from omnirl.runtime.run_dir import CONFIG_FILE, RunFolder
from omnirl.runtime.saves import SaveSettings
from omnirl.runtime.saving import remove_leftovers
from omnirl.runtime.train import TrainSettings
from omnirl.runtime.versions import versions


@dataclass(frozen=True)
class PreparedRun:
    """A run that may start."""

    config: ResolvedConfig
    plan: WorkerPlan
    target: StopTarget
    settings: TrainSettings
    resumed: Loaded | None
    notices: tuple[str, ...]
    changes: Changes

    def info(self, local: bool) -> RunInfo:
        """What observers are told at the start."""
        plan, config = self.plan, self.config
        env_id = setup.environment_name(config)
        seed = config.seed.learner
        notices = list(self.notices)
        if not local and plan.num_samplers == 1 and plan.flow.max_lead == 0:
            notices.append(
                "one sampler in lock-step with the learner: --local does the same faster, and "
                "runner.max_lead=1 lets the two overlap"
            )
        return RunInfo(
            run_dir=self.settings.saves.run_dir,
            title=f"{config.algorithm.name.upper()} {env_id} seed {seed}",
            algorithm=config.algorithm.name,
            env_id=env_id,
            seed=seed,
            columns=self.settings.columns,
            total_updates=self.target.updates,
            total_steps=self.target.steps,
            num_samplers=plan.num_samplers,
            num_evaluators=plan.num_evaluators,
            num_learners=plan.num_learners,
            transport="local" if local else "ray",
            resumed_from=self.resumed.manifest["counters"]["updates"] if self.resumed else None,
            config=config.plain(),
            notices=tuple(notices),
        )

    @contextmanager
    def written_config(self) -> Iterator[None]:
        """run_config.yaml: everything resolved, and the versions; training it again repeats the run.

        A resumed run that fails before it has saved anything gets its old one back: the checkpoint that is
        still there belongs to that.
        """
        path = Path(self.settings.saves.run_dir) / CONFIG_FILE
        old = path.read_bytes() if self.resumed is not None and path.is_file() else None
        saved = _identity(path.with_name(checkpoint.CURRENT))
        _replace(path, files.dump({**self.config.plain(), "versions": versions()}).encode())
        try:
            yield
        except BaseException:
            if old is not None and _identity(path.with_name(checkpoint.CURRENT)) == saved:
                _replace(path, old)
            raise

    def failed(self, error: BaseException) -> RunSummary:
        """The summary of a run that ended with an error."""
        return RunSummary(
            "failed", self.settings.saves.run_dir, 0, 0, 0, 0.0, 0.0, 0.0, {}, False, str(error)
        )


def _other_learners(resumed: Loaded, plan: WorkerPlan) -> str:
    """What a resume with another number of learners keeps."""
    before = f"{resumed.learners} learner{'' if resumed.learners == 1 else 's'}"
    text = f"the checkpoint is of {before}, now there are {plan.num_learners}: the weights and the optimizer go on"
    if not resumed.manifest["memory"]:
        return text
    warmup = plan.flow.warmup_steps
    again = f"; {warmup} steps of warm-up are collected anew" if warmup else ""
    return f"{text}, what was collected for the next updates is left out{again}"


def _replace(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f"{path.name}.tmp")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def prepare(
    config: ResolvedConfig, folder: RunFolder, earlier: Mapping[str, Any] | None = None
) -> PreparedRun:
    """Check a decided configuration against its environment and its checkpoint. earlier: the content of the folder's
    run_config.yaml, where the run goes on.

    Raises ConfigError, or CheckpointError where the folder's checkpoint does not fit.
    """
    check.check_end(config)
    env_spec = setup.env_spec_of(config)
    check.check_spaces(config, env_spec)
    config = setup.decide_network(config, env_spec)
    check.check_device(config)
    plan, target = setup.plan_of(config, env_spec)
    save_memory = config.runner.save_memory or plan.flow.max_lead == 0
    check_memory(config, env_spec, saved=save_memory)
    resumed = None
    if folder.resume:
        resumed = checkpoint.load_latest(folder.path).of_driver()
        check_fits(str(resumed.path), resumed.manifest, config.algorithm.name, env_spec)
    changes = Changes.between(earlier or {}, config.plain() if earlier else {})
    remove_leftovers(folder.path)
    described = {
        "algorithm": config.algorithm.name,
        "spaces": env_spec.describe(),
        "versions": versions(),
    }
    runner = config.runner
    saves = SaveSettings(
        run_dir=str(folder.path),
        interval=runner.save_interval,
        memory=save_memory,
        keep_last=runner.keep_last,
        keep_best=runner.keep_best,
        manifest=described,
        agent_meta={**described, "config": config.plain()},
        env_changes=(*changes.env, *changes.seed),
    )
    names = columns(env_spec.eval_metrics, config.algorithm.metric_names)
    settings = TrainSettings(
        eval_interval=runner.eval_interval,
        log_interval=runner.log_interval,
        step_timeout=runner.step_timeout_s,
        on_nan=runner.on_nan,
        columns=names,
        saves=saves,
        stop_return=runner.stop_return,
    )
    notices = [folder.notice] if folder.notice else []
    notices += [*(resumed.notices if resumed else ()), *config.notes, *env_spec.notes]
    if resumed is not None and resumed.learners != plan.num_learners:
        notices.append(_other_learners(resumed, plan))
    if resumed is not None and (changed := (*changes.modules, *changes.env, *changes.seed)):
        notices.append(f"changed since the checkpoint: {'; '.join(changed)}")
    made = resumed.manifest["counters"]["updates"] if resumed else 0
    if made >= target.updates:
        notices.append(
            f"nothing is left to train: {made} updates were made and the target is {target.updates}; raise "
            "runner.max_updates or runner.max_steps"
        )
    return PreparedRun(config, plan, target, settings, resumed, tuple(notices), changes)
