"""omnirl record and enjoy: what is in the video, and one line for whatever stands in the way."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import omnirl.run
from omnirl.api import EnvContext
from omnirl.api.errors import ConfigError
from omnirl.cli.app import run
from omnirl.runtime.video import VideoFile
from omnirl.runtime.viewer import FilmedEnvironment

FAKES = str(Path(__file__).parent / "fakes")
FILE = """\
runner: {max_updates: 2, num_samplers: 1, num_envs_per_sampler: 2, num_episodes: 2, log_interval: 0}
device: {threads: 1}
env: {module: acme_watch.viewed}
agent: {module: omnirl.testing.algorithm}
"""
ffmpeg = pytest.importorskip("imageio_ffmpeg")


@pytest.fixture
def trained(tmp_path, monkeypatch, capsys):
    """The folder of a finished run of two updates, as the current folder's ``here``."""
    monkeypatch.syspath_prepend(FAKES)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "viewed.yaml").write_text(FILE)
    assert run(["train", "viewed.yaml", "--local", "--run-dir", "here", "--quiet"]) == 0
    capsys.readouterr()
    return Path("here")


@pytest.fixture
def refused(capsys):
    """``refused(code, *arguments)`` -> what a refused command says; it says nothing on standard output."""

    def call(code, *arguments):
        assert run(list(arguments)) == code
        out, err = capsys.readouterr()
        assert out == ""
        return err.rstrip("\n")

    return call


def frames(path):
    """``(frames per second, pictures [n, height, width, 3])`` of a video, by ffmpeg."""
    reader = ffmpeg.read_frames(str(path))
    facts = next(reader)
    width, height = facts["size"]
    pictures = [np.frombuffer(data, np.uint8).reshape(height, width, 3) for data in reader]
    return facts["fps"], np.stack(pictures)


def steps_shown(path):
    """Which step each picture shows, by its colour."""
    _, pictures = frames(path)
    means = pictures.reshape(len(pictures), -1, 3).mean(axis=1)
    np.testing.assert_allclose(means[:, 1:], [[0, 200]] * len(means), atol=8)
    return np.rint(means[:, 0] / 50).astype(int).tolist()


@pytest.mark.parametrize("name", ["a.mp4", "a.gif"])
def test_a_video_shows_every_step_of_every_episode(trained, name):
    recording = omnirl.run.record(trained, name, episodes=2)
    assert steps_shown(name) == [0, 1, 2, 3, 0, 1, 2, 3]
    facts = (recording.frames, recording.frames_per_second, recording.height, recording.width)
    assert facts == (8, 7.0, 15, 21)
    assert (recording.evaluation.model, recording.evaluation.metrics["return_mean"]) == ("agent_2", 3.0)
    rate, pictures = frames(name)
    assert rate == pytest.approx(7.0, rel=0.03)  # a GIF counts hundredths of a second
    assert pictures.shape[1:3] == (136, 190)  # nine times 15 and 21, made even


