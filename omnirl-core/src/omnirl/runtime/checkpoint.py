"""Checkpoints: a tree of arrays and scalars in one verified file, written in the background, replaced atomically.

``checkpoint.ckpt`` is an uncompressed zip of ``manifest.json`` (format, algorithm, versions, spaces, counters, and a
sha256 per entry), ``tree.json`` and one ``.npy`` per array. Nothing in it is ever unpickled. It is written beside
its place, fsynced and put there by ``os.replace``; the one before stays as ``checkpoint.prev.ckpt``. Large arrays of
a memory are cut into segments in ``replay/``, named by their sha256: a save writes only those that changed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from omnirl.api.data import Array
from omnirl.api.errors import CheckpointError

FORMAT = 1
CURRENT, PREVIOUS, SEGMENTS = "checkpoint.ckpt", "checkpoint.prev.ckpt", "replay"
_SEGMENT_BYTES = 8 << 20
TEMPORARY = ".tmp"


@dataclass
class _Encoder:
    """Turns a tree into JSON and the arrays that it refers to."""

    segment_folder: Path
    arrays: list[Array] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)

    def encode(self, value: Any, segmented: bool, place: str = "") -> Any:
        """Raises TypeError where something is neither a container, an array nor a scalar of JSON's."""
        if isinstance(value, Mapping):
            return {
                str(key): self.encode(item, segmented or key == "memory", f"{place}/{key}")
                for key, item in value.items()
            }
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            if segmented and value.ndim > 0 and value.nbytes > _SEGMENT_BYTES:
                return {"__segments__": self._segments(value), "dtype": value.dtype.str, "shape": value.shape}
            if id(value) not in self.places:  # an array that stands in several places is written once
                self.places[id(value)] = len(self.arrays)
                self.arrays.append(value)
            return {"__array__": self.places[id(value)]}
        if isinstance(value, list | tuple):
            return [self.encode(item, segmented, f"{place}/{i}") for i, item in enumerate(value)]
        if value is not None and not isinstance(value, str | int | float):
            text = f"what is to be saved holds a {type(value).__name__} at {place[1:]}"
            raise TypeError(f"{text}: states are mappings and lists of numpy arrays, numbers, text and None")
        return value

    def _segments(self, array: Array) -> list[str]:
        self.segment_folder.mkdir(exist_ok=True)
        rows = max(1, _SEGMENT_BYTES // max(1, array[:1].nbytes))
        names, new = [], False
        for start in range(0, len(array), rows):
            data = _npy(array[start : start + rows])
            name = hashlib.sha256(data).hexdigest()
            path = self.segment_folder / f"{name}.npy"
            if not path.exists():
                _write_durably(path, data)
                new = True
            names.append(name)
        if new:
            _sync_folder(self.segment_folder)  # a checkpoint that refers to them comes later
        return names


def _npy(array: Array) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array, order="C"), allow_pickle=False)
    return stream.getvalue()


def _write_durably(path: Path, data: bytes) -> None:
    temporary = path.with_name(path.name + TEMPORARY)
    with open(temporary, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)


def _sync_folder(path: Path) -> None:
    """Return when the names in a folder are on the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write(path: Path, manifest: Mapping[str, Any], tree: Mapping[str, Any]) -> None:
    """Write a checkpoint at ``path``; what stood there becomes ``checkpoint.prev.ckpt``."""
    encoder = _Encoder(path.parent / SEGMENTS)
    entries = {"tree.json": json.dumps(encoder.encode(tree, False)).encode()}
    entries.update({f"arrays/{i}.npy": _npy(array) for i, array in enumerate(encoder.arrays)})
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in entries.items()}
    head = json.dumps({"format": FORMAT, **manifest, "sha256": hashes}, indent=1).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {"manifest.json": head, **entries}.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    temporary = path.with_name(path.name + TEMPORARY)
    with open(temporary, "wb") as file:
        file.write(stream.getbuffer())
        file.flush()
        os.fsync(file.fileno())
    if path.exists():
        # A link and two replacements: at no moment is there no complete checkpoint under its own name.
        previous = path.with_name(PREVIOUS)
        link = previous.with_name(previous.name + TEMPORARY)
        link.unlink(missing_ok=True)
        os.link(path, link)
        os.replace(link, previous)
    os.replace(temporary, path)
    _sync_folder(path.parent)


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest alone. Raises CheckpointError."""
    with _refusing(path), _opened(path) as archive:
        return _manifest(path, archive)


