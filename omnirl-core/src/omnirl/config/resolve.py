"""A tree of settings -> validated models. Every mistake is collected, placed and reported at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from omnirl.api.errors import ConfigError, PluginError
from omnirl.api.plugin import AlgorithmSpec, EnvBackendSpec, load_object
from omnirl.config import models
from omnirl.config.files import Origin, Tree, from_mapping, merge
from omnirl.config.messages import Mistake, explain, located, shown
from omnirl.config.positions import Positions
from omnirl.config.sections import (
    RUNNER_SECTIONS,
    SECTIONS,
    DeviceConfig,
    RayConfig,
    RunnerConfig,
    SeedConfig,
)
from omnirl.config.unknown_keys import section_models, unknown_key, unknown_section
from omnirl.config.yaml_text import Path
from omnirl.plugins import Registry
from omnirl.plugins.sources import one_line

_DECIDED = "decided"


@dataclass(frozen=True)
class ResolvedConfig:
    """A complete, valid configuration.

    env and agent are instances of the backend's and the algorithm's models; agent_module and env_module are
    what a file writes for them. tree holds what was set, and where. notes: why an ``auto`` became what it is.
    """

    algorithm: AlgorithmSpec
    backend: EnvBackendSpec
    runner: RunnerConfig
    device: DeviceConfig
    seed: SeedConfig
    ray: RayConfig
    env: Any
    agent: Any
    tree: Tree = field(repr=False, compare=False)
    registry: Registry = field(repr=False, compare=False)
    agent_module: str = ""
    env_module: str = ""
    notes: tuple[str, ...] = field(default=(), compare=False)

    def plain(self) -> dict[str, Any]:
        """The file's layout with every default filled in: plain data that resolves to an equal one."""
        return {
            "runner": models.plain(self.runner),
            "device": models.plain(self.device),
            "seed": self.seed.plain(),
            "env": {"module": self.env_module, **models.plain(self.env)},
            "agent": {"module": self.agent_module},
            "modules": models.plain(self.agent),
            "ray": models.plain(self.ray),
        }

    def origin(self, path: str | Path) -> Origin | None:
        """Where the value at ``path`` (``"modules.learner.lr"``) was set; None for a default."""
        return Positions(self.tree).exact(path)

    def line(self, path: str | Path, text: str) -> str:
        """One line of an error: ``file:line:col path: text``."""
        return Positions(self.tree).line(path, text)

    def replace(self, changes: Tree | Mapping[str, Any]) -> ResolvedConfig:
        """The same configuration with some values changed. Raises ConfigError."""
        tree = changes if isinstance(changes, Tree) else from_mapping(changes, "override")
        return replace(resolve(merge(self.tree, tree), self.registry), notes=self.notes)

    def decided(self, changes: Mapping[str, Any]) -> ResolvedConfig:
        """The same configuration with what OmniRL decided itself, as for an ``auto``: no override of the user's, so
        every line goes on naming the place of what was written, or none for a default. Raises ConfigError."""
        own = self.tree.origins
        merged = merge(self.tree, from_mapping(changes, _DECIDED))
        origins = {
            path: own.get(path, origin)
            for path, origin in merged.origins.items()
            if path in own or origin.source != _DECIDED
        }
        return replace(resolve(Tree(merged.data, origins), self.registry), notes=self.notes)


def resolve(tree: Tree, registry: Registry) -> ResolvedConfig:
    """Validate a tree.

    Raises ConfigError with a line for each mistake, in file order; PluginError where all that is wrong are
    plugins that are there but cannot be used.
    """
    return _Resolution(tree, registry).result()


def resolve_environment(tree: Tree, registry: Registry) -> tuple[EnvBackendSpec, Any]:
    """The backend and its configuration of a tree that holds nothing but ``env``. Raises as :func:`resolve` does."""
    return _Resolution(tree, registry).environment()


