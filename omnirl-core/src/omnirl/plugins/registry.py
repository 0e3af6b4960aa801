"""The names that plugins provide, and what to say about a name that cannot be used.

A name that two plugins provide is unusable, and only that name. An unknown name gets the nearest one, the
installed ones, the failed plugins that may provide it and the ``pip install`` that helps.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from omnirl.api.errors import ConfigError, NotFoundError, OmniRLError, PluginError
from omnirl.api.plugin import AlgorithmSpec, CommandSpec, EnvBackendSpec, ObserverSpec, PresetSpec
from omnirl.plugins.descriptors import SPEC_TYPES, Descriptor, DescriptorError, check
from omnirl.plugins.sources import PluginFailure, PluginSource, Provided, one_line


@dataclass(frozen=True)
class _Kind:
    """How one kind of name is looked up and spoken of."""

    hook: str
    label: str
    distribution: str | None = None
    """OmniRL's own distribution for this kind: named where it is not installed."""
    constant: str | None = None
    """What a module that is no plugin calls its descriptor."""
    parts: tuple[str, ...] = ()
    """The descriptor's fields whose package is the dotted name, the surest first."""
    error: type[OmniRLError] = ConfigError


_ALGORITHM = _Kind(
    "omnirl_algorithms", "algorithm", "omnirl-algos", "ALGORITHM", ("learner", "policy", "config")
)
_BACKEND = _Kind(
    "omnirl_env_backends", "environment backend", "omnirl-gymnasium", "BACKEND", ("backend", "config")
)
_PRESET = _Kind("omnirl_presets", "preset", "omnirl-algos", error=NotFoundError)
_OBSERVER = _Kind("omnirl_observers", "observer")
_COMMAND = _Kind("omnirl_commands", "command", error=NotFoundError)


