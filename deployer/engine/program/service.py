"""Pulumi's Engine service: log messages of the program and of plugins, and the program's root resource.

The program calls it in this process, and plugins over gRPC on a local port, where nothing listens until the first one
is started. Only processes of the same user may call there (`deployer.provider.callers`).
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2

from deployer.engine.interfaces.engine import Diagnostic, OnEvent, Severity, StepProgress

_EMPTY = empty_pb2.Empty()
_SEVERITIES: dict[int, Severity] = {
    engine_pb2.DEBUG: "debug",
    engine_pb2.INFO: "info",
    engine_pb2.WARNING: "warning",
    engine_pb2.ERROR: "error",
}


class RefusedCall(grpc.RpcError):  # type: ignore[misc]  # grpc has no types
    """An error message for a call that the engine does not carry out; the SDK shows `details`."""

    def __init__(self, details: str, code: Any = grpc.StatusCode.UNIMPLEMENTED) -> None:
        super().__init__(details)
        self._details, self._code = details, code

    def code(self) -> Any:
        return self._code

    def details(self) -> str:
        return self._details


class EngineService:
    """The service's methods on messages, called by the SDK in this process and by plugins over gRPC."""

    def __init__(self, emit: OnEvent) -> None:
        self._emit = emit
        self._root = ""

    def Log(self, request: Any, context: Any = None) -> Any:  # noqa: N802 -- the protocol's name
        # the SDK sends four debug messages for each resource, which nothing reads
        if request.ephemeral and request.urn:
            self._emit(StepProgress(request.urn, request.message))
        elif request.severity != engine_pb2.DEBUG and not request.ephemeral:
            self._emit(Diagnostic(request.urn, _SEVERITIES.get(request.severity, "info"), request.message))
        return _EMPTY

    def GetRootResource(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        return engine_pb2.GetRootResourceResponse(urn=self._root)

    def SetRootResource(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        self._root = request.urn
        return engine_pb2.SetRootResourceResponse()

    def StartDebugging(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        return _EMPTY

    def RequirePulumiVersion(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        raise RefusedCall("the embedded engine has no Pulumi version to require; install the Pulumi CLI (`pulumi`)")


class GrpcServices:
    """The services over gRPC: a context that ends the server. `monitor` is served too once the program runs."""

    def __init__(self, service: EngineService) -> None:
        self._service = service
        self.monitor: Any = None
        self._server: Any = None
        self._address = ""
        self._lock = threading.Lock()

    def address(self) -> str:
        """`127.0.0.1:PORT` of the server, which this call starts when it is the first."""
        with self._lock:
            if self._server is None:
                self._start()
            return self._address

    def _start(self) -> None:
        import grpc
        from pulumi.runtime.proto import engine_pb2_grpc, resource_pb2_grpc

        from deployer.provider.callers import Callers, Guard

        callers = Callers()
        self._server = grpc.server(ThreadPoolExecutor(4, thread_name_prefix="engine"), interceptors=[Guard(callers)])
        engine_pb2_grpc.add_EngineServicer_to_server(self._service, self._server)  # type: ignore[arg-type]
        if self.monitor is not None:
            resource_pb2_grpc.add_ResourceMonitorServicer_to_server(self.monitor, self._server)
        callers.port = self._server.add_insecure_port("127.0.0.1:0")
        self._address = f"127.0.0.1:{callers.port}"
        self._server.start()

    def __enter__(self) -> GrpcServices:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.stop(None).wait()
