"""`pulumi-resource-lake`: serves the provider over gRPC, as the Pulumi CLI starts it.

Argument: the engine's address. Prints the port on stdout and serves on loopback until it is ended, or until the process
that started it ends, because a killed engine does not end its plugins. Only processes of the same user may call it
(`deployer.provider.callers`). Relative roots start from the folder of Pulumi.yaml, which is searched upwards from the
folder where the engine starts the plugin.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
from pulumi.provider.experimental import provider as sdk
from pulumi.provider.experimental.property_value import Computed, PropertyValue
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2_grpc

from deployer import __version__
from deployer.errors import DeployerError
from deployer.platform.system.progress import describe_progress
from deployer.provider.callers import TOKEN_VARIABLE, AsyncGuard, Callers
from deployer.provider.provider import LakeProvider
from deployer.provider.resources import run_context as variables
from deployer.provider.resources.deletions import Deletions
from deployer.provider.resources.kind import UNKNOWN, DiffKind
from deployer.provider.resources.run_context import Stores
from deployer.provider.unplanned import UnplannedRun

STATUS_SECONDS = 0.5  #: seconds between two messages about the progress of a step
_LOOK_SECONDS = 0.5  #: seconds between two checks whether the engine still runs


def main() -> None:
    """Serves until the engine ends the process."""
    if len(sys.argv) < 2:
        sys.stderr.write("error: this is a Pulumi provider, started by Pulumi with the engine's address\n")
        raise SystemExit(1)
    _end_with_engine()
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(sys.argv[1]))


def _end_with_engine() -> None:
    """Ends this process soon after the one that started it, also during a step: steps may be killed."""
    engine = os.getppid()

    def watch() -> None:
        while os.getppid() == engine:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


async def _serve(engine_address: str) -> None:
    allowed = [address for address in os.environ.get(variables.ALLOW_DESTROY_VARIABLE, "").split(",") if address]
    stores = Stores(_project_dir(), allowed, deletions=Deletions.of_environment(os.environ))
    stores.delete_savepoints = os.environ.get(variables.DELETE_SAVEPOINTS_VARIABLE) == "1"
    stores.new_state = os.environ.get(variables.NEW_STATE_VARIABLE) == "1"
    stores.outputs = json.loads(os.environ.get(variables.OUTPUTS_VARIABLE) or "{}")
    callers = Callers(os.environ.get(TOKEN_VARIABLE, ""))
    server = grpc.aio.server(options=_GRPC_CHANNEL_OPTIONS, interceptors=[AsyncGuard(callers), _ErrorsInWords()])
    status = _Status(engine_address)
    # deployer's own runs have a plan, which names allowed deletions, and have checked it by the policies
    unplanned = UnplannedRun(stores.project_dir, status.warn) if stores.deletions is None else None
    provider = LakeProvider(stores, unplanned)
    provider.on_progress = status
    servicer = ProviderServicer([], __version__, _ServedProvider(provider), engine_address)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    callers.port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{callers.port}\n")
    sys.stdout.flush()
    try:
        await server.wait_for_termination()
    finally:
        stores.close()


def _project_dir() -> Path:
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / "Pulumi.yaml").is_file()), here)


_DIFF_KINDS: Mapping[DiffKind, sdk.PropertyDiffKind] = {
    "add": sdk.PropertyDiffKind.ADD,
    "delete": sdk.PropertyDiffKind.DELETE,
    "update": sdk.PropertyDiffKind.UPDATE,
}


class _ServedProvider(sdk.Provider):
    """The provider in the form that the SDK's servicer calls. Work is done in threads, so that the event loop stays
    free."""

    def __init__(self, provider: LakeProvider) -> None:
        self._provider = provider

    async def check_config(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        return sdk.CheckResponse(request.new_inputs, None)

    async def diff_config(self, request: sdk.DiffRequest) -> sdk.DiffResponse:
        return sdk.DiffResponse(changes=False, replaces=[], stables=[], delete_before_replace=False, diffs=[])

    async def configure(self, request: sdk.ConfigureRequest) -> sdk.ConfigureResponse:
        # secrets are accepted only to refuse them: a lake's log and its catalogs store declarations in plain text
        return sdk.ConfigureResponse(accept_secrets=True, accept_outputs=False, supports_preview=True)

    async def check(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        secret = [name for name, value in request.new_inputs.items() if _has_secret(value)]
        inputs, failures = await asyncio.to_thread(
            self._provider.check, request.urn, {} if secret else _plain(request.new_inputs), secret
        )
        return sdk.CheckResponse(
            _properties(inputs), [sdk.CheckFailure(failure.property, failure.reason) for failure in failures]
        )

    async def diff(self, request: sdk.DiffRequest) -> sdk.DiffResponse:
        found = self._provider.diff(request.urn, _plain(request.old_state), _plain(request.new_inputs))
        return sdk.DiffResponse(
            changes=found.changed,
            replaces=list(found.replaces),
            stables=[],
            delete_before_replace=found.delete_before_replace,
            diffs=list(found.names),
            detailed_diff={path: sdk.PropertyDiff(_DIFF_KINDS[kind], True) for path, kind in found.detailed.items()},
        )

    async def create(self, request: sdk.CreateRequest) -> sdk.CreateResponse:
        made = await asyncio.to_thread(
            self._provider.create, request.urn, _plain(request.properties), preview=request.preview
        )
        return sdk.CreateResponse(made.id, _properties(made.outputs))

    async def read(self, request: sdk.ReadRequest) -> sdk.ReadResponse:
        found = await asyncio.to_thread(self._provider.read, request.urn, request.resource_id, _plain(request.inputs))
        if found is None:
            return sdk.ReadResponse(None, {}, {})
        return sdk.ReadResponse(found.id, _properties(found.outputs), _properties(found.inputs))

    async def update(self, request: sdk.UpdateRequest) -> sdk.UpdateResponse:
        updated = await asyncio.to_thread(
            self._provider.update, request.urn, request.resource_id, _plain(request.news), preview=request.preview
        )
        return sdk.UpdateResponse(_properties(updated.outputs))

    async def delete(self, request: sdk.DeleteRequest) -> None:
        await asyncio.to_thread(self._provider.delete, request.urn, request.resource_id, _plain(request.properties))

    async def cancel(self) -> None:
        self._provider.cancel()


def _has_secret(value: PropertyValue) -> bool:
    if value.is_secret:
        return True
    match value.value:
        case None | str() | bool() | float() | int() | Computed():
            return False
        case Mapping() as mapping:
            return any(map(_has_secret, mapping.values()))
        case items:
            return any(map(_has_secret, items))  # type: ignore[arg-type]


def _plain(properties: Mapping[str, PropertyValue]) -> dict[str, Any]:
    return {key: _plain_value(value) for key, value in properties.items()}


def _plain_value(value: PropertyValue) -> Any:
    match value.value:
        case None | str() | bool() as plain:
            return plain
        case float() | int() as number:
            return int(number) if number == int(number) else number
        case Computed():
            return UNKNOWN
        case Mapping() as mapping:
            return _plain(mapping)
        case items:
            return [_plain_value(item) for item in items]  # type: ignore[union-attr]


def _properties(plain: Mapping[str, Any]) -> dict[str, PropertyValue]:
    return {key: _property(value) for key, value in plain.items()}


def _property(value: Any) -> PropertyValue:
    if isinstance(value, Mapping):
        return PropertyValue(_properties(value))
    if isinstance(value, list | tuple):
        return PropertyValue([_property(item) for item in value])
    # UNKNOWN stays a string as on the wire: the SDK's servicer cannot marshal its own Computed
    return PropertyValue(float(value) if isinstance(value, int) and not isinstance(value, bool) else value)


class _Status:
    """Reports the progress of a step to the engine, by messages that replace each other on its screen, and warnings."""

    def __init__(self, engine_address: str) -> None:
        channel = grpc.insecure_channel(engine_address, options=_GRPC_CHANNEL_OPTIONS)
        self._engine = engine_pb2_grpc.EngineStub(channel)
        self._reported: dict[str, float] = {}

    def __call__(self, urn: str, doing: str, done: int, total: int | None, unit: str) -> None:
        now = time.monotonic()
        if now < self._reported.get(urn, -math.inf) + STATUS_SECONDS:
            return
        self._reported[urn] = now
        message = describe_progress(doing, done, total, unit)
        self._log(severity=engine_pb2.INFO, message=message, urn=urn, ephemeral=True)

    def warn(self, message: str) -> None:
        """Shows a warning that stays."""
        self._log(severity=engine_pb2.WARNING, message=message)

    def _log(self, **request: Any) -> None:
        with suppress(grpc.RpcError):  # an engine that no longer listens does not stop the step
            self._engine.Log(engine_pb2.LogRequest(**request))


class _ErrorsInWords(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Answers a DeployerError with its text only; the SDK's servicer would add a traceback."""

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        if handler is None or handler.unary_unary is None:
            return handler
        return grpc.unary_unary_rpc_method_handler(
            _in_words(handler.unary_unary), handler.request_deserializer, handler.response_serializer
        )


def _in_words(method: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
    async def answer(request: Any, context: Any) -> Any:
        try:
            return await method(request, context)
        except Exception as error:
            cause = error.__context__  # the servicer raises a new error while it handles ours
            if isinstance(cause, DeployerError):
                await context.abort(grpc.StatusCode.UNKNOWN, str(cause))
            raise

    return answer
