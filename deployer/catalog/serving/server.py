"""The catalog server: the gRPC server on a socket of this user, its calls and their errors, and the port for
clients."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from deployer.catalog.datasets.model.registry import AlreadyThere
from deployer.catalog.datasets.reads.fetching import ChangedSource
from deployer.catalog.entries import Entries, NameTaken
from deployer.catalog.protocol.messages import SERVICE, Method, methods
from deployer.catalog.serving.datasets import DatasetService
from deployer.catalog.serving.front_port import LiveConnections, front_port
from deployer.catalog.serving.requests import IdleStream, received
from deployer.catalog.serving.service import Call, CatalogService, Unsupported
from deployer.catalog.serving.slow_readers import SlowReaders
from deployer.catalog.serving.versions import UnsupportedClient, require_served
from deployer.datasets.dataset import load_lance
from deployer.errors import Conflict, DeployerError, InvalidInput, NotFound, Refused
from deployer.platform.files.temporary import temporary_folder
from deployer.state.store import StateStore

THREADS = 64  #: calls that are answered at the same time; one client makes up to 12
_WAITING = 1024  #: most calls that are answered or wait; further calls are refused
_LONGEST = 1 << 30  #: most bytes of a client's message
_LOG = logging.getLogger("deployer.catalog")

#: The gRPC code of each kind of error. The client chooses the class of its exception by the code.
_CODES: tuple[tuple[type[Exception], grpc.StatusCode], ...] = (
    (NotFound, grpc.StatusCode.NOT_FOUND),
    (NameTaken, grpc.StatusCode.ALREADY_EXISTS),
    (AlreadyThere, grpc.StatusCode.ALREADY_EXISTS),
    (ChangedSource, grpc.StatusCode.FAILED_PRECONDITION),
    (IdleStream, grpc.StatusCode.DEADLINE_EXCEEDED),
    (Conflict, grpc.StatusCode.ABORTED),
    (Refused, grpc.StatusCode.PERMISSION_DENIED),
    (InvalidInput, grpc.StatusCode.INVALID_ARGUMENT),
    (Unsupported, grpc.StatusCode.UNIMPLEMENTED),
    (UnsupportedClient, grpc.StatusCode.FAILED_PRECONDITION),
)
#: Seconds within which the next request of a stream must arrive and an answer must be read; also the seconds for which
#: an idle connection is kept.
PATIENCE = 600.0
_GRACE = 0.01  #: seconds after the end of a stream within which gRPC reports that its call was cancelled
_FOR_ALL = "Version"  #: the call that clients of all releases may make


@contextmanager
def served(store: StateStore, root: str, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serves the catalog of the instance at `root` for the duration of a `with` block; yields the URL for clients.

    Raises InvalidInput where it cannot listen at that address.
    """
    calls = {**CatalogService(Entries(store, root)).calls(), **DatasetService.of(store, root).calls()}
    options = [
        ("grpc.max_receive_message_length", _LONGEST),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_connection_idle_ms", int(PATIENCE * 1000)),
    ]
    server = grpc.server(ThreadPoolExecutor(THREADS, "catalog"), options=options, maximum_concurrent_rpcs=_WAITING)
    connections, readers = LiveConnections(), SlowReaders(PATIENCE)
    server.add_generic_rpc_handlers((_handlers(calls, connections, readers),))
    with readers.watched(), temporary_folder("catalog") as folder:
        inner = str(folder / "grpc")
        server.add_insecure_port(f"unix:{inner}")
        server.start()
        loading = threading.Thread(target=_load, name="load")
        try:
            with _listening(host, port, inner, connections) as number:
                loading.start()
                yield f"rerun+http://{host}:{number}"
        finally:
            server.stop(grace=None).wait()
            if loading.ident is not None:
                loading.join()


def _load() -> None:
    """Imports the modules that the first calls need. This takes a second, and runs while the first client connects."""
    import pyarrow as pa

    load_lance()
    pa.array([0]).to_numpy()  # makes arrow import pandas, if it is installed


@contextmanager
def _listening(host: str, port: int, inner: str, connections: LiveConnections) -> Iterator[int]:
    opened = front_port(host, port, inner, connections)
    try:
        number = opened.__enter__()
    except OSError as failure:
        what = f"the catalog cannot listen at {host}:{port}: {failure.strerror or failure}"
        raise InvalidInput(what, remedy="give another --port, or --port 0 for any that is free") from None
    try:
        yield number
    finally:
        opened.__exit__(None, None, None)


