"""The engine's services over gRPC on a local port, for plugins; nothing listens until the first one is started.

Only processes of the same user may call them (`deployer.provider.callers`).
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

from deployer.engine.program.service import EngineService


class Served:
    """A context that ends the server. `monitor` is served too once the program runs."""

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

    def __enter__(self) -> Served:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.stop(None).wait()
