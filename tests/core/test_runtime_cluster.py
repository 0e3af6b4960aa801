"""What is told to Ray before a cluster of our own starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnirl.runtime import cluster


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)


def test_ray_keeps_its_token_in_a_home_folder_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cluster._starting() == {}


def test_without_one_every_cluster_gets_a_token_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))
    first, second = cluster._starting(), cluster._starting()
    assert first["RAY_AUTH_MODE"] == "token"
    assert len(first["RAY_AUTH_TOKEN"]) == 64
    assert first["RAY_AUTH_TOKEN"] != second["RAY_AUTH_TOKEN"]


def test_a_token_that_the_user_has_set_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/secrets/ray")
    assert cluster._starting() == {}
