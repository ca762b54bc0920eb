"""A provider in a process of its own, called over gRPC: Pulumi's ResourceProvider service."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from deployer.engine.interfaces.provider import (
    CheckedInputs,
    Features,
    InitFailed,
    InputsDiff,
    Invoked,
    Live,
    ProviderFailed,
)
from deployer.engine.project.project import text_of
from deployer.engine.providers.process import PluginProcess
from deployer.engine.values.assets import with_hashes
from deployer.engine.values.property_paths import DiffKind
from deployer.engine.values.values import Properties, from_struct, has_special, keep_secrecy, to_struct, without_secrets
from deployer.provider.callers import TOKEN_KEY

_MAX_MESSAGE = 400 * 1024 * 1024  # the limit that the SDK's own channels have
_KINDS: tuple[DiffKind, ...] = ("add", "add-replace", "delete", "delete-replace", "update", "update-replace")


class RemoteProvider:
    """Implements `ProviderClient` on a plugin's process, and ends it with `close`.

    `folder` is the program's folder, to which paths of assets are relative.
    """

    resumes_creates = False  # unknown for third-party providers

    def __init__(self, plugin: PluginProcess, folder: Path) -> None:
        self._plugin, self._folder = plugin, folder
        limits = [("grpc.max_receive_message_length", _MAX_MESSAGE), ("grpc.max_send_message_length", _MAX_MESSAGE)]
        self._channel = grpc.insecure_channel(f"127.0.0.1:{plugin.port}", options=limits)
        self._stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        self._metadata = ((TOKEN_KEY, plugin.token),)
        self._accept_secrets = False

    def check_config(self, urn: str, olds: Properties, news: Properties) -> CheckedInputs:
        request = provider_pb2.CheckRequest(urn=urn, olds=to_struct(olds), news=to_struct(news))
        try:
            return self._checked(self._call(self._stub.CheckConfig, request), news)
        except _Unimplemented:
            return CheckedInputs(news)

    def diff_config(self, urn: str, olds: Properties, news: Properties) -> InputsDiff:
        request = provider_pb2.DiffRequest(
            urn=urn, olds=to_struct(olds), old_inputs=to_struct(olds), news=to_struct(news)
        )
        try:
            return _diffed(self._call(self._stub.DiffConfig, request))
        except _Unimplemented:
            return InputsDiff(None)

    def configure(self, urn: str, id_: str, package: str, inputs: Properties) -> Features:
        request = provider_pb2.ConfigureRequest(
            args=to_struct(inputs),
            variables={f"{package}:config:{key}": text_of(without_secrets(value)) for key, value in inputs.items()},
            acceptSecrets=True,
            acceptResources=True,
            sends_old_inputs=True,
            sends_old_inputs_to_delete=True,
        )
        answer = self._call(self._stub.Configure, request)
        self._accept_secrets = answer.acceptSecrets
        return Features(answer.acceptSecrets, answer.supportsPreview)

    def check(self, urn: str, olds: Properties, news: Properties, seed: bytes) -> CheckedInputs:
        request = provider_pb2.CheckRequest(urn=urn, olds=self._map(olds), news=self._map(news), randomSeed=seed)
        return self._checked(self._call(self._stub.Check, request), news)

    def diff(
        self,
        urn: str,
        id_: str,
        old_inputs: Properties,
        old_outputs: Properties,
        new_inputs: Properties,
        ignore_changes: tuple[str, ...],
    ) -> InputsDiff:
        request = provider_pb2.DiffRequest(
            id=id_,
            urn=urn,
            olds=self._map(old_outputs),
            old_inputs=self._map(old_inputs),
            news=self._map(new_inputs),
            ignoreChanges=ignore_changes,
        )
        try:
            return _diffed(self._call(self._stub.Diff, request))
        except _Unimplemented:
            return InputsDiff(None)

    def create(self, urn: str, inputs: Properties, timeout: float, preview: bool) -> Live:
        request = provider_pb2.CreateRequest(urn=urn, properties=self._map(inputs), timeout=timeout, preview=preview)
        answer = self._call(self._stub.Create, request)
        return Live(answer.id, self._outputs(answer.properties, inputs))

    def read(self, urn: str, id_: str, inputs: Properties, outputs: Properties) -> Live:
        request = provider_pb2.ReadRequest(id=id_, urn=urn, properties=self._map(outputs), inputs=self._map(inputs))
        answer = self._call(self._stub.Read, request)
        read_inputs = self._outputs(answer.inputs, inputs) if answer.HasField("inputs") else None
        return Live(answer.id, self._outputs(answer.properties, outputs), read_inputs or None)

    def update(
        self,
        urn: str,
        id_: str,
        old_inputs: Properties,
        old_outputs: Properties,
        new_inputs: Properties,
        timeout: float,
        ignore_changes: tuple[str, ...],
        preview: bool,
    ) -> Live:
        request = provider_pb2.UpdateRequest(
            id=id_,
            urn=urn,
            olds=self._map(old_outputs),
            old_inputs=self._map(old_inputs),
            news=self._map(new_inputs),
            timeout=timeout,
            ignoreChanges=ignore_changes,
            preview=preview,
        )
        answer = self._call(self._stub.Update, request)
        return Live(id_, self._outputs(answer.properties, new_inputs))

    def delete(self, urn: str, id_: str, old_inputs: Properties, outputs: Properties, timeout: float) -> None:
        request = provider_pb2.DeleteRequest(
            id=id_, urn=urn, properties=self._map(outputs), old_inputs=self._map(old_inputs), timeout=timeout
        )
        self._call(self._stub.Delete, request)

    def invoke(self, token: str, args: Properties) -> Invoked:
        answer = self._call(self._stub.Invoke, provider_pb2.InvokeRequest(tok=token, args=self._map(args)))
        failures = tuple((failure.property, failure.reason) for failure in answer.failures)
        return Invoked(from_struct(getattr(answer, "return")), failures)

    def close(self) -> None:
        self._channel.close()
        self._plugin.stop()

    def _map(self, properties: Properties) -> Any:
        return to_struct(properties if self._accept_secrets else without_secrets(properties))

    def _outputs(self, struct: Any, sent: Properties) -> dict[str, Any]:
        outputs = with_hashes(from_struct(struct), self._folder) if has_special(struct) else from_struct(struct)
        return outputs if self._accept_secrets else keep_secrecy(outputs, sent)

    def _checked(self, answer: Any, news: Properties) -> CheckedInputs:
        failures = tuple((failure.property, failure.reason) for failure in answer.failures)
        inputs = self._outputs(answer.inputs, news) if answer.HasField("inputs") else dict(news)
        return CheckedInputs(inputs, failures)

    def _call(self, method: Callable[..., Any], request: Any) -> Any:
        try:
            return method(request, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._failure(error) from None

    def _failure(self, error: Any) -> ProviderFailed:
        if error.code() == grpc.StatusCode.UNIMPLEMENTED:
            return _Unimplemented(f"{self._plugin.name} does not implement this call")
        broken = error.code() == grpc.StatusCode.UNAVAILABLE or "Socket closed" in (error.details() or "")
        if broken and (ended := self._plugin.how_it_ended()):
            return ProviderFailed(ended)
        message = _message(error.details() or str(error.code()))
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                status = status_pb2.Status.FromString(value)
                for detail in status.details:
                    failed = provider_pb2.ErrorResourceInitFailed()
                    if detail.Is(failed.DESCRIPTOR):
                        detail.Unpack(failed)
                        live = Live(failed.id, from_struct(failed.properties), from_struct(failed.inputs) or None)
                        return InitFailed(message, live, tuple(failed.reasons) or (message,))
        return ProviderFailed(message)


class _Unimplemented(ProviderFailed):
    pass


_WRAPPER = re.compile(r"^Unexpected <class '[^']*'>: ")


def _message(details: str) -> str:
    """Returns a provider's message without the wrapper and the traceback that the Python SDK's server adds."""
    text = _WRAPPER.sub("", details)
    return text.split('\n  File "', 1)[0].rstrip().removesuffix(":")


def _diffed(answer: Any) -> InputsDiff:
    changes = {provider_pb2.DiffResponse.DIFF_NONE: False, provider_pb2.DiffResponse.DIFF_SOME: True}
    return InputsDiff(
        changes=changes.get(answer.changes),
        replaces=tuple(answer.replaces),
        stables=tuple(answer.stables),
        delete_before_replace=answer.deleteBeforeReplace,
        diffs=tuple(answer.diffs),
        detailed={path: _KINDS[diff.kind] for path, diff in answer.detailedDiff.items()},
    )
