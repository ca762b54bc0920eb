"""The requests of a stream, as long as its caller sends them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

from deployer.errors import DeployerError


class IdleStream(DeployerError):
    """A caller sent neither more requests of its stream nor the end of it."""

    kind = "IdleStream"


class _End:
    """The end of a stream."""


def received(requests: Iterator[Any], patience: float) -> Iterator[Any]:
    """Yields the requests as they come. Raises IdleStream where none comes for `patience` seconds, which ends the call
    and releases its thread; and what the stream raises.

    A thread waits for the requests. It ends with the call: gRPC then ends the stream.
    """
    found: queue.Queue[Any] = queue.Queue(maxsize=1)
    over = threading.Event()

    def put(each: Any) -> None:
        while not over.is_set():
            try:
                found.put(each, timeout=1.0)
            except queue.Full:
                continue
            return

    def receive() -> None:
        try:
            for each in requests:
                put(each)
            put(_End())
        except BaseException as failure:
            put(failure)

    threading.Thread(target=receive, name="requests", daemon=True).start()
    try:
        while True:
            try:
                each = found.get(timeout=patience)
            except queue.Empty:
                raise IdleStream(
                    f"the stream of requests was idle for {patience:g} s, and nothing was written",
                    remedy="send all of it again, without such a pause",
                ) from None
            if isinstance(each, _End):
                return
            if isinstance(each, BaseException):
                raise each
            yield each
    finally:
        over.set()
