"""The best agents of a run and the return that ends it: which files stay, what is in them, and that a resume agrees."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import omnirl.run
from omnirl.api import RunSummary
from omnirl.api.errors import CheckpointError, ConfigError, DiskError, NotFoundError
from omnirl.runtime import checkpoint
from omnirl.runtime.best import BestAgents, best_version
from omnirl.runtime.saves import Saves
from omnirl.runtime.saving import agent_versions
from omnirl.testing.toy import NpzAgentFile

RETURNS = {4: 3.0, 8: 7.0, 12: 7.0, 16: 5.0, 20: 6.0}
"""What the evaluations of the scripted runs report, by version."""


def settings(folder: Path, **runner: Any) -> dict[str, Any]:
    """A run of the toy algorithm that evaluates every four updates."""
    return {
        "runner": {
            "ckpt_dir": str(folder),
            "max_updates": 20,
            "log_interval": 0,
            "eval_interval": 4,
            "num_samplers": 1,
            "num_envs_per_sampler": 3,
            "num_evaluators": 1,
            "num_episodes": 2,
            "keep_last": 1,
            **runner,
        },
        "env": {"module": "omnirl.testing.environments", "id": "count", "length": 5},
        "agent": {"module": "omnirl.testing.algorithm"},
        "modules": {"memory": {}, "learner": {}},
    }


def train(config: dict[str, Any], **options: Any) -> RunSummary:
    return omnirl.run.train(config, local=True, **options)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the evaluation of a version report what a table says, 0 where it says nothing; a signal to stop arrives
    with the evaluation of ``interrupt``."""
    from omnirl.runtime.evaluations import Evaluations

    original = Evaluations.__init__

    def use(returns: Mapping[int, float], interrupt: int | None = None) -> None:
        def patched(self: Any, crew: Any, handlers: Any, aggregate: Any, done: Any, tell: Any) -> None:
            def told(counters: Mapping[str, int], weights: Any, figures: Mapping[str, float]) -> None:
                done(counters, weights, {**figures, "return_mean": returns.get(counters["updates"], 0.0)})
                if counters["updates"] == interrupt:
                    os.kill(os.getpid(), signal.SIGTERM)

            original(self, crew, handlers, aggregate, told, tell)

        monkeypatch.setattr(Evaluations, "__init__", patched)

    return use


def weights(folder: Path, version: int) -> dict[str, list[Any]]:
    arrays, _ = NpzAgentFile.load(str(folder / f"agent_{version}.pth"))
    return {name: array.tolist() for name, array in arrays.items()}


# ------------------------------------------------------------------ which are the best


@pytest.mark.parametrize(
    ("keep", "means", "kept"),
    [
        (1, [(1, 3.0), (2, 7.0), (3, 7.0), (4, 5.0)], [[2, 7.0]]),  # of equal ones the earlier
        (2, [(1, 3.0), (2, 7.0), (3, 7.0), (4, 5.0)], [[2, 7.0], [3, 7.0]]),
        (3, [(1, 3.0), (2, 7.0), (3, 5.0), (4, 4.0)], [[2, 7.0], [3, 5.0], [4, 4.0]]),
        (1, [(1, float("nan")), (2, float("inf")), (3, -2.0)], [[3, -2.0]]),
        (0, [(1, 3.0)], []),
    ],
)
def test_the_best_by_mean_return(
    keep: int, means: Sequence[tuple[int, float]], kept: list[list[float]]
) -> None:
    best = BestAgents(keep)
    for version, mean in means:
        if best.admits(mean):
            best.add(version, mean)
    assert best.state_dict() == kept
    assert best.versions == tuple(version for version, _ in kept)


def test_an_equal_return_is_not_better() -> None:
    """So a run whose every evaluation is perfect writes its best agent once."""
    best = BestAgents(1)
    best.add(1, 7.0)
    assert [best.admits(mean) for mean in (6.5, 7.0, 7.5)] == [False, False, True]


def test_a_smaller_number_drops_the_worst_on_restoring() -> None:
    best = BestAgents(1)
    best.load_state_dict([[2, 7.0], [3, 5.0]])
    assert best.state_dict() == [[2, 7.0]]


def test_the_file_says_the_best_and_goes_when_there_is_none(tmp_path: Path) -> None:
    best = BestAgents(2)
    assert best_version(tmp_path) is None
    best.add(40, 487.5)
    best.add(20, 12.0)
    best.write(tmp_path)
    assert json.loads((tmp_path / "best.json").read_text()) == {"updates": 40, "return_mean": 487.5}
    assert best_version(tmp_path) == (40, 487.5)
    BestAgents(2).write(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"updates": "x", "return_mean": 1}', "\x80"])
