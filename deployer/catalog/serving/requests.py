"""Reads the requests of a stream, and ends the call where its caller stops sending."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

from deployer.errors import DeployerError


class IdleStream(DeployerError):
    """The error for a caller that sends neither more requests of its stream nor the end of the stream."""

    kind = "IdleStream"


class _End:
    """A marker for the end of a stream."""


def received(requests: Iterator[Any], patience: float) -> Iterator[Any]:
    """Yields the requests when they arrive. Raises the errors of the stream.

    Raises IdleStream where no request arrives for `patience` seconds; this ends the call and releases its thread.
    Another thread waits for the requests. It ends after the call, because gRPC then ends the stream.
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
