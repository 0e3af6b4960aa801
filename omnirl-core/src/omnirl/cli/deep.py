"""The second stage of checking a configuration: its environment and the hardware, before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnirl.config.resolve import ResolvedConfig


def check_deep(config: ResolvedConfig) -> ResolvedConfig:
    """Return the configuration as it would run, every ``auto`` decided.

    Opens the environment, which imports its simulator. Raises one ConfigError with every mistake, or ClusterError
    where the machine is too small.
    """
    from omnirl.api.errors import ConfigError
    from omnirl.config import check
    from omnirl.runtime import setup
    from omnirl.runtime.reservation import check_memory

    decided = setup.decide(config)
    env_spec = setup.env_spec_of(decided)
    checks: list[Callable[[], object]] = [
        lambda: check.check_spaces(decided, env_spec),
        lambda: check.check_device(decided),
        lambda: setup.plan_of(decided, env_spec),
    ]
    lines: list[str] = []
    for look in checks:
        try:
            look()
        except ConfigError as error:
            lines.extend(error.lines)
    if lines:
        raise ConfigError(list(dict.fromkeys(lines)))
    decided = setup.decide_network(decided, env_spec)
    flow = setup.flow_of(decided)
    check_memory(decided, env_spec, saved=decided.runner.save_memory or flow.max_lead == 0)
    return decided