def _handlers(calls: Mapping[str, Call], connections: LiveConnections, readers: SlowReaders) -> Any:
    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            each.name: _handler(each, calls.get(each.name, _unsupported(each)), connections, readers)
            for each in methods()
        },
    )


def _unsupported(method: Method) -> Call:
    def call(request: Any, headers: Any) -> Any:
        raise Unsupported(f"this server does not answer {method.name}")

    return call


def _handler(method: Method, call: Call, connections: LiveConnections, readers: SlowReaders) -> Any:
    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
    }[method.takes_stream, method.gives_stream]
    checked = _checked(method, call)
    answered = (
        _stream(checked, readers)
        if method.gives_stream
        else _single(checked, connections if method.takes_stream else None)
    )
    return make(answered, request_deserializer=_parser(method), response_serializer=_serialized)


@dataclass(frozen=True, slots=True)
class _Malformed:
    """A request whose bytes are not a valid message. `why` is the reason."""

    why: str


def _parser(method: Method) -> Callable[[bytes], Any]:
    def parse(data: bytes) -> Any:
        try:
            return method.request.FromString(data)
        except DecodeError as failure:
            return _Malformed(str(failure))

    return parse


def _checked(method: Method, call: Call) -> Call:
    """Returns the call with checks: it raises InvalidInput for malformed requests, and UnsupportedClient for clients of
    other releases."""

    def well_formed(request: Any) -> Any:
        if isinstance(request, _Malformed):
            raise InvalidInput(f"the request is not a {method.name} message: {request.why}", remedy="send one")
        return request

    def checked(request: Any, headers: Mapping[str, str]) -> Any:
        if method.name != _FOR_ALL:
            require_served(headers)
        return call(map(well_formed, request) if method.takes_stream else well_formed(request), headers)

    return checked


def _whole(requests: Iterator[Any], context: Any, connections: LiveConnections) -> Iterator[Any]:
    """Yields the requests of a stream. Raises InvalidInput where the caller disconnected before the end of the stream;
    gRPC may report this as a normal end."""
    yield from received(requests, PATIENCE)
    time.sleep(_GRACE)
    if not (connections.has(context.peer()) and context.is_active()):
        raise InvalidInput("the stream of requests was interrupted", remedy="send all of it again")


def _single(call: Call, connections: LiveConnections | None) -> Callable[[Any, Any], Any]:
    def answered(request: Any, context: Any) -> Any:
        try:
            return call(request if connections is None else _whole(request, context, connections), _headers(context))
        except BaseException as failure:  # a panic of Lance is not an Exception; without an abort the caller would wait
            _abort(context, failure)

    return answered


def _stream(call: Call, readers: SlowReaders) -> Callable[[Any, Any], Iterator[Any]]:
    def answered(request: Any, context: Any) -> Iterator[Any]:
        try:
            yield from readers.taken(call(request, _headers(context)), context)
        except GeneratorExit:  # the caller disconnected
            raise
        except BaseException as failure:
            _abort(context, failure)

    return answered


def _headers(context: Any) -> dict[str, str]:
    """Returns the headers of the caller. Headers that end in `-bin` have bytes, which are decoded as UTF-8."""
    sent = context.invocation_metadata() or ()
    return {key: value if isinstance(value, str) else value.decode(errors="replace") for key, value in sent}


def _serialized(message: Any) -> bytes:
    """Returns the bytes of an answer; an answer that is already serialized is returned unchanged."""
    return message if isinstance(message, bytes) else bytes(message.SerializeToString())


def _abort(context: Any, failure: BaseException) -> None:
    """Ends the call with the code of the failure. An error that is not deployer's own is logged, and its message is not
    sent to the client."""
    for kind, code in _CODES:
        if isinstance(failure, kind):
            context.abort(code, str(failure))
    if isinstance(failure, DeployerError):
        context.abort(grpc.StatusCode.INTERNAL, str(failure))
    if context.is_active():  # otherwise the caller disconnected
        _LOG.error("a call failed", exc_info=failure)
    context.abort(grpc.StatusCode.INTERNAL, f"the server failed: {type(failure).__name__}; its log says more")
