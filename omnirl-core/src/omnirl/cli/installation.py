"""Whether what is installed can work: the package ``omnirl`` must be shared by our distributions.

OmniRL's first version, the distribution ``omnirl-framework``, brings an ``omnirl/__init__.py``, which hides
or mixes with everything of ours; nothing after that fails in a way that anyone could understand.
"""

from __future__ import annotations

from importlib import metadata

from omnirl.api.errors import PluginError

FIRST_VERSION = "omnirl-framework"


def check_installation() -> None:
    """Raise PluginError (exit 4), with the command that mends it, where ``omnirl`` is not shared."""
    import omnirl

    file = getattr(omnirl, "__file__", None)
    if _is_installed(FIRST_VERSION):
        raise PluginError(
            [
                f"{FIRST_VERSION}, OmniRL's first version, is installed and hides this one; mend it with",
                f"  python -m pip uninstall --yes {FIRST_VERSION} && "
                f"python -m pip install --force-reinstall --no-deps {' '.join(_ours())}",
            ]
        )
    if file is not None:
        raise PluginError(
            [
                f"{file} takes the name of the package that OmniRL's distributions share; remove it and run",
                f"  python -m pip install --force-reinstall --no-deps {' '.join(_ours())}",
            ]
        )


def _ours() -> list[str]:
    return [name for name in ("omnirl-core", "omnirl-algos", "omnirl-gymnasium") if _is_installed(name)]


def _is_installed(distribution: str) -> bool:
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
