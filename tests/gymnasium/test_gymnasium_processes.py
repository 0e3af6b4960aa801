"""Environments in processes of their own: the same values, whole errors, nothing left over."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from omnirl.api.environment import EnvContext
from omnirl.api.errors import ConfigError
from omnirl.envs.gymnasium.backend import build_env
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.processes import ProcessEnvironment, RemoteTraceback

TOYS = """
import time
import gymnasium
import numpy as np
from gymnasium import spaces

class Toy(gymnasium.Env):
    '''obs {a: [k], b: [seed, action]}; does ``what`` at step 3 in the environments that ``seeds`` names.'''

    def __init__(self, what="nothing", seeds=(), render_mode=None):
        self.observation_space = spaces.Dict(a=spaces.Box(0, 99, (1,)), b=spaces.Box(0, 99, (2,), np.int64))
        self.action_space = spaces.Discrete(5)
        self.render_mode, self.what, self.seeds = render_mode, what, seeds
        if what == "fail to build":
            raise OSError("no licence")

    def _obs(self, action=0):
        return {"a": np.array([self.k], np.float32), "b": np.array([self.seed, action])}

    def reset(self, *, seed=None, options=None):
        self.k, self.seed = 0, seed
        return self._obs(), {}

    def step(self, action):
        self.k += 1
        if self.k == 3 and self.seed in self.seeds:
            if self.what == "raise":
                raise Unusual(self.seed, "of its own")
            if self.what == "raise something that cannot travel":
                raise Unusual(lambda: 0, "local")
            if self.what == "die":
                import os, signal
                os.kill(os.getpid(), signal.SIGKILL)
            if self.what == "hang":
                time.sleep(1000)
        return self._obs(action), float(self.k), False, self.k >= 4, {"success": self.seed}

class Unusual(Exception):
    def __init__(self, culprit, text):
        super().__init__(culprit, text)

gymnasium.register("acme/Toy-v0", Toy)
"""


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "acme_process_toys.py").write_text(TOYS)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    import gymnasium

    gymnasium.registry.pop("acme/Toy-v0", None)
    sys.modules.pop("acme_process_toys", None)


def environment(role: str = "sampler", num_envs: int = 3, count: int = 2, **keys: Any) -> ProcessEnvironment:
    config = {"id": "acme/Toy-v0", "imports": ["acme_process_toys"], "vectorization": "process", **keys}
    return ProcessEnvironment(GymnasiumConfig.model_validate(config), EnvContext(role, 0, num_envs), count)


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize(
    ("name", "keys", "actions", "count"),
    [
        ("CartPole-v1", {}, lambda rng: rng.integers(2, size=5), 2),
        ("Pendulum-v1", {"max_episode_steps": 20}, lambda rng: rng.normal(size=(5, 1)).astype(np.float32), 3),
        ("FrozenLake-v1", {"is_slippery": True}, lambda rng: rng.integers(4, size=5), 1),
    ],
)
def test_the_values_are_those_of_one_process(
    name: str, keys: dict[str, Any], actions: Any, count: int
) -> None:
    plain = GymnasiumConfig.model_validate({"id": name, "kwargs": keys, "vectorization": "inline"})
    context = EnvContext("sampler", 0, 5)
    left, right = build_env(plain, context), ProcessEnvironment(plain, context, count)
    try:
        for i in range(5):
            assert np.array_equal(left.reset(i, 10 + i), right.reset(i, 10 + i))
        rng, ends = np.random.default_rng(0), 0
        for t in range(120):
            action = actions(rng)
            a, b = left.step(action), right.step(action)
            for field in ("obs", "reward", "terminated", "truncated", "final_obs"):
                assert np.array_equal(getattr(a, field), getattr(b, field)), field
            for i in np.flatnonzero(a.terminated | a.truncated).tolist():
                ends += 1
                assert np.array_equal(left.reset(i, 1000 * t + i), right.reset(i, 1000 * t + i))
        assert ends >= 10
        assert [array.dtype.name for array in (b.reward, b.terminated, b.truncated)] == [
            "float32",
            "bool",
            "bool",
        ]
    finally:
        right.close()


def test_named_observations_metrics_and_each_environments_own_seed(toys: None) -> None:
    env = environment("evaluator", metrics=["success"])
    try:
        rows = [env.reset(i, 40 + i) for i in range(3)]
        assert [row["b"].tolist() for row in rows] == [[40, 0], [41, 0], [42, 0]]  # type: ignore[index]
        step = env.step(np.array([1, 2, 3]))
        assert step.obs["a"].tolist() == [[1], [1], [1]]  # type: ignore[call-overload]
        assert step.obs["b"].tolist() == [[40, 1], [41, 2], [42, 3]]  # type: ignore[call-overload]
        for _ in range(3):
            step = env.step(np.zeros(3, np.int64))
        assert step.truncated.tolist() == [True] * 3
        assert [list(env.episode_metrics(i).values()) for i in range(3)] == [[40], [41], [42]]
        assert [env.continues(i) for i in range(3)] == [False] * 3
    finally:
        env.close()


def test_an_exception_arrives_whole_with_its_traceback(toys: None) -> None:
    before = children()
    env = environment(kwargs={"what": "raise", "seeds": [42]})
    for i in range(3):
        env.reset(i, 40 + i)
    for _ in range(2):
        env.step(np.zeros(3, np.int64))
    with pytest.raises(Exception, match="of its own") as caught:
        env.step(np.zeros(3, np.int64))
    assert (type(caught.value).__name__, caught.value.args) == ("Unusual", (42, "of its own"))
    cause = caught.value.__cause__
    assert isinstance(cause, RemoteTraceback)
    assert "acme_process_toys.py" in str(cause)
    assert 'raise Unusual(self.seed, "of its own")' in str(cause)
    # The other processes have answered: nothing is taken for the answer to something else.
    assert np.asarray(env.reset(0, 7)["b"]).tolist() == [7, 0]  # type: ignore[index]
    env.close()
    assert children() == before


def test_an_exception_that_cannot_travel_arrives_as_its_text(toys: None) -> None:
    env = environment(kwargs={"what": "raise something that cannot travel", "seeds": [40]})
    for i in range(3):
        env.reset(i, 40 + i)
    for _ in range(2):
        env.step(np.zeros(3, np.int64))
    with pytest.raises(RuntimeError, match=r"Unusual: .*local"):
        env.step(np.zeros(3, np.int64))
    env.close()


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"kwargs": {"what": "fail to build"}}, "env.id: cannot build 'acme/Toy-v0': OSError: no licence"),
        (
            {"kwargs": {"wat": 1}},
            "env.kwargs.wat: 'acme/Toy-v0' takes no such argument (did you mean 'what'?)",
        ),
        ({"imports": ["acme_none"]}, "env.imports: cannot import 'acme_none': ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_built_is_one_line_and_leaves_no_process(toys: None, keys: Any, text: str) -> None:
    before = children()
    with pytest.raises(ConfigError) as caught:
        environment(**keys)
    assert caught.value.lines[0].startswith(text)
    assert children() == before


def test_a_process_that_dies_is_told_with_its_signal(toys: None) -> None:
    env = environment(kwargs={"what": "die", "seeds": [42]})
    for i in range(3):
        env.reset(i, 40 + i)
    for _ in range(2):
        env.step(np.zeros(3, np.int64))
    with pytest.raises(RuntimeError, match=r"sub-environment 2 is gone \(signal SIGKILL\)"):
        env.step(np.zeros(3, np.int64))
    env.close()


def test_a_signal_to_all_processes_of_a_run_is_the_parents_to_handle(toys: None) -> None:
    """Ctrl-C reaches whoever is in the foreground: the steps of the last update are still to be made."""
    env = environment()
    for i in range(3):
        env.reset(i, i)
    for number in (signal.SIGINT, signal.SIGTERM):
        for process in env._processes:
            process.process.send_signal(number)
        assert env.step(np.zeros(3, np.int64)).reward.shape == (3,)
    env.close()


def test_a_wrong_number_of_actions_is_refused(toys: None) -> None:
    env = environment()
    with pytest.raises(ValueError, match="1 actions for 3 environments"):
        env.step(np.zeros(1, np.int64))
    env.close()


PARENT = """
import os, sys
import numpy as np
from omnirl.api.environment import EnvContext
from omnirl.envs.gymnasium.config import GymnasiumConfig
from omnirl.envs.gymnasium.processes import ProcessEnvironment

