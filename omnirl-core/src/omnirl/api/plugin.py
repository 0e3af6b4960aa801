"""The descriptors a plugin hands to OmniRL: small frozen rows of import strings.

A plugin is an ordinary pip package with one entry point in the group ``omnirl``::

    [project.entry-points.omnirl]
    acme = "acme_rl.plugin"

and a module that names the API number it was written for and returns descriptors::

    from omnirl.api import AlgorithmSpec, Supports, hookimpl

    OMNIRL_API = 1

    @hookimpl
    def omnirl_algorithms():
        return [AlgorithmSpec(name="acme", summary="...", family="value", ..., learner="acme_rl.learner:Learner")]

Nothing but strings crosses this border, so listing every algorithm on the machine imports none of them; each
process of a run later loads the one part that it needs. This module therefore imports only the standard library
and pluggy.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import pluggy

API_NUMBER = 1
"""The plugin API's number. Additions keep it; a removal or a changed meaning raises it."""

hookimpl = pluggy.HookimplMarker("omnirl")
"""Marks a function of a plugin module as the implementation of one of the hooks in :mod:`omnirl.api.hooks`."""


def load_object(reference: str) -> Any:
    """Return the object that ``"package.module:name"`` refers to.

    Raises ImportError, or AttributeError where the module lacks the name, with the reference in the text.
    """
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise ImportError(f"{reference!r} is not of the form 'package.module:name'")
    module = importlib.import_module(module_name)
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        raise AttributeError(f"{module_name!r} has no {attribute!r} (from {reference!r})") from error


@dataclass(frozen=True)
class Supports:
    """What an algorithm can be used with; anything else is refused in one line before a worker starts.

    actions: kinds of action space, of ``"discrete"``, ``"multi_discrete"``, ``"continuous"`` (bounded or not) and
    ``"bounded_continuous"`` (only where every bound is finite).
    observations: of ``"vector"``, ``"image"`` and ``"dict"``: a dictionary of vectors, and of images where ``"image"``
    is named too. action_mask: whether illegal actions are never taken, see :class:`omnirl.api.DictSpec`.
    """

    actions: tuple[str, ...]
    observations: tuple[str, ...] = ("vector",)
    action_mask: bool = False
    recurrent: bool = False
    learners: bool = False


@dataclass(frozen=True)
class AlgorithmSpec:
    """One algorithm. The parts are import strings; all but ``learner`` and ``agent_file`` resolve without torch.

    ============  ===============================================================================================
    config        the pydantic model, with the sections learner, memory, policy, network that it needs
    data_flow     ``(config, FlowContext) -> DataFlow``: the four numbers that drive the event loop
    policy        ``(config, EnvSpec, PolicyContext) -> Policy``; acts in samplers and evaluators
    memory        ``(config, EnvSpec, MemoryContext) -> Memory``; lives in the learner's process
    learner       ``(config, EnvSpec, LearnerContext) -> Learner``
    agent_file    object with ``save(path, weights, meta)`` and ``load(path) -> (weights, meta)``
    metric_names  what ``Learner.metrics`` may return: the columns of log.csv, fixed before the first row
    ============  ===============================================================================================
    """

    name: str
    summary: str
    family: str
    supports: Supports
    config: str
    data_flow: str
    policy: str
    memory: str
    learner: str
    agent_file: str
    metric_names: tuple[str, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class EnvBackendSpec:
    """One environment backend. ``config`` (the pydantic model of the ``env`` section) resolves without the
    simulator; ``backend`` refers to an :class:`omnirl.api.EnvBackend`. ``module`` is the plugin's dotted name."""

    name: str
    summary: str
    config: str
    backend: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class PresetSpec:
    """A complete configuration shipped in a wheel. ``resource`` is ``"package:file.yaml"``."""

    name: str
    summary: str
    resource: str


@dataclass(frozen=True)
class ObserverSpec:
    """Something that watches runs. ``load`` refers to a callable ``() -> Observer``; ``default`` observers watch
    every run, the others only when named."""

    name: str
    load: str
    summary: str = ""
    default: bool = False


@dataclass(frozen=True)
class CommandSpec:
    """A further command of ``omnirl``. ``load`` refers to the function Typer turns into the command; a command
    never replaces one of OmniRL's own."""

    name: str
    summary: str
    load: str
