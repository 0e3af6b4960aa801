"""Entry points -> registry: one plugin at a time, so that one that fails costs only itself.

A plugin passes through the stages import, api, hooks, call and descriptors (:class:`PluginFailure`). Two
environment variables change what is loaded: ``OMNIRL_DISABLE_PLUGINS`` (entry-point names, separated by
commas, which are not even imported) and ``OMNIRL_STRICT_PLUGINS=1`` (any failure is a PluginError).
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from contextlib import redirect_stdout
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

import pluggy

from omnirl.api import hooks
from omnirl.api.errors import PluginError
from omnirl.api.plugin import API_NUMBER, CommandSpec
from omnirl.plugins.descriptors import SPEC_TYPES, Descriptor, DescriptorError, checked
from omnirl.plugins.registry import Registry
from omnirl.plugins.sources import PluginFailure, PluginSource, Provided, one_line

GROUP = "omnirl"
OWN_COMMANDS = frozenset(
    (
        *("train", "test", "eval", "resume", "record", "enjoy", "runs"),
        *("algos", "envs", "presets", "plugins", "config", "doctor", "version"),
    )
)
"""Names of OmniRL's own commands, which no plugin may use."""


class _Refusal(Exception):
    """A plugin did not pass a stage."""

    def __init__(self, stage: str, text: str) -> None:
        super().__init__(text)
        self.stage = stage


def load() -> Registry:
    """Return what the installed plugins provide.

    Plugins are imported and asked once per process and setting. Raises PluginError, one line per failure,
    only where OMNIRL_STRICT_PLUGINS is set.
    """
    disabled = os.environ.get("OMNIRL_DISABLE_PLUGINS", "")
    registry = _load(frozenset(name.strip() for name in disabled.split(",")), tuple(sys.path))
    if os.environ.get("OMNIRL_STRICT_PLUGINS", "") not in ("", "0"):
        lines = [*map(str, registry.failures), *registry.clashes()]
        if lines:
            raise PluginError(lines)
    return registry


@functools.lru_cache(maxsize=8)
def _load(disabled: frozenset[str], _path: tuple[str, ...]) -> Registry:
    # The import path is an argument only because what is found depends on it.
    manager = pluggy.PluginManager("omnirl")
    manager.add_hookspecs(hooks)
    provided: dict[str, list[Provided[Descriptor]]] = {hook: [] for hook in SPEC_TYPES}
    failures: list[PluginFailure] = []
    skipped: list[PluginSource] = []
    loaded: list[PluginSource] = []
    for entry in sorted(
        entry_points(group=GROUP), key=lambda entry: (entry.name, _source(entry).distribution)
    ):
        source = _source(entry)
        if entry.name in disabled:
            skipped.append(source)
            continue
        try:
            with redirect_stdout(
                sys.stderr
            ):  # what a plugin prints is no part of a command's output, which may be JSON
                found = _ask(manager, entry, source)
        except _Refusal as refusal:
            failures.append(PluginFailure(source, refusal.stage, str(refusal)))
            continue
        loaded.append(source)
        for hook, descriptors in found.items():
            for descriptor in descriptors:
                if isinstance(descriptor, CommandSpec) and descriptor.name in OWN_COMMANDS:
                    text = f"the command {descriptor.name!r} is refused: the name is OmniRL's own"
                    failures.append(PluginFailure(source, "command", text))
                else:
                    provided[hook].append(Provided(descriptor, source))
    return Registry(provided, failures=failures, disabled=skipped, loaded=loaded)


def _source(entry: EntryPoint) -> PluginSource:
    dist = entry.dist
    name, version = (dist.metadata["Name"], dist.version) if dist is not None else ("unknown", "?")
    return PluginSource(entry.name, name, version, entry.value)


def _ask(
    manager: pluggy.PluginManager, entry: EntryPoint, source: PluginSource
) -> dict[str, tuple[Descriptor, ...]]:
    """Import one plugin, check it and return the descriptors of each of its hooks."""
    module = _import(entry)
    _check_api(module)
    implemented = _check_hooks(module)
    name = f"{source.distribution}:{source.plugin}"
    try:
        manager.register(module, name)
    except (ValueError, pluggy.PluginValidationError) as error:
        raise _Refusal("hooks", one_line(error)) from error
    others = [plugin for plugin in manager.get_plugins() if plugin is not module]
    found: dict[str, tuple[Descriptor, ...]] = {}
    try:
        for hook in implemented:
            found[hook] = _call(manager, hook, others)
    except _Refusal:
        manager.unregister(name=name)
        raise
    return found


def _import(entry: EntryPoint) -> ModuleType:
    try:
        module = entry.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit: a plugin must not end the command that lists it
        raise _Refusal("import", one_line(error)) from error
    if not isinstance(module, ModuleType):
        raise _Refusal("import", f"the entry point {entry.value!r} must refer to a module")
    return module


def _check_api(module: ModuleType) -> None:
    number = getattr(module, "OMNIRL_API", None)
    accepted = [number for number in (API_NUMBER - 1, API_NUMBER) if number >= 1]
    if number is None:
        raise _Refusal("api", f"{module.__name__} does not say OMNIRL_API = {API_NUMBER}")
    if not isinstance(number, int) or isinstance(number, bool) or number not in accepted:
        allowed = " and ".join(map(str, accepted))
        newer = isinstance(number, int) and number > API_NUMBER
        advice = "pip install -U omnirl-core" if newer else "update the plugin"
        raise _Refusal("api", f"OMNIRL_API = {number!r}, this omnirl-core accepts {allowed} ({advice})")


def _check_hooks(module: ModuleType) -> list[str]:
    """The hooks that the module implements; refuses what would silently never be called."""
    implemented = []
    for name, function in vars(module).items():
        if not inspect.isroutine(function):
            continue
        options = getattr(function, "omnirl_impl", None)
        if options is None:
            if name.startswith("omnirl_"):
                raise _Refusal("hooks", f"{name} is not marked with @hookimpl")
            continue
        hook = options.get("specname") or name
        if hook not in SPEC_TYPES:
            raise _Refusal("hooks", f"there is no hook {hook!r} (hooks: {', '.join(SPEC_TYPES)})")
        if options.get("wrapper") or options.get("hookwrapper"):
            raise _Refusal("hooks", f"{hook} must not be a wrapper")
        try:
            inspect.signature(function).bind()
        except TypeError:
            raise _Refusal(
                "hooks", f"{hook} must take no arguments, but is {name}{inspect.signature(function)}"
            ) from None
        implemented.append(hook)
    return implemented


def _call(manager: pluggy.PluginManager, hook: str, others: list[object]) -> tuple[Descriptor, ...]:
    try:
        # pluggy leaves out None, so a hook without a return statement gives an empty list.
        returned = manager.subset_hook_caller(hook, others)()
        return checked(hook, returned[0] if returned else None)
    except DescriptorError as error:
        raise _Refusal("descriptors", str(error)) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _Refusal("call", f"{hook}: {one_line(error)}") from error
