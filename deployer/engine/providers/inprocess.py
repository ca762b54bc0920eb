"""A provider called in this process: an object of the SDK's class `pulumi.provider.experimental.Provider`.

Its methods get the same request objects that the SDK's gRPC server would hand it, and may be called from several
threads at once. They may be coroutines: each worker thread has an event loop of its own, so a provider must not keep
anything bound to one loop between calls.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from pulumi.provider.experimental import provider as sdk
from pulumi.provider.experimental.property_value import PropertyValue

from deployer.engine.interfaces.engine import DiffKind
from deployer.engine.interfaces.provider import Checked, Diffed, Features, Invoked, Live, OnStepProgress, ProviderFailed
from deployer.engine.values.property_values import from_property_map, to_property_map
from deployer.engine.values.values import Properties, without_secrets
from deployer.errors import DeployerError

T = TypeVar("T")

_KINDS: Mapping[sdk.PropertyDiffKind, DiffKind] = {
    sdk.PropertyDiffKind.ADD: "add",
    sdk.PropertyDiffKind.ADD_REPLACE: "add-replace",
    sdk.PropertyDiffKind.DELETE: "delete",
    sdk.PropertyDiffKind.DELETE_REPLACE: "delete-replace",
    sdk.PropertyDiffKind.UPDATE: "update",
    sdk.PropertyDiffKind.UPDATE_REPLACE: "update-replace",
}


class InProcess:
    """Implements `ProviderClient` on a provider object.

    `resumes_creates` is the provider's attribute of that name, and True without it: a provider of this process is
    the project's own, whose `create` carries on where a killed one stopped. A provider that has an attribute
    `on_progress` gets `on_progress` there, to tell how far a step of a resource is.
    """

    def __init__(self, provider: sdk.Provider, on_progress: OnStepProgress) -> None:
        self._provider = provider
        if hasattr(provider, "on_progress"):
            provider.on_progress = on_progress
        self._loops = threading.local()
        self._accept_secrets = True
        self.resumes_creates = bool(getattr(provider, "resumes_creates", True))
        self._opened: list[asyncio.AbstractEventLoop] = []

    def check_config(self, urn: str, olds: Properties, news: Properties) -> Checked:
        return self._check(self._provider.check_config, urn, olds, news, b"")

    def diff_config(self, urn: str, olds: Properties, news: Properties) -> Diffed:
        request = sdk.DiffRequest(urn, "", self._map(olds), self._map(news), [])
        return _diffed(self._call(self._provider.diff_config, request))

    def configure(self, urn: str, id_: str, package: str, inputs: Properties) -> Features:
        variables = {f"{package}:config:{key}": _variable(value) for key, value in inputs.items()}
        answer = self._call(
            self._provider.configure, sdk.ConfigureRequest(variables, to_property_map(inputs), True, True)
        )
        self._accept_secrets = answer.accept_secrets
        return Features(answer.accept_secrets, answer.supports_preview)

    def check(self, urn: str, olds: Properties, news: Properties, seed: bytes) -> Checked:
        return self._check(self._provider.check, urn, olds, news, seed)

    def diff(
        self,
        urn: str,
        id_: str,
        old_inputs: Properties,
        old_outputs: Properties,
        new_inputs: Properties,
        ignore_changes: tuple[str, ...],
    ) -> Diffed:
        request = sdk.DiffRequest(urn, id_, self._map(old_outputs), self._map(new_inputs), list(ignore_changes))
        return _diffed(self._call(self._provider.diff, request))

    def create(self, urn: str, inputs: Properties, timeout: float, preview: bool) -> Live:
        sent = self._map(inputs)
        answer = self._call(self._provider.create, sdk.CreateRequest(urn, dict(sent), timeout, preview))
        return Live(answer.resource_id or "", from_property_map(answer.properties, sent, inputs))

    def read(self, urn: str, id_: str, inputs: Properties, outputs: Properties) -> Live:
        sent_inputs, sent_outputs = self._map(inputs), self._map(outputs)
        answer = self._call(self._provider.read, sdk.ReadRequest(urn, id_, dict(sent_outputs), dict(sent_inputs)))
        return Live(
            answer.resource_id or "",
            from_property_map(answer.properties, sent_outputs, outputs),
            from_property_map(answer.inputs, sent_inputs, inputs) if answer.inputs else None,
        )

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
        sent = self._map(new_inputs)
        request = sdk.UpdateRequest(
            urn, id_, self._map(old_outputs), dict(sent), timeout, list(ignore_changes), preview
        )
        answer = self._call(self._provider.update, request)
        return Live(id_, from_property_map(answer.properties, sent, new_inputs))

    def delete(self, urn: str, id_: str, old_inputs: Properties, outputs: Properties, timeout: float) -> None:
        self._call(self._provider.delete, sdk.DeleteRequest(urn, id_, self._map(outputs), timeout))

    def invoke(self, token: str, args: Properties) -> Invoked:
        sent = self._map(args)
        answer = self._call(self._provider.invoke, sdk.InvokeRequest(token, dict(sent)))
        failures = tuple((failure.property, failure.reason) for failure in answer.failures or ())
        return Invoked(from_property_map(answer.return_value or {}, sent, args), failures)

    def close(self) -> None:
        for loop in self._opened:
            loop.close()
        self._opened.clear()

    def _check(self, method: Callable[..., Any], urn: str, olds: Properties, news: Properties, seed: bytes) -> Checked:
        sent = self._map(news)
        answer = self._call(method, sdk.CheckRequest(urn, self._map(olds), dict(sent), seed))
        failures = tuple((failure.property, failure.reason) for failure in answer.failures or ())
        return Checked(from_property_map(answer.inputs or {}, sent, news), failures)

    def _map(self, properties: Properties) -> dict[str, PropertyValue]:
        return to_property_map(properties if self._accept_secrets else without_secrets(properties))

    def _call(self, method: Callable[..., Any], request: Any) -> Any:
        try:
            answer = method(request)
            return self._finished(answer) if isinstance(answer, Coroutine) else answer
        except NotImplementedError as error:
            raise ProviderFailed(f"the provider does not do this: {error}") from None
        except DeployerError as error:
            raise ProviderFailed(str(error)) from error
        except Exception as error:
            raise ProviderFailed(f"{type(error).__name__}: {error}") from error

    def _finished(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine to its end on this thread's own loop, also below the program's running loop."""
        outer = asyncio._get_running_loop()
        if outer is None:
            return self._loop().run_until_complete(coroutine)
        asyncio._set_running_loop(None)
        try:
            return self._loop().run_until_complete(coroutine)
        finally:
            asyncio._set_running_loop(outer)

    def _loop(self) -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop | None = getattr(self._loops, "loop", None)
        if loop is None or loop.is_closed():
            loop = asyncio.new_event_loop()
            self._loops.loop = loop
            self._opened.append(loop)
        return loop


def _diffed(answer: sdk.DiffResponse) -> Diffed:
    return Diffed(
        changes=answer.changes,
        replaces=tuple(answer.replaces),
        stables=tuple(answer.stables),
        delete_before_replace=bool(answer.delete_before_replace),
        diffs=tuple(answer.diffs),
        detailed={path: _KINDS[diff.kind] for path, diff in answer.detailed_diff.items()},
    )


def _variable(value: Any) -> str:
    from deployer.engine.project.project import text_of

    return text_of(without_secrets(value))
