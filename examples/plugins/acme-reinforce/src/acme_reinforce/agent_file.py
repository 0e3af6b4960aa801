"""Agent files: a numpy archive of the weights and a JSON text. Nothing in it is ever unpickled."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from omnirl.api import Array, CheckpointError


class AgentFile:
    """``save`` and ``load``, which ``omnirl test`` calls in its own process."""

    def save(self, path: str, weights: Mapping[str, Array], meta: Mapping[str, Any]) -> None:
        """Write the file beside its place and put it there whole."""
        content: dict[str, Any] = {**weights, "__meta__": np.array(json.dumps(dict(meta)))}
        with open(f"{path}.tmp", "wb") as stream:
            np.savez(stream, **content)
        os.replace(f"{path}.tmp", path)

    def load(self, path: str) -> tuple[dict[str, Array], dict[str, Any]]:
        """``(weights, meta)``. CheckpointError for whatever is not such a file."""
        try:
            with np.load(path, allow_pickle=False) as archive:
                weights = {name: archive[name] for name in archive.files}
            return weights, json.loads(str(weights.pop("__meta__")))
        except Exception as error:  # damaged files make numpy raise many things; the answer is one
            raise CheckpointError(f"{path}: refused: not an agent file ({error})") from error


AGENT_FILE = AgentFile()
