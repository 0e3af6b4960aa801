"""Looks into every plugin: what failed, and whether all that its descriptors promise is really there.

Unlike listing them, this imports everything: simulators and torch too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

from omnirl.api.errors import OmniRLError
from omnirl.api.plugin import AlgorithmSpec, EnvBackendSpec, PresetSpec, load_object
from omnirl.doctor.findings import PLUGIN, Finding, Status, problem, warning, worst
from omnirl.plugins.registry import Registry
from omnirl.plugins.sources import PluginSource, one_line

_ALGORITHM_PARTS = ("data_flow", "policy", "memory", "learner", "agent_file")
_NOT_THERE = re.compile(r"No module named '([^']+)'")


@dataclass(frozen=True)
class Examined:
    """One plugin and what is wrong with it. status: ``"disabled"``, or the worst of its findings."""

    source: PluginSource
    status: Status | str
    findings: tuple[Finding, ...] = ()


def examine(registry: Registry) -> list[Examined]:
    """Every plugin, by name."""
    clashes = registry.clashes()
    found = [Examined(source, "disabled") for source in registry.disabled]
    for source in {*registry.loaded, *(failure.source for failure in registry.failures)}:
        with redirect_stdout(sys.stderr):  # what a plugin's code prints is no part of the report
            findings = [*_failures(registry, source), *_clashes(source, clashes), *_parts(registry, source)]
        found.append(Examined(source, worst(findings), tuple(findings)))
    return sorted(found, key=lambda item: (item.source.plugin, item.source.distribution))


def _failures(registry: Registry, source: PluginSource) -> Iterator[Finding]:
    for failure in registry.failures:
        if failure.source == source:
            yield problem(failure.stage, failure.error, _remedy(failure.error, source), PLUGIN)


def _clashes(source: PluginSource, clashes: list[str]) -> Iterator[Finding]:
    for clash in clashes:
        if str(source) in clash:
            text, _, remedy = clash.partition(": ")
            yield problem("name", text, remedy, PLUGIN)


def _parts(registry: Registry, source: PluginSource) -> Iterator[Finding]:
    """What the descriptors refer to."""
    for algorithm in registry.algorithms():
        if algorithm.source == source:
            yield from _algorithm(algorithm.spec, source)
    for backend in registry.env_backends():
        if backend.source == source:
            yield from _backend(backend.spec, source)
    for preset in registry.presets():
        if preset.source == source:
            yield from _preset(preset.spec, registry, source)
    for label, items in (("observer", registry.observers()), ("command", registry.commands())):
        for item in items:
            if item.source == source:
                yield from _loaded(f"{label} {item.spec.name!r}", item.spec.load, source, callable)


def _algorithm(spec: AlgorithmSpec, source: PluginSource) -> Iterator[Finding]:
    name = f"algorithm {spec.name!r}"
    yield from _config(f"{name}, config", spec.config, source)
    for part in _ALGORITHM_PARTS:
        fits = _is_agent_file if part == "agent_file" else callable
        yield from _loaded(f"{name}, {part}", getattr(spec, part), source, fits)


def _backend(spec: EnvBackendSpec, source: PluginSource) -> Iterator[Finding]:
    from omnirl.api.environment import EnvBackend

    name = f"environment backend {spec.name!r}"
    yield from _config(f"{name}, config", spec.config, source)
    yield from _loaded(f"{name}, backend", spec.backend, source, lambda part: isinstance(part, EnvBackend))


def _preset(spec: PresetSpec, registry: Registry, source: PluginSource) -> Iterator[Finding]:
    from omnirl.config.check import check_files
    from omnirl.config.files import load_preset
    from omnirl.config.resolve import resolve

    try:
        check_files(resolve(load_preset(spec), registry))
    except OmniRLError as error:
        for line in error.lines:
            yield problem(f"preset {spec.name!r}", line, _remedy(line, source), PLUGIN)
    except Exception as error:  # a plugin's model or data_flow may raise anything
        text = one_line(error)
        yield problem(f"preset {spec.name!r}", text, _remedy(text, source), PLUGIN)


def _config(subject: str, reference: str, source: PluginSource) -> Iterator[Finding]:
    """The model is there, and every key has the description that the lists and the reference print."""
    from pydantic import BaseModel

    from omnirl.config.models import undescribed

    def is_model(part: Any) -> bool:
        return isinstance(part, type) and issubclass(part, BaseModel)

    findings = list(_loaded(subject, reference, source, is_model))
    yield from findings
    if not findings:
        missing = list(undescribed(load_object(reference)))
        if missing:
            remedy = f"tell the authors of {source.distribution}: Field(description=...)"
            yield warning(subject, f"keys without a description: {', '.join(missing)}", remedy)


def _loaded(
    subject: str, reference: str, source: PluginSource, fits: Callable[[Any], bool]
) -> Iterator[Finding]:
    """What is wrong with the object that ``reference`` names."""
    try:
        part = load_object(reference)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit: a plugin must not end the command that examines it
        text = one_line(error)
        yield problem(subject, f"{reference} cannot be loaded: {text}", _remedy(text, source), PLUGIN)
        return
    if not fits(part):
        text = f"{reference} is an object of type {type(part).__name__}, which cannot be used as that"
        yield problem(subject, text, _remedy(text, source), PLUGIN)


def _is_agent_file(part: Any) -> bool:
    return callable(getattr(part, "save", None)) and callable(getattr(part, "load", None))


def _remedy(text: str, source: PluginSource) -> str:
    """What the user can do: install what is missing, or do without the plugin."""
    missing = _NOT_THERE.search(text)
    if missing:
        root, own = missing[1].partition(".")[0], source.module.partition(".")[0]
        if root != own:
            return f"pip install {root}"
        return f"pip install --force-reinstall --no-deps {source.distribution}"
    return f"pip install -U {source.distribution}, or do without it: OMNIRL_DISABLE_PLUGINS={source.plugin}"
