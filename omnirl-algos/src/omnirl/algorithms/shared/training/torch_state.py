"""The agent file: the weights of one version and what is known about them, with no code in it.

``{"weights": {name: tensor}, "meta": {...}}``, loadable with ``torch.load(path, weights_only=True)`` alone.
Nothing is ever unpickled beyond that; a file that asks for more is refused.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from omnirl.api import Array, CheckpointError


class AgentFile:
    """Saves and loads agent files; the ``agent_file`` of every algorithm here."""

    def save(self, path: str | Path, weights: Mapping[str, Array], meta: Mapping[str, Any]) -> None:
        """Write the file in one step: it is either there and whole, or not there.

        ``meta`` is JSON data; TypeError or ValueError where it is not.
        """
        content = {
            "weights": {name: torch.from_numpy(np.array(array)) for name, array in weights.items()},
            "meta": json.loads(json.dumps(dict(meta), allow_nan=False)),
        }
        temporary = f"{path}.tmp"
        try:
            with open(temporary, "wb") as file:
                torch.save(content, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)

    def load(self, path: str | Path) -> tuple[dict[str, Array], dict[str, Any]]:
        """``(weights, meta)``. CheckpointError where the file is missing, damaged, or not one of weights
        only."""
        if not Path(path).is_file():
            raise CheckpointError(f"{path}: no such file")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                content = torch.load(path, map_location="cpu", weights_only=True)
            weights = {str(name): tensor.numpy() for name, tensor in content["weights"].items()}
            meta = json.loads(json.dumps(dict(content["meta"])))
        except Exception as error:
            # Whatever a hostile or damaged file makes torch raise, the answer to the user is the same.
            raise CheckpointError(f"{path}: refused: not a weights-only file") from error
        return weights, meta


AGENT_FILE = AgentFile()
