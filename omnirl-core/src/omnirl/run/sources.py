"""Where a configuration comes from: presets, files, mappings, a run's folder; and which agent of a run is meant."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omnirl import plugins
from omnirl.api.errors import ConfigError, NotFoundError
from omnirl.config import check, files
from omnirl.config import overrides as override_rules
from omnirl.config.files import Tree
from omnirl.config.resolve import ResolvedConfig, resolve
from omnirl.plugins import Registry
from omnirl.runtime import setup
from omnirl.runtime.agents import agent_path
from omnirl.runtime.run_dir import CONFIG_FILE, is_run

RUNS = Path("runs")
Source = str | os.PathLike[str] | Mapping[str, Any] | Tree


def configure(
    *sources: Source, overrides: Sequence[str] = (), registry: Registry | None = None
) -> ResolvedConfig:
    """Merge presets, files and mappings, the later over the earlier, then ``KEY=VALUE`` overrides, and check them.

    Raises ConfigError with every mistake at once, NotFoundError for a source that is not there.
    """
    registry = registry or plugins.load()
    trees = [_tree(source, registry) for source in sources]
    config = resolve(files.merge(*trees, override_rules.parse(overrides)), registry)
    check.check_files(config)
    return config


def _tree(source: Source, registry: Registry) -> Tree:
    if isinstance(source, Tree):
        return source
    if isinstance(source, Mapping):
        return files.from_mapping(source, "settings from Python")
    name = os.fspath(source)
    if name.endswith((".yaml", ".yml")) or os.path.sep in name or os.path.isfile(name):
        return files.load_file(name)
    try:
        preset = registry.preset(name)
    except NotFoundError:
        if os.path.isdir(name):
            return files.load_file(name)  # says what a folder is good for
        raise
    return files.load_preset(preset)


def saved_run(source: Source, overrides: Sequence[str]) -> tuple[ResolvedConfig, Path]:
    """The configuration of a run's folder, or of a source that names one."""
    if isinstance(source, str | os.PathLike) and is_run(Path(source)):
        folder = Path(source)
        # Nothing is written, so the folder that the file names need not be writable, or there.
        # It has no origin, so the file stays that of all mistakes.
        elsewhere = Tree({"runner": {"ckpt_dir": None}})
        return configure(folder / CONFIG_FILE, elsewhere, overrides=overrides), folder
    config = configure(source, overrides=overrides)
    return config, Path(config.runner.ckpt_dir or RUNS / setup.run_name(config))


def configured_agent(config: ResolvedConfig, folder: Path) -> Path:
    """The agent that ``runner.eval_model`` names, else the newest. One that is not there is a ConfigError."""
    try:
        return agent_path(folder, config.runner.eval_model)
    except NotFoundError as error:
        if config.runner.eval_model is None:
            raise
        lines = [config.line(("runner", "eval_model"), line) for line in error.lines]
        raise ConfigError(lines) from error
