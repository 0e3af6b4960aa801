"""Spaces that an algorithm cannot act in are refused in one line that names both, before anything starts."""

from __future__ import annotations

import pytest

from omnirl.algorithms.plugin import ALGORITHMS
from omnirl.api import ArraySpec, ConfigError, ContinuousAction, DiscreteAction, EnvSpec
from omnirl.config.check import check_spaces
from omnirl.config.files import from_mapping
from omnirl.config.resolve import resolve
from omnirl.plugins import PluginSource, Provided, Registry
from omnirl.testing.environments import BACKEND

INF = float("inf")
SOURCE = PluginSource("test", "test", "0")
REGISTRY = Registry(
    {
        "omnirl_algorithms": [Provided(spec, SOURCE) for spec in ALGORITHMS],
        "omnirl_env_backends": [Provided(BACKEND, SOURCE)],
    }
)


def refusal(algorithm, action):
    data = {
        "runner": {"max_updates": 1},
        "env": {"module": BACKEND.name, "id": "count"},
        "agent": {"module": algorithm},
    }
    with pytest.raises(ConfigError) as raised:
        check_spaces(resolve(from_mapping(data, "test"), REGISTRY), EnvSpec(ArraySpec((3,)), action))
    (line,) = raised.value.lines
    return line


@pytest.mark.parametrize("algorithm", ["ddpg", "td3", "sac", "tqc"])
def test_k22_unbounded_actions_need_finite_bounds(algorithm):
    line = refusal(algorithm, ContinuousAction((-1.0, -INF), (1.0, 2.0)))
    assert algorithm in line
    assert "low[1] = -inf" in line


def test_k22_the_largest_float32_is_no_bound():
    line = refusal("sac", ContinuousAction((-1.0, -3.4028235e38), (1.0, 3.4028235e38)))
    assert (
        "sac needs finite action bounds: action_space.low[1] = -3.40282e+38 and high[1] = 3.40282e+38" in line
    )


@pytest.mark.parametrize("algorithm", ["ddpg", "td3", "tqc"])
def test_discrete_actions_are_refused(algorithm):
    line = refusal(algorithm, DiscreteAction(3))
    assert algorithm in line
    assert "discrete" in line