what = {"what": sys.argv[1], "seeds": [1]}
keys = {"id": "acme/Toy-v0", "imports": ["acme_process_toys"], "kwargs": what}
env = ProcessEnvironment(GymnasiumConfig.model_validate(keys), EnvContext("sampler", 0, 2), 2)
for i in range(2):
    env.reset(i, i)
print(*(process.process.pid for process in env._processes), flush=True)
while True:
    env.step(np.zeros(2, np.int64))
"""


@pytest.mark.parametrize(("what", "way"), [("hang", signal.SIGKILL), ("nothing", signal.SIGTERM)])
def test_nothing_is_left_of_a_sampler_that_is_killed(toys: None, tmp_path: Path, what: str, way: int) -> None:
    shared = {path.name for path in Path("/dev/shm").glob("omnirl-*")} if os.path.isdir("/dev/shm") else set()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, what],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        text=True,
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2
    time.sleep(0.3)
    parent.send_signal(way)
    parent.wait(10)
    parent.stdout.close()
    deadline = time.monotonic() + 10
    left = list(pids)
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        left = [pid for pid in left if _alive(pid)]
    assert left == []
    if os.path.isdir("/dev/shm"):
        assert {path.name for path in Path("/dev/shm").glob("omnirl-*")} <= shared


def _alive(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def test_watched_environments_stay_in_the_process_that_has_the_window() -> None:
    config = GymnasiumConfig.model_validate({"id": "CartPole-v1", "vectorization": "process"})
    built = build_env(config, EnvContext("sampler", 0, 2))
    assert isinstance(built, ProcessEnvironment)
    built.close()
    assert not isinstance(build_env(config, EnvContext("sampler", 0, 1)), ProcessEnvironment)
    shown = config.model_copy(update={"render_mode": "rgb_array"})
    pytest.importorskip("pygame", reason="CartPole draws with pygame")
    assert not isinstance(build_env(shown, EnvContext("evaluator", 0, 2)), ProcessEnvironment)
