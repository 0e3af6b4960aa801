"""The testing backend passes BackendSuite; a backend with one defect fails the check that is there for it."""

from __future__ import annotations

from omnirl.testing import BackendSuite
from omnirl.testing.environments import BACKEND, ENVIRONMENTS, PropConfig, build_single

RANDOM = {"probe_p2", "probe_p5", "probe_c2", "two_step", "chain5"}


class TestTestingBackend(BackendSuite):
    spec = BACKEND
    simulators = ("gymnasium", "torch", "ray")
    steps = 60
    environments = {name: {"id": name} for name in ENVIRONMENTS if name not in ("bad", "sleepy")}  # noqa: RUF012

    def is_random(self, env):
        return env["id"] in RANDOM

    def reference(self, env):
        return build_single(PropConfig(**env))
