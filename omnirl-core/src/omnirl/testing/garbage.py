"""Files that no agent file's ``load`` may accept."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np


def garbage_files(good: bytes, trap: Path) -> dict[str, bytes]:
    """Contents by name. ``good`` is a real file, to be damaged; hostile ones try to create ``trap``."""
    # Protocol 0, by hand: os.system("touch TRAP").
    hostile = b"cposix\nsystem\n(S'touch " + str(trap).encode() + b"'\ntR."
    return {
        "an empty file": b"",
        "a text": b"no agent at all\n" * 20,
        "the first half of a file": good[: len(good) // 2],
        "a hostile pickle": hostile,
        "a hostile archive": _archive({"archive/data.pkl": hostile, "archive/version": b"3\n"}),
        "a hostile array": _archive({"weight.npy": _npy_header() + hostile, "__meta__.npy": b""}),
        "an archive of nothing": _archive({}),
    }


def _archive(entries: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _npy_header() -> bytes:
    """The beginning of a file of one object: numpy would unpickle what follows."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|O", "fortran_order": False, "shape": ()})
    return stream.getvalue()