def test_a_large_picture_keeps_its_size(tmp_path):
    with VideoFile(tmp_path / "a.mp4", 10.0) as video:
        video.add(np.zeros((128, 201, 3), np.uint8))
    assert frames(tmp_path / "a.mp4")[1].shape == (1, 128, 202, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


def test_a_gif_of_many_frames_per_second_keeps_the_time_and_leaves_frames_out(trained):
    omnirl.run.record(trained, "a.gif", overrides=["env.rate=100", "env.length=5"])
    assert steps_shown("a.gif") == [0, 2, 4]
    assert frames("a.gif")[0] == 50.0


def test_without_a_name_it_is_the_agents_in_the_runs_folder_and_a_new_one_each_time(trained, capsys):
    assert run(["record", "here"]) == 0
    line = capsys.readouterr().out
    assert line == (
        "here/agent_2.mp4: 4 frames of 21x15, 0.6 s; agent_2 of here: return 3.0 ± 0.0 over 1 episodes "
        "(min 3, max 3), length 3\n"
    )
    assert run(["record", "here", "--json", "--episodes", "2"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["file"], said["frames"], said["width"], said["height"]) == ("here/agent_2-2.mp4", 8, 21, 15)
    assert (said["model"], said["episodes"], said["metrics"]["length_mean"]) == ("agent_2", 2, 3.0)
    assert Path("here/agent_2-2.mp4").is_file()


def test_settings_may_be_changed(trained, capsys):
    assert run(["record", "here", "env.length=4", "--out", "b.mp4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["frames"] == 5


def test_a_file_that_is_there_is_kept(trained, refused):
    Path("a.mp4").write_text("mine")
    text = "a.mp4 is there already: choose another name with --out, or remove it"
    assert refused(2, "record", "here", "--out", "a.mp4") == text
    assert Path("a.mp4").read_text() == "mine"


@pytest.mark.parametrize(
    ("code", "arguments", "line"),
    [
        (2, ["--out", "a.avi"], "a.avi: a video's name must end with .mp4 or .gif"),
        (3, ["--out", "videos/a.mp4"], "videos/a.mp4: there is no folder videos"),
        (3, ["--model", "agent_7"], "here: no model 'agent_7'; there are: agent_2"),
    ],
)
def test_what_cannot_be_written_or_played_is_told_before_anything_is_played(
    trained, refused, code, arguments, line
):
    assert refused(code, "record", "here", *arguments) == line
    assert list(Path().glob("**/*.mp4")) == []


def test_a_run_that_is_not_there(trained, refused):
    assert refused(3, "record", "heer") == "heer: no such run (did you mean 'here'?)"


def test_the_missing_extra_is_named(trained, refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    text = 'no video: imageio-ffmpeg is not installed; run: pip install "omnirl-gymnasium[video]"'
    assert refused(4, "record", "here") == text


def test_a_backend_that_cannot_be_watched_says_so(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    Path("count.yaml").write_text(FILE.replace("acme_watch.viewed", "omnirl.testing.environments, id: count"))
    assert run(["train", "count.yaml", "--local", "--run-dir", "here", "--quiet"]) == 0
    place = r"here/run_config.yaml:\d+:\d+ env.module: "
    text = "testing has no environments that can be {}; omnirl test reports what the agent reaches"
    assert re.fullmatch(place + text.format("filmed"), refused(2, "record", "here"))
    assert re.fullmatch(place + text.format("shown in a window"), refused(2, "enjoy", "here"))


@pytest.mark.parametrize(
    ("trouble", "line"),
    [
        ("step", "while viewed was filmed: RuntimeError: the arm fell off"),
        (
            "float",
            "while viewed was filmed: ValueError: a frame is float64 [15, 21, 3], not uint8 [height, width, 3]",
        ),
        (
            "size",
            "while viewed was filmed: ValueError: a frame has the shape (14, 21, 3), the first one had (15, 21, 3)",
        ),
    ],
)
def test_an_environment_that_fails_leaves_no_video(trained, refused, trouble, line):
    lines = refused(20, "record", "here", f"env.trouble={trouble}", "--out", "a.mp4").splitlines()
    assert lines[0] == line
    assert lines[1].startswith("Traceback")  # the environment's own
    assert [path.name for path in Path().iterdir() if "mp4" in path.name] == []


def test_no_episode_is_refused(trained):
    with pytest.raises(ConfigError, match="episodes: 0, must be at least 1"):
        omnirl.run.record(trained, episodes=0)


class Heap(list):
    """Stands for a VideoFile."""

    def add(self, frame):
        self.append(int(frame[0, 0, 0]) // 50)


def test_an_episode_that_is_begun_and_not_played_is_not_shown(monkeypatch):
    monkeypatch.syspath_prepend(FAKES)
    from acme_watch import viewed

    heap = Heap()
    film = FilmedEnvironment(
        viewed.Viewed(viewed.ViewedConfig(), EnvContext("evaluator", 0, 1, "frames")), heap
    )
    film.reset(0, 0)
    film.reset(0, 1)
    film.step(np.zeros(1, np.int64))
    film.reset(0, 2)
    assert heap == [0, 1]
    assert film.count == 4
    film.close()
    assert film.closed


def test_a_disk_that_cannot_be_written_is_told_in_a_line(trained, refused, monkeypatch):
    def full(self, shape):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(VideoFile, "_open", full)
    assert (
        refused(23, "record", "here", "--out", "a.mp4") == "a.mp4 cannot be written: No space left on device"
    )
