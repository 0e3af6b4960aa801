"""What memory a machine has left, and the refusal of a replay that does not fit into it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from omnirl.api import AlgorithmSpec, ArraySpec, DiscreteAction, EnvSpec, Supports
from omnirl.config import hardware
from omnirl.config.hardware import available_memory
from omnirl.runtime.reservation import memory_problem

GB = 10**9
SPEC = EnvSpec(ArraySpec((3,)), DiscreteAction(2))


@pytest.fixture
def machine(tmp_path):
    """``machine(files)`` writes files below proc and groups; the bytes that are said to be available."""

    def available(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_DOT_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="ascii")
        return available_memory(tmp_path / "proc", tmp_path / "groups")

    return available


MEMINFO = "MemTotal:       24000000 kB\nMemFree:  1 kB\nMemAvailable:   20000000 kB\n"


def test_without_a_group_it_is_what_the_system_has_left(machine):
    assert machine(proc__meminfo=MEMINFO) == 20_000_000 * 1024


def test_a_container_has_its_limit_less_its_use_but_for_files_that_were_read(machine):
    found = machine(
        proc__meminfo=MEMINFO,
        proc__self__cgroup="0::/\n",
        groups__memory_DOT_max="8000000000\n",
        groups__memory_DOT_current="3000000000\n",
        groups__memory_DOT_stat="anon 5\ninactive_file 500000000\n",
    )
    assert found == 5_500_000_000


def test_the_tightest_of_nested_groups_counts(machine):
    found = machine(
        proc__meminfo=MEMINFO,
        proc__self__cgroup="0::/user/job\n",
        groups__memory_DOT_max="max\n",
        groups__user__memory_DOT_max="4000000000\n",
        groups__user__memory_DOT_current="1000000000\n",
        groups__user__job__memory_DOT_max="max\n",
        groups__user__job__memory_DOT_current="900000000\n",
    )
    assert found == 3 * GB


def test_groups_of_version_1(machine):
    found = machine(
        proc__meminfo=MEMINFO,
        proc__self__cgroup="5:cpu:/job\n4:memory:/job\n0::/\n",
        groups__memory__job__memory_DOT_limit_in_bytes="2000000000\n",
        groups__memory__job__memory_DOT_usage_in_bytes="1500000000\n",
        groups__memory__job__memory_DOT_stat="total_inactive_file 100000000\n",
        groups__memory__memory_DOT_limit_in_bytes="9223372036854771712\n",
        groups__memory__memory_DOT_usage_in_bytes="1500000000\n",
    )
    assert found == 600_000_000


def test_a_group_over_its_limit_has_nothing_left_and_a_silent_system_says_none(machine):
    assert machine() is None
    found = machine(
        proc__self__cgroup="0::/\n", groups__memory_DOT_max="1000\n", groups__memory_DOT_current="2000\n"
    )
    assert found == 0


def test_this_machine_has_some():
    found = available_memory()
    assert found is None or found > 10**6


class Reserving:
    """A memory of 100 bytes per transition."""

    @staticmethod
    def reserved(config, spec):
        assert spec is SPEC
        return 100 * config.memory.capacity


def algorithm(monkeypatch, memory):
    monkeypatch.setattr("omnirl.runtime.reservation.load_object", lambda reference: memory)
    parts = dict.fromkeys(("config", "data_flow", "policy", "memory", "learner", "agent_file"), "a:b")
    return AlgorithmSpec(
        name="a", summary="", family="", supports=Supports(("discrete",)), metric_names=(), **parts
    )


def config(capacity):
    return SimpleNamespace(memory=SimpleNamespace(capacity=capacity))


def test_a_replay_that_fits_is_no_problem(monkeypatch):
    spec = algorithm(monkeypatch, Reserving)
    assert memory_problem(spec, config(10**7), SPEC, saved=False, available=GB) == ""
    assert memory_problem(spec, config(10**9), SPEC, saved=False, available=None) == ""


def test_one_that_does_not_is_told_what_it_needs_what_is_there_and_how_many_would_fit(monkeypatch):
    spec = algorithm(monkeypatch, Reserving)
    assert memory_problem(spec, config(2 * 10**7), SPEC, saved=False, available=GB) == (
        "the replay needs 2.0 GB of memory; 1.0 GB are there: lower it from 20000000 to at most 9500000"
    )
    assert memory_problem(spec, config(10**7), SPEC, saved=True, available=GB) == (
        "the replay needs 2.0 GB of memory, half of them for the copy that a checkpoint is written from; "
        "1.0 GB are there: lower it from 10000000 to at most 4750000"
    )


def test_a_memory_that_reserves_nothing_is_not_asked(monkeypatch):
    spec = algorithm(monkeypatch, object)
    assert memory_problem(spec, config(10**9), SPEC, saved=False, available=1) == ""


def test_a_file_that_cannot_be_read_says_nothing(monkeypatch, tmp_path):
    assert hardware._text(tmp_path) == ""
