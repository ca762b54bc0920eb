"""A plugin written on the bare protocol: its resources exist before they are ready, and are ready after an update.

It takes no secrets, leaves comparing to the engine (no Diff), and supports no previews, as older providers do.
"""

from __future__ import annotations

import sys
from concurrent import futures
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2


class Unready(provider_pb2_grpc.ResourceProviderServicer):
    def CheckConfig(self, request: Any, context: Any) -> Any:  # noqa: N802 -- the protocol's names
        return provider_pb2.CheckResponse(inputs=request.news)

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.ConfigureResponse()

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.CheckResponse(inputs=request.news)

    def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        failed = provider_pb2.ErrorResourceInitFailed(
            id="u-1", properties=request.properties, inputs=request.properties, reasons=["not ready after 1 s"]
        )
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message="created, not ready")
        status.details.add().Pack(failed)
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(grpc.StatusCode.UNKNOWN, "created, not ready")

    def Read(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)

    def Update(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.UpdateResponse(properties=request.news)

    def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        return empty_pb2.Empty()


if __name__ == "__main__":
    server = grpc.server(futures.ThreadPoolExecutor(2))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Unready(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    server.wait_for_termination()