class _Resolution:
    """One pass over a tree."""

    def __init__(self, tree: Tree, registry: Registry) -> None:
        self.tree = tree
        self.registry = registry
        self.positions = Positions(tree)
        self.mistakes: list[Mistake] = []
        self.plugin_lines: list[str] = []

    def result(self) -> ResolvedConfig:
        algorithm, agent_module = self._chosen("agent", "algorithm", self.registry.algorithm)
        backend, env_module = self._chosen("env", "environment backend", self.registry.env_backend)
        self.algorithm, self.backend = algorithm, backend
        agent_model = self._model("algorithm", algorithm)
        env_model = self._model("environment backend", backend)
        self.known = section_models(agent_model, env_model)
        for key in self.tree.data:
            if key not in SECTIONS:
                self.mistakes.append(Mistake((key,), unknown_section(key, self.known)))
        self._only_module()
        valid: dict[str, Any] = {
            name: self._validated(name, model, self._section(name)) for name, model in RUNNER_SECTIONS.items()
        }
        if env_model is not None:
            valid["env"] = self._environment(env_model)
        if agent_model is not None:
            valid["modules"] = self._validated("modules", agent_model, self._modules(agent_model))
        self._raise_mistakes()
        return ResolvedConfig(
            algorithm=cast(AlgorithmSpec, algorithm),
            backend=cast(EnvBackendSpec, backend),
            runner=valid["runner"],
            device=valid["device"],
            seed=valid["seed"],
            ray=valid["ray"],
            env=valid["env"],
            agent=valid["modules"],
            tree=self.tree,
            registry=self.registry,
            agent_module=agent_module,
            env_module=env_module,
        )

    def environment(self) -> tuple[EnvBackendSpec, Any]:
        """The ``env`` section by itself."""
        self.backend, _ = self._chosen("env", "environment backend", self.registry.env_backend)
        model = self._model("environment backend", self.backend)
        self.known = section_models(None, model)
        self.mistakes += [
            Mistake((key,), "only keys of env can be set here") for key in self.tree.data if key != "env"
        ]
        config = None if model is None else self._environment(model)
        self._raise_mistakes()
        return cast(EnvBackendSpec, self.backend), config

    def _environment(self, model: type[BaseModel]) -> Any:
        data = self._section("env")
        if isinstance(data, Mapping):
            data = {key: value for key, value in data.items() if key != "module"}
        return self._validated("env", model, data)

    def _section(self, name: str) -> Any:
        """A section's data; an empty one is as good as none."""
        value = self.tree.data.get(name)
        return {} if value is None else value

    def _modules(self, model: type[BaseModel]) -> Any:
        """The algorithm's sections, without those that are there but empty."""
        data = self._section("modules")
        if not isinstance(data, Mapping):
            return data

        def is_section(key: str) -> bool:
            annotation = models.annotation_at(model, (key,), data)
            return isinstance(annotation, type) and issubclass(annotation, BaseModel)

        return {key: value for key, value in data.items() if value is not None or not is_section(key)}

    def _chosen(self, section: str, label: str, find: Callable[[str], Any]) -> tuple[Any, str]:
        """The descriptor that ``<section>.module`` names, and the name to write; None after a mistake."""
        data = self._section(section)
        if not isinstance(data, Mapping):
            self.mistakes.append(Mistake((section,), f"must be a mapping, not {shown(data)}"))
            return None, ""
        path: Path = (section, "module")
        name = data.get("module")
        if not isinstance(name, str):
            provided = self.registry.algorithms() if section == "agent" else self.registry.env_backends()
            installed = ", ".join(item.spec.name for item in provided) or "none"
            missing = f"missing: which {label}? (installed: {installed})"
            text = missing if name is None else f"must be the name of an {label}, not {shown(name)}"
            self.mistakes.append(Mistake(path, text))
            return None, ""
        try:
            spec = find(name)
        except PluginError as error:
            self.plugin_lines += [self.positions.line(path, line) for line in error.lines]
            return None, ""
        except ConfigError as error:
            self.mistakes += [Mistake(path, line) for line in error.lines]
            return None, ""
        return spec, spec.name if self.registry.source_of(spec) is not None else name

    def _model(self, label: str, spec: AlgorithmSpec | EnvBackendSpec | None) -> type[BaseModel] | None:
        """The configuration model of a descriptor; None, and a line, where the plugin's does not load."""
        if spec is None:
            return None
        source = self.registry.source_of(spec)
        owner = f"{label} {spec.name!r}" + (f" of {source}" if source else "")
        try:
            model = load_object(spec.config)
        except Exception as error:
            self.plugin_lines.append(f"{owner}: its configuration model cannot be loaded: {one_line(error)}")
            return None
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            self.plugin_lines.append(f"{owner}: {spec.config} is no pydantic model")
            return None
        return model

    def _only_module(self) -> None:
        data = self._section("agent")
        for key in data if isinstance(data, Mapping) else ():
            if key != "module":
                hint = f" (did you mean 'modules.{key}'?)" if "modules" in self.known else ""
                if "modules" in self.known and key not in models.keys(self.known["modules"]):
                    hint = " (there is: module)"
                self.mistakes.append(Mistake(("agent", key), f"unknown key{hint} [runner]"))

    def _validated(self, section: str, model: type[BaseModel], data: Any) -> Any:
        try:
            return model.model_validate(data)
        except ValidationError as error:
            found = explain(error, model, data, (section,))
        except ConfigError as error:
            found = [located((section,), (), line, model, data) for line in error.lines]
        except Exception as error:
            self.plugin_lines.append(
                f"{self._owner(section)}: its configuration model raised {one_line(error)}"
            )
            return None
        for mistake in found:
            self.mistakes.append(self._with_hint(section, mistake) if mistake.unknown_key else mistake)
        return None

    def _with_hint(self, section: str, mistake: Mistake) -> Mistake:
        spec = self.algorithm if section == "modules" else self.backend if section == "env" else None
        data, owner = self.tree.data, self._owner(section)
        return Mistake(
            mistake.path,
            unknown_key(mistake.path, data, self.known, owner=owner, registry=self.registry, spec=spec),
        )

    def _owner(self, section: str) -> str:
        if section == "modules":
            return f"algorithm {self.algorithm.name}"
        return f"backend {self.backend.name}" if section == "env" else "runner"

    def _raise_mistakes(self) -> None:
        if self.mistakes:
            ordered = sorted(
                self.mistakes, key=lambda mistake: self.positions.order(mistake.at or mistake.path)
            )
            lines = [self.positions.line(item.path, item.text, item.at) for item in ordered]
            raise ConfigError([*dict.fromkeys(lines), *self.plugin_lines])
        if self.plugin_lines:
            raise PluginError(self.plugin_lines)
