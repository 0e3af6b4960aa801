"""A process that steps some of a sampler's environments: ``python -m omnirl.envs.gymnasium.stepping_process``.

It is started with two descriptors, a connection and a file of shared arrays, and ends when the connection does. Its
first message says what to build, and the answer what that looks like; the second says that the file is large enough.
Afterwards each message is one request:

=================  ====================================================================================
``b"step"``        step all with the shared actions; the answer is empty
``(name, args)``   call that method of the environment; the answer is what it returns
=================  ====================================================================================

An answer is ``(True, value)`` or ``(False, exception, traceback as text)``.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from omnirl.api.environment import EnvContext
from omnirl.envs.gymnasium.shared_arrays import map_arrays, some_of

if TYPE_CHECKING:
    from omnirl.envs.gymnasium.vector import InProcessEnvironment

STEP = b"step"
_LOOK_FOR_PARENT = 1.0


@dataclass(frozen=True)
class Assignment:
    """The first message. config: of the ``env`` section, as JSON; the environments are number ``begin`` to
    ``end - 1`` of the context's; path: where Python finds modules."""

    config: str
    context: EnvContext
    begin: int
    end: int
    path: tuple[str, ...]


def main() -> None:
    """Serve until the connection ends."""
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # what is sent to all processes of a run is the parent's to handle
        signal.signal(number, signal.SIG_IGN)
    connection, memory = Connection(int(sys.argv[1])), int(sys.argv[2])
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        assignment: Assignment = connection.recv()
        sys.path[:] = assignment.path
        try:
            environment = _build(assignment)
        except Exception as error:  # whatever it is, the parent tells it
            connection.send(_failure(error))
            return
        try:
            connection.send((True, (environment.observation, environment.action)))
            connection.recv_bytes()
            shared = map_arrays(
                memory, environment.observation, environment.action, assignment.context.num_envs
            )
            actions, step = some_of(*shared, assignment.begin, assignment.end)
            environment.write_to(step)
            _serve(connection, environment, actions)
        finally:
            environment.close()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _build(assignment: Assignment) -> InProcessEnvironment:
    # Only now: the path says where this is found, too.
    from omnirl.envs.gymnasium.backend import build_inline
    from omnirl.envs.gymnasium.config import GymnasiumConfig

    config = GymnasiumConfig.model_validate_json(assignment.config)
    return build_inline(config, replace(assignment.context, num_envs=assignment.end - assignment.begin))


def _serve(connection: Connection, environment: Any, action: Any) -> None:
    done = pickle.dumps((True, None))
    while True:
        request = connection.recv_bytes()
        try:
            if request == STEP:
                environment.step(action)
                answer = done
            else:
                name, arguments = pickle.loads(request)
                answer = pickle.dumps((True, getattr(environment, name)(*arguments)))
        except Exception as error:  # an environment may raise anything
            answer = pickle.dumps(_failure(error))
        connection.send_bytes(answer)


def _failure(error: Exception) -> tuple[bool, Exception, str]:
    """The exception as it is, or, where it cannot travel, its text."""
    text = traceback.format_exc()
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False, RuntimeError(f"{type(error).__name__}: {error}"), text
    return False, error, text


def _end_with_parent(parent: int) -> None:
    """A step may take for ever, and then the end of the connection goes unnoticed."""
    while os.getppid() == parent:
        time.sleep(_LOOK_FOR_PARENT)
    os._exit(1)


if __name__ == "__main__":
    main()
