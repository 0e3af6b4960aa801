"""Rows of observations as tensors of their own: pixels scaled, the entries of a dictionary taken apart again.

Letters: N batch rows; V numbers of all vectors together; C channels, H height, W width of an image.
"""

from __future__ import annotations

import torch
from torch import Tensor

from omnirl.api import ArraySpec
from omnirl.networks.joined import JoinedSpec


def pixels(images: Tensor, dtype: str) -> Tensor:
    """Images [N, C, H, W] as float32 in [0, 1]: those of uint8 are scaled by 1/255 here and nowhere else; those of
    other dtypes are in [0, 1] already."""
    scaled = images.to(torch.float32)
    return scaled * (1.0 / 255.0) if dtype == "uint8" else scaled


class JoinedRows:
    """Takes the rows of a :class:`omnirl.networks.joined.JoinedSpec` apart."""

    def __init__(self, observation: JoinedSpec) -> None:
        self._observation = observation
        self._places = []
        for begin, (_, entry) in zip(observation.offsets(), observation.images):
            dtype: torch.dtype = getattr(torch, entry.dtype)
            self._places.append((begin, begin + entry.size * dtype.itemsize, dtype, entry.shape))

    def vectors(self, rows: Tensor) -> Tensor:
        """All vectors side by side, float32 [N, V], a view."""
        if not self._observation.images:
            return rows
        return rows[:, : 4 * self._observation.vector_size].view(torch.float32)

    def images(self, rows: Tensor) -> list[Tensor]:
        """Each image [N, C, H, W] in its own dtype."""
        return [
            rows[:, begin:end].view(dtype).reshape(-1, *shape) for begin, end, dtype, shape in self._places
        ]


class Inputs:
    """Rows as float32 tensors in the shapes of the observation's spec: images in [0, 1], vectors as they are; of a
    dictionary each entry by its name."""

    def __init__(self, observation: ArraySpec) -> None:
        self._observation = observation
        self._joined = JoinedRows(observation) if isinstance(observation, JoinedSpec) else None

    def __call__(self, rows: Tensor) -> Tensor | dict[str, Tensor]:
        """[N, ...] -> [N, *shape], or name -> [N, *shape]."""
        spec = self._observation
        if self._joined is None:
            return pixels(rows, spec.dtype if spec.layout == "image" else "").view(-1, *spec.shape)
        assert isinstance(spec, JoinedSpec)
        sizes = [entry.size for _, entry in spec.vectors]
        vectors = torch.split(self._joined.vectors(rows), sizes, 1)
        parts = {name: part.reshape(-1, *entry.shape) for (name, entry), part in zip(spec.vectors, vectors)}
        for (name, entry), image in zip(spec.images, self._joined.images(rows)):
            parts[name] = pixels(image, entry.dtype)
        return parts