def read(
    path: Path, choose: Callable[[dict[str, Any]], Mapping[str, Any]] = lambda tree: tree
) -> tuple[dict[str, Any], dict[str, Any]]:
    """``(manifest, tree)``, every entry verified. Raises CheckpointError, in one line that names the file.

    ``choose`` takes from the tree what is wanted, before arrays stand in it: segments of the rest are not read.
    """
    with _refusing(path):
        with _opened(path) as archive:
            manifest = _manifest(path, archive)
            hashes = manifest["sha256"]
            entries = {name: archive.read(name) for name in hashes}
        for name, data in entries.items():
            if hashlib.sha256(data).hexdigest() != hashes[name]:
                raise CheckpointError(f"{path}: damaged: {name} does not match its checksum")
        arrays = {name: _array(data) for name, data in entries.items() if name.endswith(".npy")}
        tree = _decode(choose(json.loads(entries["tree.json"])), arrays, path.parent / SEGMENTS)
    return manifest, tree


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn whatever a damaged or foreign file makes the readers raise, which is a long list, into one error."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise CheckpointError(
            f"{path}: refused: not a weights-only file of OmniRL, or damaged ({reason})"
        ) from error


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: not there") from error
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise CheckpointError(
            f"{path}: refused: not a weights-only file of OmniRL, or damaged ({error})"
        ) from error


def _manifest(path: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    if "manifest.json" not in archive.namelist():
        raise CheckpointError(f"{path}: refused: not a weights-only file of OmniRL (it has no manifest.json)")
    manifest = json.loads(archive.read("manifest.json"))
    number = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(number, int) or number > FORMAT:
        raise CheckpointError(
            f"{path}: refused: format {number}, this version reads up to {FORMAT}; upgrade omnirl-core"
        )
    return dict(manifest)


def _array(data: bytes) -> Array:
    array: Array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return array


def _decode(value: Any, arrays: Mapping[str, Array], segment_folder: Path) -> Any:
    if isinstance(value, dict):
        if "__array__" in value:
            return arrays[f"arrays/{value['__array__']}.npy"]
        if "__segments__" in value:
            return _joined(value, segment_folder)
        return {key: _decode(item, arrays, segment_folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_decode(item, arrays, segment_folder) for item in value]
    return value


def _joined(value: Mapping[str, Any], folder: Path) -> Array:
    result = np.empty(tuple(value["shape"]), np.dtype(value["dtype"]))
    start = 0
    for name in value["__segments__"]:
        path = folder / f"{name}.npy"
        try:
            data = path.read_bytes()
        except OSError as error:
            raise CheckpointError(f"{path}: a part of the replay memory cannot be read: {error}") from error
        if hashlib.sha256(data).hexdigest() != name:
            raise CheckpointError(f"{path}: damaged: does not match its checksum")
        part = _array(data)
        result[start : start + len(part)] = part
        start += len(part)
    return result


@dataclass(frozen=True)
class Loaded:
    """A checkpoint that was read: ``notices`` tell of newer ones that were refused."""

    path: Path
    manifest: dict[str, Any]
    tree: dict[str, Any]
    notices: tuple[str, ...]

    @property
    def learners(self) -> int:
        """How many learners it is of."""
        return int(self.manifest.get("learners", 1))

    def of_driver(self) -> Loaded:
        """Without what the learners read for themselves, which may be a replay of gigabytes."""
        kept = {name: part for name, part in self.tree.items() if name in ("driver", "samplers")}
        return replace(self, tree=kept)


def load_latest(folder: Path) -> Loaded:
    """The newest checkpoint in a run's folder that is whole. Raises CheckpointError if none is."""
    problems: list[str] = []
    for name in (CURRENT, PREVIOUS):
        path = folder / name
        if not path.exists():
            continue
        try:
            manifest, tree = read(path)
        except CheckpointError as error:
            problems.extend(error.lines)
            continue
        notices = [f"{problem}; going on from {path.name}" for problem in problems]
        return Loaded(path, manifest, tree, tuple(notices))
    raise CheckpointError(problems or f"{folder}: holds no checkpoint")


def has_checkpoint(folder: Path) -> bool:
    """Whether a checkpoint, whole or not, is there."""
    return (folder / CURRENT).exists() or (folder / PREVIOUS).exists()


def segment_names(value: Any) -> set[str]:
    """The segments that an encoded tree refers to."""
    if isinstance(value, dict):
        if "__segments__" in value:
            return set(value["__segments__"])
        return set().union(*(segment_names(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(segment_names(item) for item in value))
    return set()
