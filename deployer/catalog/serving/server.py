"""The server: gRPC on a socket of this user, its calls and their errors, and the port for clients in front of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc

from deployer.catalog.datasets.model.registry import AlreadyThere
from deployer.catalog.datasets.reads.fetching import ChangedSource
from deployer.catalog.entries import Entries, NameTaken
from deployer.catalog.protocol.messages import SERVICE, Method, methods
from deployer.catalog.serving.datasets import DatasetService
from deployer.catalog.serving.front_port import front_port
from deployer.catalog.serving.service import Call, CatalogService, Unsupported
from deployer.catalog.tables import Tables
from deployer.errors import Conflict, DeployerError, InvalidInput, NotFound, Refused
from deployer.platform.files.temporary import temporary_folder
from deployer.state.store import StateStore

THREADS = 16  #: calls that are answered at a time
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_LOG = logging.getLogger("deployer.catalog")

#: The codes by which the client chooses the class of its error.
_CODES: tuple[tuple[type[Exception], grpc.StatusCode], ...] = (
    (NotFound, grpc.StatusCode.NOT_FOUND),
    (NameTaken, grpc.StatusCode.ALREADY_EXISTS),
    (AlreadyThere, grpc.StatusCode.ALREADY_EXISTS),
    (ChangedSource, grpc.StatusCode.FAILED_PRECONDITION),
    (Conflict, grpc.StatusCode.ABORTED),
    (Refused, grpc.StatusCode.PERMISSION_DENIED),
    (InvalidInput, grpc.StatusCode.INVALID_ARGUMENT),
    (Unsupported, grpc.StatusCode.UNIMPLEMENTED),
)


@contextmanager
def served(store: StateStore, root: str, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serves the catalog of the instance at `root` for the time of a block; yields the URL that clients connect to.

    Raises InvalidInput where it cannot listen at that address.
    """
    datasets = DatasetService.of(store, root)
    calls = {**CatalogService(Entries(store, root), Tables(store, root)).calls(), **datasets.calls()}
    server = grpc.server(ThreadPoolExecutor(THREADS, "catalog"), options=_OPTIONS)
    server.add_generic_rpc_handlers((_handlers(calls),))
    with temporary_folder("catalog") as folder:
        inner = str(folder / "grpc")
        server.add_insecure_port(f"unix:{inner}")
        server.start()
        try:
            with _listening(host, port, inner) as number:
                yield f"rerun+http://{host}:{number}"
        finally:
            server.stop(grace=None).wait()


@contextmanager
def _listening(host: str, port: int, inner: str) -> Iterator[int]:
    opened = front_port(host, port, inner)
    try:
        number = opened.__enter__()
    except OSError as failure:
        what = f"the catalog cannot listen at {host}:{port}: {failure.strerror or failure}"
        raise InvalidInput(what, remedy="give another --port, or --port 0 for any that is free") from None
    try:
        yield number
    finally:
        opened.__exit__(None, None, None)


def _handlers(calls: Mapping[str, Call]) -> Any:
    return grpc.method_handlers_generic_handler(
        SERVICE, {each.name: _handler(each, calls.get(each.name, _unsupported(each))) for each in methods()}
    )


def _unsupported(method: Method) -> Call:
    def call(request: Any, headers: Any) -> Any:
        raise Unsupported(f"this server does not answer {method.name}")

    return call


def _handler(method: Method, call: Call) -> Any:
    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
    }[method.takes_stream, method.gives_stream]
    answered = _stream(call) if method.gives_stream else _single(call)
    return make(answered, request_deserializer=method.request.FromString, response_serializer=_serialized)


def _single(call: Call) -> Callable[[Any, Any], Any]:
    def answered(request: Any, context: Any) -> Any:
        try:
            return call(request, _headers(context))
        except Exception as failure:
            _abort(context, failure)

    return answered


def _stream(call: Call) -> Callable[[Any, Any], Iterator[Any]]:
    def answered(request: Any, context: Any) -> Iterator[Any]:
        try:
            yield from call(request, _headers(context))
        except Exception as failure:
            _abort(context, failure)

    return answered


def _headers(context: Any) -> dict[str, str]:
    """Returns the headers of the caller; those that end in `-bin` have the bytes of a text."""
    sent = context.invocation_metadata() or ()
    return {key: value if isinstance(value, str) else value.decode(errors="replace") for key, value in sent}


def _serialized(message: Any) -> bytes:
    """Returns the bytes of an answer, which a call may have made already."""
    return message if isinstance(message, bytes) else bytes(message.SerializeToString())


def _abort(context: Any, failure: Exception) -> None:
    """Ends the call with the code of the failure. What is not an error of ours is logged, and hidden from the
    client."""
    for kind, code in _CODES:
        if isinstance(failure, kind):
            context.abort(code, str(failure))
    if isinstance(failure, DeployerError):
        context.abort(grpc.StatusCode.INTERNAL, str(failure))
    _LOG.error("a call failed", exc_info=failure)
    context.abort(grpc.StatusCode.INTERNAL, f"the server failed: {type(failure).__name__}; its log says more")