class Registry:
    """What the plugins of this installation provide."""

    def __init__(
        self,
        provided: Mapping[str, Sequence[Provided[Any]]],
        *,
        failures: Iterable[PluginFailure] = (),
        disabled: Iterable[PluginSource] = (),
        loaded: Iterable[PluginSource] = (),
    ) -> None:
        self._provided = {hook: tuple(provided.get(hook, ())) for hook in SPEC_TYPES}
        self.failures = tuple(failures)
        self.disabled = tuple(disabled)
        self.loaded = tuple(loaded)

    def algorithms(self) -> list[Provided[AlgorithmSpec]]:
        """The algorithms, by name."""
        return self._sorted(_ALGORITHM)

    def env_backends(self) -> list[Provided[EnvBackendSpec]]:
        """The environment backends, by name."""
        return self._sorted(_BACKEND)

    def presets(self) -> list[Provided[PresetSpec]]:
        """The presets, by name."""
        return self._sorted(_PRESET)

    def observers(self) -> list[Provided[ObserverSpec]]:
        """The observers, by name."""
        return self._sorted(_OBSERVER)

    def commands(self) -> list[Provided[CommandSpec]]:
        """The further commands, by name; those whose name clashes are left out."""
        return [item for item in self._sorted(_COMMAND) if len(self._holders(_COMMAND, item.spec.name)) == 1]

    def algorithm(self, name: str) -> AlgorithmSpec:
        """The algorithm of this name, alias or dotted path. Raises ConfigError or PluginError, one line."""
        return cast(AlgorithmSpec, self._find(_ALGORITHM, name))

    def env_backend(self, name: str) -> EnvBackendSpec:
        """The backend of this name, alias or dotted path. Raises ConfigError or PluginError, in one line."""
        return cast(EnvBackendSpec, self._find(_BACKEND, name))

    def preset(self, name: str) -> PresetSpec:
        """The preset of this name. Raises NotFoundError or PluginError, in one line."""
        return cast(PresetSpec, self._find(_PRESET, name))

    def observer(self, name: str) -> ObserverSpec:
        """The observer of this name. Raises ConfigError or PluginError, in one line."""
        return cast(ObserverSpec, self._find(_OBSERVER, name))

    def command(self, name: str) -> CommandSpec:
        """The further command of this name. Raises NotFoundError or PluginError, in one line."""
        return cast(CommandSpec, self._find(_COMMAND, name))

    def default_observers(self) -> list[ObserverSpec]:
        """The observers that watch every run; one whose name clashes is left out."""
        specs = [item.spec for item in self.observers() if item.spec.default]
        return [spec for spec in specs if len(self._holders(_OBSERVER, spec.name)) == 1]

    def provided_by(self, source: PluginSource) -> dict[str, list[str]]:
        """The names a plugin provides, by hook."""
        return {
            hook: sorted(item.spec.name for item in items if item.source == source)
            for hook, items in self._provided.items()
        }

    def source_of(self, spec: Descriptor) -> PluginSource | None:
        """The plugin that provides a descriptor, or None for one that a dotted path named."""
        for items in self._provided.values():
            for item in items:
                if item.spec is spec:
                    return item.source
        return None

    def clashes(self, *hooks: str) -> list[str]:
        """One line for each name that several plugins provide by these hooks; without any, by any hook."""
        lines = []
        for kind in (_ALGORITHM, _BACKEND, _PRESET, _OBSERVER, _COMMAND):
            if hooks and kind.hook not in hooks:
                continue
            names = {name for item in self._provided[kind.hook] for name in _names(item.spec)}
            for name in sorted(names):
                holders = self._holders(kind, name)
                if len(holders) > 1:
                    lines.append(_clash(kind, name, holders))
        return lines

    def _sorted(self, kind: _Kind) -> list[Provided[Any]]:
        return sorted(self._provided[kind.hook], key=lambda item: item.spec.name)

    def _holders(self, kind: _Kind, name: str) -> list[Provided[Any]]:
        return [item for item in self._provided[kind.hook] if name in _names(item.spec)]

    def _find(self, kind: _Kind, name: str) -> Descriptor:
        holders = self._holders(kind, name)
        if len(holders) == 1:
            return cast(Descriptor, holders[0].spec)
        if holders:
            raise PluginError(_clash(kind, name, holders))
        if kind.constant is not None and "." in name:
            spec = self._by_package(kind, name)
            return spec if spec is not None else self._by_module(kind, name)
        raise self._unknown(kind, name)

    def _by_package(self, kind: _Kind, dotted: str) -> Descriptor | None:
        """The registered descriptor whose parts live in the package ``dotted``."""
        for part in kind.parts:
            found = [
                item.spec
                for item in self._provided[kind.hook]
                if dotted in _packages(getattr(item.spec, part))
            ]
            named = [spec for spec in found if spec.name == dotted.rpartition(".")[2]]
            if len(named or found) == 1:
                return cast(Descriptor, (named or found)[0])
        return None

    def _by_module(self, kind: _Kind, dotted: str) -> Descriptor:
        """The descriptor in an importable module: for work in progress that is no plugin yet."""
        assert kind.constant is not None
        try:
            module = importlib.import_module(dotted)
        except ModuleNotFoundError as error:
            if error.name is not None and (dotted + ".").startswith(error.name + "."):
                raise self._unknown(kind, dotted, f"no module named {error.name!r}") from None
            raise PluginError(f"the module {dotted!r} cannot be imported: {one_line(error)}") from error
        except Exception as error:
            raise PluginError(f"the module {dotted!r} cannot be imported: {one_line(error)}") from error
        descriptor = getattr(module, kind.constant, None)
        if descriptor is None:
            raise self._unknown(kind, dotted, f"the module holds no {kind.constant}")
        try:
            check(descriptor, SPEC_TYPES[kind.hook], f"{dotted}.{kind.constant}")
        except DescriptorError as error:
            raise PluginError(str(error)) from error
        return cast(Descriptor, descriptor)

    def _unknown(self, kind: _Kind, name: str, why: str = "") -> OmniRLError:
        """The error for a name that no plugin provides: PluginError where a failed plugin surely would."""
        for failure in self.failures:
            if failure.stage != "command" and self._surely(kind, name, failure.source):
                return PluginError(f"{kind.label} {name!r} cannot be used: {failure}")
        names = sorted({known for item in self._provided[kind.hook] for known in _names(item.spec)})
        lowered = {known.lower(): known for known in names}  # PPO is ppo
        nearest = [lowered[near] for near in difflib.get_close_matches(name.lower(), lowered, n=1)]
        text = f"unknown {kind.label} {name!r}"
        if nearest:
            text += f" (did you mean {nearest[0]!r}?)"
        clauses = [text, *([why] if why else [])]
        clauses.append(f"installed: {', '.join(names)}" if names else f"no {kind.label} is installed")
        clauses += [
            f"{source} is switched off by OMNIRL_DISABLE_PLUGINS"
            for source in self.disabled
            if not nearest or self._surely(kind, name, source)
        ]
        if not nearest:
            clauses += [
                f"it may come from {failure}" for failure in self.failures if failure.stage != "command"
            ]
        if kind.distribution is not None and not self._is_installed(kind.distribution):
            clauses.append(f"pip install {kind.distribution}")
        return kind.error("; ".join(clauses))

    def _surely(self, kind: _Kind, name: str, source: PluginSource) -> bool:
        """Whether a plugin that could not be asked is the one that would provide ``name``."""
        root, dotted, _ = name.partition(".")
        distribution = _normal(source.distribution)
        if distribution == kind.distribution and (not dotted or root == "omnirl"):
            return True
        wanted = {_normal(root), _normal(name.rpartition(".")[2] if root == "omnirl" else root)}
        related = {source.plugin, source.module.partition(".")[0], distribution.removeprefix("omnirl-")}
        return bool(wanted & {_normal(item) for item in related} - {"omnirl"})

    def _is_installed(self, distribution: str) -> bool:
        sources = [*self.loaded, *self.disabled, *(failure.source for failure in self.failures)]
        return any(_normal(source.distribution) == distribution for source in sources)


def _names(spec: Any) -> tuple[str, ...]:
    return (spec.name, *getattr(spec, "aliases", ()))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _packages(reference: str) -> tuple[str, str]:
    module = reference.partition(":")[0]
    return module, module.rpartition(".")[0]


def _clash(kind: _Kind, name: str, holders: Sequence[Provided[Any]]) -> str:
    providers = " and ".join(str(item.source) for item in holders)
    plugins = sorted({item.source.plugin for item in holders})
    return (
        f"the {kind.label} {name!r} is provided by {providers}: uninstall one, or switch one off with "
        f"OMNIRL_DISABLE_PLUGINS={plugins[-1]}"
    )
