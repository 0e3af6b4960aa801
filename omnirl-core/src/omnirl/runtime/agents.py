"""Agent files of a run: which one is meant, loaded safely and checked against the configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnirl.api.data import Array
from omnirl.api.errors import CheckpointError, NotFoundError
from omnirl.api.plugin import AlgorithmSpec, load_object
from omnirl.api.specs import EnvSpec
from omnirl.runtime.best import best_version
from omnirl.runtime.saving import agent_versions

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
    path: Path, algorithm: AlgorithmSpec, env_spec: EnvSpec
) -> tuple[dict[str, Array], Mapping[str, Any]]:
    """``(weights, meta)``. Raises CheckpointError (exit 5): not an agent file, or of another algorithm or space."""
    weights, meta = load_object(algorithm.agent_file).load(str(path))
    check_fits(str(path), meta, algorithm.name, env_spec)
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
