"""Whether an algorithm and its network fit what the environment observes and does, action masks included."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from omnirl.api.plugin import AlgorithmSpec, Supports
from omnirl.api.specs import (
    ACTION_MASK,
    ActionSpec,
    ContinuousAction,
    DictSpec,
    DiscreteAction,
    EnvSpec,
    MultiDiscreteAction,
    ObservationSpec,
)
from omnirl.config.messages import Mistake
from omnirl.config.resolve import ResolvedConfig

_ACTION_WORDS = {
    "discrete": "discrete",
    "multi_discrete": "multi-discrete",
    "continuous": "continuous",
    "bounded_continuous": "bounded continuous",
}
_NETWORK_LAYOUT = {"mlp": "vector", "cnn": "image", "resnet": "image", "minatar": "image"}
"""What each kind of network takes."""


def is_supported(supports: Supports, env_spec: EnvSpec) -> bool:
    """Whether an algorithm can be used with these spaces; its network is another matter."""
    observation = env_spec.observation
    unmasked = not isinstance(observation, DictSpec) or observation.mask is None
    return (
        bool(_action_kinds(env_spec.action) & set(supports.actions))
        and _observation_kinds(observation) <= set(supports.observations)
        and (unmasked or supports.action_mask)
    )


def space_mistakes(config: ResolvedConfig, env_spec: EnvSpec) -> list[Mistake]:
    """What does not fit; empty if all does."""
    environment = env_spec.id or str(getattr(config.env, "id", "") or config.backend.name)
    found = _action_mistakes(config, env_spec.action, environment)
    needed = _observation_kinds(env_spec.observation)
    supported = config.algorithm.supports.observations
    if not needed <= set(supported):
        text = f"{config.algorithm.name} takes {_words(supported)} observations; {environment} has "
        text += _describe_observation(env_spec.observation)
        others = _others(config, lambda spec: needed <= set(spec.supports.observations))
        return [*found, Mistake(("agent", "module"), text + others)]
    found = found or _mask_mistakes(config, env_spec, environment)
    return found + _network_mistakes(config, env_spec.observation, environment)


def _mask_mistakes(config: ResolvedConfig, env_spec: EnvSpec, environment: str) -> list[Mistake]:
    """What is wrong with the observation's action mask, and whether the algorithm can do with one at all."""
    observation, action = env_spec.observation, env_spec.action
    if not isinstance(observation, DictSpec) or observation.mask is None:
        return []
    mask = observation.mask
    if not observation.inputs():
        text = f"{environment} observes nothing but {ACTION_MASK}, which no network sees"
        return [Mistake(("env",), text)]
    if isinstance(action, ContinuousAction):
        return [
            Mistake(("env",), f"{environment} has {ACTION_MASK} and continuous actions, which have no mask")
        ]
    size = action.n if isinstance(action, DiscreteAction) else sum(action.nvec)
    if (mask.shape, mask.dtype) != ((size,), "bool"):
        text = f"{environment}: {ACTION_MASK} is {mask.dtype} {list(mask.shape)}; {_describe_action(action)} need "
        return [Mistake(("env",), f"{text}bool [{size}]")]
    if config.algorithm.supports.action_mask:
        return []
    text = f"{config.algorithm.name} takes no action masks; {environment} has {ACTION_MASK}"
    if hasattr(config.env, ACTION_MASK):
        text += f" (env.{ACTION_MASK}: none leaves it out)"
    return [Mistake(("agent", "module"), text + _others(config, lambda spec: spec.supports.action_mask))]


def _action_mistakes(config: ResolvedConfig, action: ActionSpec, environment: str) -> list[Mistake]:
    algorithm = config.algorithm
    kinds = _action_kinds(action)
    if kinds & set(algorithm.supports.actions):
        return []
    others = _others(config, lambda spec: bool(kinds & set(spec.supports.actions)))
    if isinstance(action, ContinuousAction) and "bounded_continuous" in algorithm.supports.actions:
        text = f"{algorithm.name} needs finite action bounds: {_first_infinite(action)}"
    else:
        needed = _words([_ACTION_WORDS[kind] for kind in algorithm.supports.actions])
        text = f"{algorithm.name} needs {needed} actions; {environment} has {_describe_action(action)}"
    return [Mistake(("agent", "module"), text + others)]


def _network_mistakes(
    config: ResolvedConfig, observation: ObservationSpec, environment: str
) -> list[Mistake]:
    kind = getattr(getattr(config.agent, "network", None), "kind", None)
    needed = _NETWORK_LAYOUT.get(kind) if isinstance(kind, str) else None
    layout = "image" if "image" in _layouts(observation) else "vector"
    if needed is None or layout == needed:
        return []
    fitting = next((name for name, takes in _NETWORK_LAYOUT.items() if takes == layout), "another")
    text = f"{kind} takes {needed} observations; {environment} has {_describe_observation(observation)}"
    return [Mistake(("modules", "network", "kind"), f"{text} (use {fitting})")]


def _others(config: ResolvedConfig, fits: Callable[[AlgorithmSpec], bool]) -> str:
    """The installed algorithms that would fit, as a hint."""
    specs = [item.spec for item in config.registry.algorithms()]
    names = [spec.name for spec in specs if spec.name != config.algorithm.name and fits(spec)]
    return f" (installed for it: {', '.join(names)})" if names else ""


def _action_kinds(action: ActionSpec) -> set[str]:
    if isinstance(action, DiscreteAction):
        return {"discrete"}
    if isinstance(action, MultiDiscreteAction):
        return {"multi_discrete"}
    return {"continuous", "bounded_continuous"} if action.bounded else {"continuous"}


def _layouts(observation: ObservationSpec) -> set[str]:
    if isinstance(observation, DictSpec):
        return {entry.layout for _, entry in observation.inputs()}
    return {observation.layout}


def _observation_kinds(observation: ObservationSpec) -> set[str]:
    """What an algorithm must support; one that takes dicts takes those of vectors."""
    if isinstance(observation, DictSpec):
        return {"dict"} | (_layouts(observation) - {"vector"})
    return {observation.layout}


def _describe_action(action: ActionSpec) -> str:
    if isinstance(action, DiscreteAction):
        return f"{action.n} discrete actions"
    if isinstance(action, MultiDiscreteAction):
        return f"multi-discrete actions of {list(action.nvec)} values"
    size = len(action.low)
    low, high = min(action.low), max(action.high)
    return f"continuous actions of {size} value{'s' if size != 1 else ''} in [{low:g}, {high:g}]"


def _describe_observation(observation: ObservationSpec) -> str:
    if isinstance(observation, DictSpec):
        entries = (
            f"{name}: image" if entry.layout == "image" else name for name, entry in observation.entries
        )
        return f"dict observations ({', '.join(entries)})"
    return f"{observation.layout} observations of shape {list(observation.shape)}"


def _first_infinite(action: ContinuousAction) -> str:
    for name, bounds in (("low", action.low), ("high", action.high)):
        for index, bound in enumerate(bounds):
            if not math.isfinite(bound):
                return f"action_space.{name}[{index}] = {bound}"
    for index, (low, high) in enumerate(zip(action.low, action.high)):
        if not ContinuousAction((low,), (high,)).bounded:
            return f"action_space.low[{index}] = {low:g} and high[{index}] = {high:g} are none in earnest"
    raise AssertionError("called for bounded actions")


def _words(kinds: Sequence[str]) -> str:
    return " or ".join(kinds)