def test_a_damaged_file_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "best.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(CheckpointError, match=r"best\.json: damaged"):
        best_version(tmp_path)


# ------------------------------------------------------------------ the files of a run


def test_the_best_survives_pruning_with_the_weights_that_were_evaluated(
    tmp_path: Path, scripted: Callable[..., None]
) -> None:
    scripted(RETURNS)
    train(settings(tmp_path / "all", keep_last=0, save_interval=0))
    train(settings(tmp_path / "a", save_interval=0))
    assert agent_versions(tmp_path / "a") == [8, 20]
    assert best_version(tmp_path / "a") == (8, 7.0)
    assert weights(tmp_path / "a", 8) == weights(tmp_path / "all", 8)
    assert weights(tmp_path / "a", 8)["version"] == [8]


def test_a_best_that_no_save_wrote_is_written_all_the_same(
    tmp_path: Path, scripted: Callable[..., None]
) -> None:
    scripted(RETURNS)
    train(settings(tmp_path / "a", save_interval=1000))  # one save, at the end
    assert agent_versions(tmp_path / "a") == [8, 20]
    assert weights(tmp_path / "a", 8)["version"] == [8]
    _, meta = NpzAgentFile.load(str(tmp_path / "a" / "agent_8.pth"))
    assert (meta["updates"], meta["env_steps"]) == (8, 8 * 8 * 3)  # 8 updates of 8 steps in 3 environments


@pytest.mark.parametrize(
    ("keep", "versions"), [(0, [20]), (2, [8, 12, 20]), (3, [8, 12, 20]), (4, [8, 12, 16, 20])]
)
def test_as_many_of_the_best_as_wanted(
    tmp_path: Path, scripted: Callable[..., None], keep: int, versions: list[int]
) -> None:
    scripted(RETURNS)
    train(settings(tmp_path / "a", keep_best=keep))
    assert agent_versions(tmp_path / "a") == versions
    assert (tmp_path / "a" / "best.json").exists() == (keep > 0)


def test_the_best_is_tested_by_its_name(tmp_path: Path, scripted: Callable[..., None]) -> None:
    scripted(RETURNS)
    train(settings(tmp_path / "a"))
    assert omnirl.run.evaluate(str(tmp_path / "a"), model="best", local=True).model == "agent_8"
    assert omnirl.run.load_policy(tmp_path / "a", "best").meta["updates"] == 8
    config = omnirl.run.configure(settings(tmp_path / "a", eval_model="best"))
    assert omnirl.run.evaluate(config, local=True).model == "agent_8"
    train(settings(tmp_path / "none", num_evaluators=0))
    with pytest.raises(NotFoundError, match=r"no best agent.*there are: agent_20"):
        omnirl.run.evaluate(str(tmp_path / "none"), model="best", local=True)


def test_a_resumed_run_has_the_same_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted: Callable[..., None]
) -> None:
    """Also where the interrupted part had got further than its checkpoint: the file is put right at once."""
    scripted(RETURNS)
    train(settings(tmp_path / "whole", keep_best=2))
    folder = tmp_path / "parts"
    scripted(RETURNS, interrupt=4)
    assert train(settings(folder, keep_best=2)).status == "interrupted"
    assert best_version(folder) == (4, 3.0)
    _, tree = checkpoint.read(folder / checkpoint.CURRENT)
    assert tree["driver"]["best"] == [[4, 3.0]]
    (folder / "best.json").write_text('{"updates": 99, "return_mean": 1e6}')

    seen: list[tuple[int, float] | None] = []
    restore = Saves.restore

    def looking(self: Saves, *args: Any) -> Any:
        restored = restore(self, *args)
        seen.append(best_version(folder))
        return restored

    monkeypatch.setattr(Saves, "restore", looking)
    scripted(RETURNS, interrupt=8)
    assert train(settings(folder, keep_best=2)).status == "interrupted"
    scripted(RETURNS)
    assert train(settings(folder, keep_best=2)).status == "finished"
    assert seen == [(4, 3.0), (8, 7.0)]
    assert best_version(folder) == best_version(tmp_path / "whole") == (8, 7.0)
    assert agent_versions(folder) == agent_versions(tmp_path / "whole") == [8, 12, 20]
    assert weights(folder, 8) == weights(tmp_path / "whole", 8)


