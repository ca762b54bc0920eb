"""The process that calls a function with a timeout. `processes` starts and ends it."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

_WATCH_SECONDS = 1.0


def main(arguments: Sequence[str]) -> None:
    """Receives a function and sets it up, then answers each call with its value or exception."""
    connection = Connection(int(arguments[0]))
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    sys.path[:] = pickle.loads(connection.recv_bytes())  # noqa: S301 -- of the job that started this process
    from deployer.functions.calls.failures import traceback_of
    from deployer.functions.calls.messages import READY, VALUE, packed, packed_error
    from deployer.functions.calls.runner import tear_down

    try:
        function: Callable[..., Any] = pickle.loads(connection.recv_bytes()).instance()  # noqa: S301 -- as above
    except Exception as error:
        connection.send_bytes(packed_error(error, traceback_of(error)))
        return
    connection.send_bytes(packed(READY))
    try:
        while True:
            for call in pickle.loads(connection.recv_bytes()):  # noqa: S301 -- as above
                try:
                    message = packed(VALUE, function(*call))
                except Exception as error:
                    message = packed_error(error, traceback_of(error))
                connection.send_bytes(message)
    except (EOFError, OSError):  # the job closed it
        tear_down(function)


def _end_with_parent(parent: int) -> None:
    """Ends this process when the job's process ends, also during a call."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)
