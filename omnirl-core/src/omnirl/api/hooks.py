"""The hooks: what OmniRL asks a plugin, when, and what for.

Every hook takes no arguments and returns an iterable of descriptors (:mod:`omnirl.api.plugin`). A plugin
implements those it needs, each marked with ``@hookimpl``. All are called once per process, by the loader, when the
command line or :mod:`omnirl.run` first needs a name. They must be cheap and must import nothing heavy: they are
called for ``omnirl --help`` too. A plugin that raises is reported (``omnirl plugins list``) and costs only itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from omnirl.api.plugin import AlgorithmSpec, CommandSpec, EnvBackendSpec, ObserverSpec, PresetSpec

hookspec = pluggy.HookspecMarker("omnirl")


@hookspec
def omnirl_algorithms() -> Iterable[AlgorithmSpec]:
    """Return the algorithms this plugin provides.

    Asked when ``agent.module`` or ``--algo`` is resolved and by ``omnirl algos``. The name is what users write in
    their YAML, so choose the paper's abbreviation in lower case, with underscores::

        @hookimpl
        def omnirl_algorithms():
            from acme_rl.spec import ACME   # a module of strings only

            return [ACME]
    """
    raise NotImplementedError  # a specification, never called


@hookspec
def omnirl_env_backends() -> Iterable[EnvBackendSpec]:
    """Return the environment backends this plugin provides.

    Asked when ``env.module`` is resolved and by ``omnirl envs``. One backend serves a whole family of
    environments; which of them a run uses is a key of its config, such as ``env.id``.
    """
    raise NotImplementedError  # a specification, never called


@hookspec
def omnirl_presets() -> Iterable[PresetSpec]:
    """Return complete configurations that ``omnirl train NAME`` can run.

    Asked when a positional argument of ``train`` or ``test`` is not a file, and by ``omnirl presets``. Name them
    ``<environment>-<algorithm>``; a preset says in a comment where its hyperparameters come from.
    """
    raise NotImplementedError  # a specification, never called


@hookspec
def omnirl_observers() -> Iterable[ObserverSpec]:
    """Return observers of runs: log writers, progress displays, trackers.

    Asked when a run starts. Observers with ``default=True`` watch every run; others are named by the user.
    """
    raise NotImplementedError  # a specification, never called


@hookspec
def omnirl_commands() -> Iterable[CommandSpec]:
    """Return further commands of the ``omnirl`` command line.

    Asked at every start of ``omnirl``, so that ``--help`` shows them; the command's body is imported only when it
    is run. A name that OmniRL uses itself is refused.
    """
    raise NotImplementedError  # a specification, never called
