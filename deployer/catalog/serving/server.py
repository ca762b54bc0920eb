"""The server: the calls of the protocol and their errors, behind the port that clients connect to."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from deployer.catalog.datasets.model.registry import AlreadyThere
from deployer.catalog.datasets.reads.fetching import ChangedSource
from deployer.catalog.entries import Entries, NameTaken
from deployer.catalog.protocol.messages import Method, methods
from deployer.catalog.serving.datasets import DatasetService
from deployer.catalog.serving.front_port import SENDING, front_port
from deployer.catalog.serving.grpc_calls import Call, Calls, IdleStream, Status
from deployer.catalog.serving.http2.connection import Connection, Patience
from deployer.catalog.serving.service import CatalogService, Unsupported
from deployer.catalog.serving.versions import UnsupportedClient, require_served
from deployer.datasets.dataset import load_lance
from deployer.errors import Conflict, DeployerError, InvalidInput, NotFound, Refused
from deployer.state.store import StateStore

THREADS = 64  #: calls that are answered at a time: one client reads with up to 24
_WAITING = 1024  #: calls that are answered or wait for it; more are refused
_LOG = logging.getLogger("deployer.catalog")

#: The codes by which the client chooses the class of its error.
_CODES: tuple[tuple[type[Exception], Status], ...] = (
    (NotFound, Status.NOT_FOUND),
    (NameTaken, Status.ALREADY_EXISTS),
    (AlreadyThere, Status.ALREADY_EXISTS),
    (ChangedSource, Status.FAILED_PRECONDITION),
    (IdleStream, Status.DEADLINE_EXCEEDED),
    (Conflict, Status.ABORTED),
    (Refused, Status.PERMISSION_DENIED),
    (InvalidInput, Status.INVALID_ARGUMENT),
    (Unsupported, Status.UNIMPLEMENTED),
    (UnsupportedClient, Status.FAILED_PRECONDITION),
)
#: Seconds within which the next request of a stream must arrive and an answer must be read; also the seconds for which
#: an idle connection is kept.
PATIENCE = 600.0
_FOR_ALL = "Version"  #: the call that clients of every release may make


@contextmanager
def served(store: StateStore, root: str, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serves the catalog of the instance at `root` for the duration of a `with` block; yields the URL for clients.

    Raises InvalidInput where it cannot listen at that address.
    """
    known = {**CatalogService(Entries(store, root)).calls(), **DatasetService.of(store, root).calls()}
    pool = ThreadPoolExecutor(THREADS, "catalog")
    checked = {each: _checked(each, known.get(each.name, _unsupported(each))) for each in methods()}
    calls = Calls(checked, _status, pool, _WAITING, PATIENCE)
    patience = Patience(SENDING, PATIENCE)

    def serve(client: socket.socket) -> None:
        Connection(client, calls.start, patience).serve()

    loading = threading.Thread(target=_load, name="load")
    try:
        with _listening(host, port, serve) as number:
            loading.start()
            yield f"rerun+http://{host}:{number}"
    finally:
        pool.shutdown(cancel_futures=True)
        if loading.ident is not None:
            loading.join()


def _load() -> None:
    """Imports the modules that the first calls need. This takes a second, and runs while the first client connects."""
    import pyarrow as pa

    load_lance()
    pa.array([0]).to_numpy()  # makes arrow import pandas, if it is installed


@contextmanager
def _listening(host: str, port: int, serve: Callable[[socket.socket], None]) -> Iterator[int]:
    opened = front_port(host, port, serve)
    try:
        number = opened.__enter__()
    except OSError as failure:
        what = f"the catalog cannot listen at {host}:{port}: {failure.strerror or failure}"
        raise InvalidInput(what, remedy="give another --port, or --port 0 for any that is free") from None
    try:
        yield number
    finally:
        opened.__exit__(None, None, None)


def _unsupported(method: Method) -> Call:
    def call(request: Any, headers: Any) -> Any:
        raise Unsupported(f"this server does not answer {method.name}")

    return call


def _checked(method: Method, call: Call) -> Call:
    """Returns the call, which raises UnsupportedClient."""
    if method.name == _FOR_ALL:
        return call

    def checked(request: Any, headers: Mapping[str, str]) -> Any:
        require_served(headers)
        return call(request, headers)

    return checked


def _status(failure: BaseException) -> tuple[Status, str]:
    """Returns the status of a failure. What is not an error of ours is logged, and hidden from the client."""
    for kind, code in _CODES:
        if isinstance(failure, kind):
            return code, str(failure)
    if isinstance(failure, DeployerError):
        return Status.INTERNAL, str(failure)
    _LOG.error("a call failed", exc_info=failure)
    return Status.INTERNAL, f"the server failed: {type(failure).__name__}; its log says more"
