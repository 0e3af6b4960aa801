"""Everything a plugin author may import, in one place.

Importing ``omnirl.api`` costs nothing: each name is loaded from its module on first use (PEP 562), so a
plugin's descriptor module needs neither numpy nor pydantic.

======================  ===================================================================================
to write                start at
======================  ===================================================================================
a plugin                :mod:`omnirl.api.plugin` (descriptors) and :mod:`omnirl.api.hooks` (what is called)
an algorithm            :mod:`omnirl.api.algorithm` (Policy, Learner, Memory)
an environment backend  :mod:`omnirl.api.environment`
an observer of runs     :mod:`omnirl.api.observer`
======================  ===================================================================================
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_MODULES = {
    "plugin": (
        "API_NUMBER",
        "AlgorithmSpec",
        "CommandSpec",
        "EnvBackendSpec",
        "ObserverSpec",
        "PresetSpec",
        "Supports",
        "hookimpl",
        "load_object",
    ),
    "specs": (
        "ACTION_MASK",
        "ActionSpec",
        "ArraySpec",
        "ContinuousAction",
        "DictSpec",
        "DiscreteAction",
        "EnvSpec",
        "MultiDiscreteAction",
        "ObservationSpec",
    ),
    "data": ("ActionSample", "Array", "Episode", "Feedback", "Obs", "Rollout", "Step", "Transitions"),
    "algorithm": (
        "ActContext",
        "Clock",
        "DataFlow",
        "FlowContext",
        "Learner",
        "LearnerContext",
        "Memory",
        "MemoryContext",
        "Policy",
        "PolicyContext",
    ),
    "environment": (
        "Collector",
        "Decision",
        "DecisionContext",
        "EnvBackend",
        "EnvContext",
        "EnvFinding",
        "Environment",
        "MeasuredEnvironment",
        "Streams",
        "ViewedEnvironment",
    ),
    "observer": ("Observer", "ObserverBase", "Progress", "RunInfo", "RunSummary"),
    "config": (
        "Config",
        "Flag",
        "Fraction",
        "Int",
        "IntTuple",
        "Number",
        "NonNegative",
        "NonNegativeInt",
        "Positive",
        "PositiveInt",
    ),
    "schedule": (
        "Constant",
        "Exponential",
        "Linear",
        "Piecewise",
        "Schedule",
        "ScheduleClock",
        "value_at",
        "extremes",
    ),
    "errors": (
        "CheckpointError",
        "ClusterError",
        "ConfigError",
        "EvaluationBelowThreshold",
        "LearnerLostError",
        "NotFoundError",
        "OmniRLError",
        "PluginError",
        "SpaceError",
        "WorkersFailedError",
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}
__all__ = [
    "ACTION_MASK",
    "API_NUMBER",
    "ActContext",
    "ActionSample",
    "ActionSpec",
    "AlgorithmSpec",
    "Array",
    "ArraySpec",
    "CheckpointError",
    "Clock",
    "ClusterError",
    "Collector",
    "CommandSpec",
    "Config",
    "ConfigError",
    "Constant",
    "ContinuousAction",
    "DataFlow",
    "Decision",
    "DecisionContext",
    "DictSpec",
    "DiscreteAction",
    "EnvBackend",
    "EnvBackendSpec",
    "EnvContext",
    "EnvFinding",
    "EnvSpec",
    "Environment",
    "Episode",
    "EvaluationBelowThreshold",
    "Exponential",
    "Feedback",
    "Flag",
    "FlowContext",
    "Fraction",
    "Int",
    "IntTuple",
    "Learner",
    "LearnerContext",
    "LearnerLostError",
    "Linear",
    "MeasuredEnvironment",
    "Memory",
    "MemoryContext",
    "MultiDiscreteAction",
    "NonNegative",
    "NonNegativeInt",
    "NotFoundError",
    "Number",
    "Obs",
    "ObservationSpec",
    "Observer",
    "ObserverBase",
    "ObserverSpec",
    "OmniRLError",
    "Piecewise",
    "PluginError",
    "Policy",
    "PolicyContext",
    "Positive",
    "PositiveInt",
    "PresetSpec",
    "Progress",
    "Rollout",
    "RunInfo",
    "RunSummary",
    "Schedule",
    "ScheduleClock",
    "SpaceError",
    "Step",
    "Streams",
    "Supports",
    "Transitions",
    "ViewedEnvironment",
    "WorkersFailedError",
    "extremes",
    "hookimpl",
    "load_object",
    "value_at",
]

if TYPE_CHECKING:
    from omnirl.api.algorithm import (
        ActContext,
        Clock,
        DataFlow,
        FlowContext,
        Learner,
        LearnerContext,
        Memory,
        MemoryContext,
        Policy,
        PolicyContext,
    )
    from omnirl.api.config import (
        Config,
        Flag,
        Fraction,
        Int,
        IntTuple,
        NonNegative,
        NonNegativeInt,
        Number,
        Positive,
        PositiveInt,
    )
    from omnirl.api.data import ActionSample, Array, Episode, Feedback, Obs, Rollout, Step, Transitions
    from omnirl.api.environment import (
        Collector,
        Decision,
        DecisionContext,
        EnvBackend,
        EnvContext,
        EnvFinding,
        Environment,
        MeasuredEnvironment,
        Streams,
        ViewedEnvironment,
    )
    from omnirl.api.errors import (
        CheckpointError,
        ClusterError,
        ConfigError,
        EvaluationBelowThreshold,
        LearnerLostError,
        NotFoundError,
        OmniRLError,
        PluginError,
        SpaceError,
        WorkersFailedError,
    )
    from omnirl.api.observer import Observer, ObserverBase, Progress, RunInfo, RunSummary
    from omnirl.api.plugin import (
        API_NUMBER,
        AlgorithmSpec,
        CommandSpec,
        EnvBackendSpec,
        ObserverSpec,
        PresetSpec,
        Supports,
        hookimpl,
        load_object,
    )
    from omnirl.api.schedule import (
        Constant,
        Exponential,
        Linear,
        Piecewise,
        Schedule,
        ScheduleClock,
        extremes,
        value_at,
    )
    from omnirl.api.specs import (
        ACTION_MASK,
        ActionSpec,
        ArraySpec,
        ContinuousAction,
        DictSpec,
        DiscreteAction,
        EnvSpec,
        MultiDiscreteAction,
        ObservationSpec,
    )


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module 'omnirl.api' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"omnirl.api.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
