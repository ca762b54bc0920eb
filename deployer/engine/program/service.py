"""Pulumi's Engine service: log messages of the program and of plugins, and the program's root resource."""

from __future__ import annotations

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
    """An answer in words to a call that the engine does not carry out; the SDK shows `details`."""

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
        # the SDK sends four debug messages a resource, and nobody reads them
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
