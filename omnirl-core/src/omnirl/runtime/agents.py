"""Agent files of a run: which one is meant, loaded safely and checked against the configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnirl.api.data import Array
from omnirl.api.errors import CheckpointError, NotFoundError
from omnirl.api.plugin import load_object
from omnirl.api.specs import EnvSpec
from omnirl.config import models
from omnirl.config.resolve import ResolvedConfig
from omnirl.runtime.best import best_version
from omnirl.runtime.changes import Changes
from omnirl.runtime.saving import agent_versions
from omnirl.runtime.setup import decide_network

BEST = "best"


def agent_path(folder: Path, model: str | None) -> Path:
    """The file of ``model``: ``"agent_100"``, ``"agent_100.pth"``, a path, ``"best"`` for that of the best evaluation;
    the newest where it is None.

    Raises NotFoundError (exit 3) with the list of those there.
    """
    versions = agent_versions(folder)
    there = ", ".join(f"agent_{version}" for version in versions) or "none"
    if model is None:
        if not versions:
            raise NotFoundError(f"{folder}: holds no agent file (agent_<version>.pth)")
        return folder / f"agent_{versions[-1]}.pth"
    if model == BEST:
        best = best_version(folder)
        if best is None:
            raise NotFoundError(
                f"{folder}: no best agent: none was kept by an evaluation; there are: {there}"
            )
        model = f"agent_{best[0]}"
    for path in (folder / model, folder / f"{model}.pth", Path(model)):
        if path.is_file():
            return path
    raise NotFoundError(f"{folder}: no model {model!r}; there are: {there}")


def load_agent(
    path: Path, config: ResolvedConfig, env_spec: EnvSpec
) -> tuple[dict[str, Array], Mapping[str, Any]]:
    """``(weights, meta)``. Raises CheckpointError (exit 5): not an agent file, or of another algorithm, space or
    network."""
    weights, meta = load_object(config.algorithm.agent_file).load(str(path))
    check_fits(str(path), meta, config.algorithm.name, env_spec)
    check_network(str(path), meta, models.plain(decide_network(config, env_spec).agent).get("network", {}))
    return weights, meta


def check_fits(name: str, meta: Mapping[str, Any], algorithm: str, env_spec: EnvSpec) -> None:
    """Raise CheckpointError with one line per difference between what was saved and what is configured."""
    lines = []
    if meta.get("algorithm") != algorithm:
        lines.append(f"{name}: saved by {meta.get('algorithm')!r}, the configuration says {algorithm!r}")
    saved = meta.get("spaces") or {}
    configured = json.loads(json.dumps(env_spec.describe()))
    for part in ("observation", "action"):
        if not lines and saved.get(part) != configured[part]:
            lines.append(f"{name}: {part} space saved {saved.get(part)}, configured {configured[part]}")
    if lines:
        raise CheckpointError(lines)


def check_network(name: str, meta: Mapping[str, Any], configured: Mapping[str, Any]) -> None:
    """Raise CheckpointError with one line per key of ``modules.network`` that differs from what was trained: another
    activation would fit the weights and act otherwise."""
    saved = meta.get("config", {}).get("modules", {}).get("network", {})
    known = {key: value for key, value in saved.items() if key in configured}
    changes = Changes.between({"modules": {"network": known}}, {"modules": {"network": configured}})
    lines = [f"{name}: {change}: give it the network that it was trained with" for change in changes.modules]
    if lines:
        raise CheckpointError(lines)