def test_an_agent_that_cannot_be_written_is_told_and_not_called_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted: Callable[..., None]
) -> None:
    scripted(RETURNS)
    told: list[str] = []
    save = type(NpzAgentFile).save

    class Listening:
        def event(self, text: str) -> None:
            told.append(text)

    def failing(self: Any, path: str, arrays: Any, meta: Mapping[str, Any]) -> None:
        if meta["updates"] == 8:
            raise OSError(28, "No space left on device")
        save(self, path, arrays, meta)

    monkeypatch.setattr(type(NpzAgentFile), "save", failing)
    train(settings(tmp_path / "a", save_interval=1000), observer_objects=[Listening()])
    assert best_version(tmp_path / "a") == (12, 7.0)
    assert any("agent_8.pth failed: OSError: [Errno 28]" in text for text in told)
    assert not list((tmp_path / "a").glob("*.tmp"))

    def always(self: Any, path: str, arrays: Any, meta: Mapping[str, Any]) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(NpzAgentFile), "save", always)
    with pytest.raises(DiskError, match="cannot be written"):
        train(settings(tmp_path / "b", save_interval=1000))


# ------------------------------------------------------------------ the return that ends a run


@pytest.mark.parametrize("lead", [0, 2])
def test_a_run_ends_at_the_evaluation_that_reaches_the_return(
    tmp_path: Path, scripted: Callable[..., None], lead: int, read: Any
) -> None:
    scripted(RETURNS)
    config = settings(tmp_path / "a", stop_return=7, keep_last=0)
    config["modules"]["memory"]["max_lead"] = lead
    summary = train(config)
    assert (summary.status, summary.updates) == ("finished", 8)
    assert summary.message == "the evaluation of update 8 reached runner.stop_return: 7 >= 7"
    assert summary.evaluation["return_mean"] == 7.0
    assert [int(row["updates"]) for row in read.rows(tmp_path / "a")] == list(range(1, 9))
    assert checkpoint.read_manifest(tmp_path / "a" / checkpoint.CURRENT)["finished"] is True
    assert agent_versions(tmp_path / "a") == [4, 8]


def test_a_return_that_is_not_reached_changes_no_number(
    tmp_path: Path, scripted: Callable[..., None]
) -> None:
    scripted(RETURNS)
    train(settings(tmp_path / "without"))
    summary = train(settings(tmp_path / "with", stop_return=7.5))
    assert (summary.status, summary.updates, summary.message) == ("finished", 20, "")
    assert weights(tmp_path / "with", 20) == weights(tmp_path / "without", 20)


def test_a_run_that_has_reached_its_return_goes_on_only_without_it(
    tmp_path: Path, scripted: Callable[..., None]
) -> None:
    scripted(RETURNS)
    train(settings(tmp_path / "a", stop_return=7))
    saved = str(tmp_path / "a" / "run_config.yaml")
    again = omnirl.run.train(saved, local=True, resume="must")
    assert (again.updates, "reached runner.stop_return" in again.message) == (8, True)
    further = omnirl.run.train(saved, overrides=["runner.stop_return=null"], local=True, resume="must")
    assert (further.updates, further.message) == (20, "")


def test_an_interrupted_run_still_ends_at_its_return(tmp_path: Path, scripted: Callable[..., None]) -> None:
    folder = tmp_path / "a"
    scripted(RETURNS, interrupt=4)
    assert train(settings(folder, stop_return=7)).status == "interrupted"
    scripted(RETURNS)
    summary = train(settings(folder, stop_return=7))
    assert (summary.status, summary.updates) == ("finished", 8)


@pytest.mark.parametrize(
    ("runner", "needed"),
    [({"eval_interval": 0}, "runner.eval_interval"), ({"num_evaluators": 0}, "runner.num_evaluators")],
)
def test_a_return_without_evaluations_is_a_mistake(
    tmp_path: Path, runner: dict[str, Any], needed: str
) -> None:
    with pytest.raises(ConfigError, match="needs evaluations during training") as caught:
        train(settings(tmp_path / "a", stop_return=7, **runner))
    assert caught.value.lines[0].endswith(f"set {needed}")
    assert not (tmp_path / "a" / "run_config.yaml").exists()


def test_a_backend_without_a_mean_return_has_no_return_to_stop_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from omnirl.runtime import setup

    ask = setup.env_spec_of
    monkeypatch.setattr(setup, "env_spec_of", lambda config: replace(ask(config), eval_metrics=("wins",)))
    with pytest.raises(ConfigError, match=r"runner\.stop_return: testing reports no return_mean, only wins"):
        train(settings(tmp_path / "a", stop_return=7))
