"""Frames into a video file, one at a time, by ffmpeg. imageio-ffmpeg, an extra that brings it, is imported only here.

Letters: H, W height and width of a frame in pixels.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from omnirl.api.data import Array
from omnirl.api.errors import ConfigError, DiskError, NotFoundError, PluginError

INSTALL = 'pip install "omnirl-gymnasium[video]"'
FORMATS = (".mp4", ".gif")
_FASTEST_GIF = 50.0
"""Frames per second; viewers show a GIF with shorter pauses slowly instead."""
_SMALLEST = 128
_BEST_COLOURS = "[0:v]palettegen[palette];[1:v][palette]paletteuse"
"""A GIF has 256 colours: which are best is known after the last frame, so it is made from a lossless film."""


def check_target(path: Path) -> None:
    """Raise, in one line, where no video can be written at ``path``: before anything is played.

    ConfigError for its ending or a file that is there, NotFoundError for its folder, PluginError for what is not
    installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"{path}: a video's name must end with {' or '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise NotFoundError(f"{path}: there is no folder {path.parent}")
    if path.exists():
        raise ConfigError(f"{path} is there already: choose another name with --out, or remove it")
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        raise PluginError(f"no video: imageio-ffmpeg is not installed; run: {INSTALL}")


class VideoFile:
    """A video that is there once it is complete: leave the block by an exception and there is none.

    frames_per_second: of what is added. A GIF cannot show more than 50 and leaves out the others, so that time is
    right. ``frames`` counts those added. Frames of fewer than 128 pixels are enlarged by a whole factor, to be seen.
    """

    def __init__(self, path: Path, frames_per_second: float) -> None:
        self.path = path
        self.frames = 0
        self.shape: tuple[int, ...] = ()
        self.frames_per_second = frames_per_second
        self._gif = path.suffix.lower() == ".gif"
        self._every = max(1, int(np.ceil(frames_per_second / _FASTEST_GIF))) if self._gif else 1
        self._partial = path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix.lower()}")
        self._film = path.with_name(f".{path.stem}.{os.getpid()}.film.mp4") if self._gif else self._partial
        self._writer: Any = None

    def __enter__(self) -> VideoFile:
        return self

    def add(self, frame: Array) -> None:
        """Append a frame, uint8 [H, W, 3]. Raises ValueError for anything else or another size, DiskError."""
        if not self.frames:
            self._check(frame)
            self.shape = frame.shape
        elif frame.shape != self.shape:
            raise ValueError(f"a frame has the shape {frame.shape}, the first one had {self.shape}")
        try:
            if self._writer is None:
                self._writer = self._open(_shown(frame).shape)
            if self.frames % self._every == 0:
                self._writer.send(np.ascontiguousarray(_shown(frame)))
        except OSError as error:
            raise DiskError(f"{self.path} cannot be written: {error.strerror or error}") from error
        self.frames += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._writer is not None:
                self._writer.close()
            if kind is None and self._writer is not None:
                if self._gif:
                    _to_gif(self._film, self._partial)
                os.replace(self._partial, self.path)
        except OSError as failure:
            if kind is None:
                raise DiskError(f"{self.path} cannot be written: {failure.strerror or failure}") from failure
        finally:
            for leftover in (self._partial, self._film):
                leftover.unlink(missing_ok=True)

    def _check(self, frame: Array) -> None:
        if not isinstance(frame, np.ndarray):
            raise ValueError(f"a frame is {type(frame).__name__}, not an array uint8 [height, width, 3]")
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            raise ValueError(f"a frame is {frame.dtype} {list(frame.shape)}, not uint8 [height, width, 3]")

    def _open(self, shape: tuple[int, ...]) -> Any:
        """ffmpeg as a generator that takes frames."""
        writer = _ffmpeg().write_frames(
            str(self._film),
            (shape[1], shape[0]),
            fps=self.frames_per_second / self._every,
            codec="libx264rgb" if self._gif else "libx264",
            pix_fmt_out="rgb24" if self._gif else "yuv420p",  # the latter is what every browser plays
            quality=None if self._gif else 5,
            output_params=["-qp", "0"] if self._gif else None,  # nothing is lost
            macro_block_size=1,  # else frames are scaled to multiples of 16
            ffmpeg_log_level="error",
        )
        writer.send(None)
        return writer


def _ffmpeg() -> Any:
    return importlib.import_module("imageio_ffmpeg")  # which has no types


def _to_gif(film: Path, gif: Path) -> None:
    inputs = ["-i", str(film), "-i", str(film)]  # read twice, so that ffmpeg need not hold all frames
    command = [
        _ffmpeg().get_ffmpeg_exe(),
        "-v",
        "error",
        "-y",
        *inputs,
        "-filter_complex",
        _BEST_COLOURS,
        str(gif),
    ]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(" ".join(done.stderr.split()) or f"ffmpeg ended with {done.returncode}")


def _shown(frame: Array) -> Array:
    """The frame as it is written: large enough, and H and W even, as yuv420p needs them."""
    height, width = frame.shape[:2]
    factor = -(-_SMALLEST // min(height, width))
    if factor > 1:
        frame = frame.repeat(factor, axis=0).repeat(factor, axis=1)
    odd = (frame.shape[0] % 2, frame.shape[1] % 2)
    return np.pad(frame, ((0, odd[0]), (0, odd[1]), (0, 0)), mode="edge") if any(odd) else frame
