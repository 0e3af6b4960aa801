"""The JSON schema (draft 2020-12) of a configuration file, for editors that complete and check YAML.

No key is required at the top: a file may be one of two, or lie over a preset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from omnirl.api.config import LARGEST, MOST
from omnirl.api.errors import PluginError
from omnirl.api.plugin import AlgorithmSpec, EnvBackendSpec, load_object
from omnirl.config.sections import RUNNER_SECTIONS, DeviceConfig, RayConfig, RunnerConfig, SeedConfig
from omnirl.plugins import Registry
from omnirl.plugins.sources import one_line

__all__ = ["DeviceConfig", "RayConfig", "RunnerConfig", "SeedConfig", "json_schema"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_ARRAY_LIMITS = {"minLength": "minItems", "maxLength": "maxItems"}
_MAPS = ("properties", "$defs", "patternProperties")


def json_schema(
    registry: Registry, algorithm: AlgorithmSpec | None = None, backend: EnvBackendSpec | None = None
) -> dict[str, Any]:
    """The schema of a whole file. Without an algorithm or backend, ``modules`` or ``env`` take any key.

    Raises PluginError where a plugin's model does not load.
    """
    wanted: dict[str, type[BaseModel]] = dict(RUNNER_SECTIONS)
    if algorithm is not None:
        wanted["modules"] = _loaded(algorithm)
    if backend is not None:
        wanted["env"] = _loaded(backend)
    references, shared = models_json_schema(
        [(model, "validation") for model in wanted.values()], ref_template="#/$defs/{model}"
    )
    definitions = shared.get("$defs", {})
    sections: dict[str, Any] = {name: references[model, "validation"] for name, model in wanted.items()}
    sections["seed"] = {"anyOf": [{"type": "integer", "minimum": 0}, sections["seed"]]}
    sections["agent"] = _section({"module": _module(registry.algorithms(), "the algorithm")})
    sections.setdefault("modules", {"type": "object"})
    module = _module(registry.env_backends(), "the environment backend")
    sections["env"] = _with_module(sections.get("env"), definitions, module)
    sections["versions"] = {
        "type": "object",
        "description": "versions that wrote the file; ignored on reading",
    }
    return {
        "$schema": DIALECT,
        "title": "OmniRL configuration",
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _corrected(schema) for name, schema in sections.items()},
        "$defs": {name: _corrected(schema) for name, schema in definitions.items()},
    }


def _loaded(spec: AlgorithmSpec | EnvBackendSpec) -> type[BaseModel]:
    try:
        model: type[BaseModel] = load_object(spec.config)
    except Exception as error:
        raise PluginError(
            f"{spec.name}: its configuration model cannot be loaded: {one_line(error)}"
        ) from error
    return model


def _section(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": dict(properties)}


def _module(provided: Iterable[Any], what: str) -> dict[str, Any]:
    """A plugin's name or alias, or a dotted path."""
    names = [name for item in provided for name in (item.spec.name, *item.spec.aliases)]
    dotted = {"type": "string", "pattern": r"^[A-Za-z_]\w*(\.\w+)+$"}
    return {
        "anyOf": [*([{"enum": names}] if names else []), dotted],
        "description": f"{what}: an installed one's name, or the dotted path of a module",
    }


def _with_module(
    reference: Mapping[str, Any] | None, definitions: Mapping[str, Any], module: Any
) -> dict[str, Any]:
    """The ``env`` section: the backend's own keys beside ``module``."""
    if reference is None:
        return {"type": "object", "properties": {"module": module}}
    section = dict(definitions[str(reference["$ref"]).rpartition("/")[2]])
    section["properties"] = {"module": module, **section.get("properties", {})}
    return section


def _corrected(schema: Any) -> Any:
    """Write limits as JSON schema has them: pydantic leaves some under the names of its own constraints."""
    if isinstance(schema, list):
        return [_corrected(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    names = {**_LIMITS, **(_ARRAY_LIMITS if schema.get("type") == "array" else {})}
    corrected = {}
    for key, value in schema.items():
        if names.get(key, key) in ("minimum", "maximum") and abs(value) in (MOST, LARGEST):
            continue  # those of every number, which would only hide the limits that are a key's own
        if key in _MAPS:
            corrected[key] = {name: _corrected(item) for name, item in value.items()}
        elif key in ("default", "const", "enum", "examples"):
            corrected[key] = value
        else:
            corrected[names.get(key, key)] = _corrected(value)
    return corrected
