"""Pulumi's ResourceMonitor service, which the program's SDK calls with protobuf messages.

The methods take `context=None`, so that the SDK can call the object directly and a gRPC server can serve it too.
Unsupported calls are refused with a message, which the SDK shows as the program's error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, resource_pb2

from deployer.engine.interfaces.engine import Diagnostic, OutputsChanged
from deployer.engine.interfaces.provider import ProviderFailed
from deployer.engine.persistence.stack_reference import StackReferences
from deployer.engine.program.requests import answer_of, check_urns, goal_of
from deployer.engine.program.service import RefusedCall
from deployer.engine.project.config import StackConfig
from deployer.engine.secrets.encryption import remember_all
from deployer.engine.steps.importing import read_resource
from deployer.engine.steps.naming import Names
from deployer.engine.steps.provider_steps import ProviderSteps
from deployer.engine.steps.registration import Registrar
from deployer.engine.steps.run import Run
from deployer.engine.steps.scheduling import Postponed, in_program_thread
from deployer.engine.values.goal import Goal, RegistrationAnswer
from deployer.engine.values.urns import (
    STACK_REFERENCE,
    STACK_TYPE,
    is_provider_type,
    is_urn,
    package_of,
    split_reference,
    type_of,
)
from deployer.engine.values.values import (
    UNKNOWN,
    blinded,
    contains_secret,
    contains_unknown,
    from_struct,
    to_struct,
)
from deployer.errors import DeployerError, InvalidInput

_EMPTY = empty_pb2.Empty()
_FEATURES = [
    getattr(resource_pb2, f"RESOURCE_MONITOR_FEATURE_{name}")
    for name in (
        "SECRETS",
        "RESOURCE_REFERENCES",
        "ALIAS_SPECS",
        "REPLACEMENT_TRIGGER",
        "DELETED_WITH",
        "REPLACE_WITH",
        "TRANSFORMS",
        "INVOKE_TRANSFORMS",
        "PARAMETERIZATION",
        "RESOURCE_HOOKS",
        "ERROR_HOOKS",
    )
    if hasattr(resource_pb2, f"RESOURCE_MONITOR_FEATURE_{name}")
]  # fmt: skip -- the last five are listed so that their refusal names this engine, not an old CLI
_LEGACY_FEATURES = {
    "secrets", "resourceReferences", "aliasSpecs", "replacementTrigger", "deletedWith", "replaceWith", "transforms",
    "invokeTransforms", "parameterization", "resourceHooks", "errorHooks",
}  # fmt: skip


class Monitor:
    """The service's methods, which several threads call."""

    def __init__(self, run: Run, config: StackConfig, references: StackReferences) -> None:
        self._run, self._config, self._references = run, config, references
        self.names = Names(run)
        self._registrar = Registrar(run, self.names)
        self._providers = ProviderSteps(run, self.names, config)
        self._postponed: dict[int, Callable[[], Any]] = {}
        self.finished = False

    # --- supported features

    def GetDeploymentInfo(self, request: Any, context: Any = None) -> Any:  # noqa: N802 -- the protocol's name
        settings = self._run.settings
        return resource_pb2.DeploymentInfo(
            project=settings.project,
            stack=settings.stack,
            organization="organization",
            config=dict(self._config.values),
            configSecretKeys=sorted(self._config.secret_keys),
            dryRun=settings.dry_run,
            parallel=settings.parallel,
            supportedFeatures=_FEATURES,
        )

    def SupportsFeature(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        return resource_pb2.SupportsFeatureResponse(hasSupport=request.id in _LEGACY_FEATURES)

    def SignalAndWaitForShutdown(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        self.finished = True
        return _EMPTY

    # --- resources

    def RegisterResource(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        return self._guarded(lambda: self._take_up(request, self._register))

    def RegisterResourceOutputs(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        return self._guarded(lambda: self._register_outputs(request))

    def ReadResource(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        return self._guarded(lambda: self._take_up(request, self._read))

    def Invoke(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        return self._guarded(lambda: self._take_up(request, self._invoke))

    # --- unsupported calls

    def Call(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        raise self._refuse(f"calling the method {request.tok} of a remote component")

    def ExistsResource(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        raise self._refuse("asking whether a resource exists")

    def RegisterStackTransform(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        raise self._refuse("a transform of resources")

    def RegisterStackInvokeTransform(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        raise self._refuse("a transform of invokes")

    def RegisterResourceHook(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        raise self._refuse("a resource hook")

    def RegisterErrorHook(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        raise self._refuse("an error hook")

    def RegisterPackage(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        raise self._refuse(f"the parameterized package {request.name}")

    def _refuse(self, what: str) -> RefusedCall:
        return RefusedCall(f"{what} needs the Pulumi CLI: install `pulumi`, which is then used instead of this engine")

    def _take_up(self, request: Any, begin: Callable[[Any], Any]) -> Any:
        """Begins a call, or resumes it in a worker if it was postponed in the program's thread."""
        self._run.refuse_when_stopping()
        if self._run.fatal is not None:
            raise self._run.fatal
        rest = self._postponed.pop(id(request), None)
        try:
            if rest is not None:
                return rest()
            check_urns(request)
            return begin(request)
        except Postponed as postponed:
            self._postponed[id(request)] = postponed.rest
            raise

    def _needs_worker(self, type_: str, provider: str) -> bool:
        """Returns whether even the first comparison of a resource needs a worker, because its provider is another
        process."""
        package = package_of(type_of(split_reference(provider)[0]) if provider else type_)
        return in_program_thread() and not self._run.providers.is_in_process(package)

    def _guarded(self, call: Callable[[], Any]) -> Any:
        """Stores an error of the engine as the run's outcome, and raises it for the SDK, which stops the program with
        its message."""
        try:
            return call()
        except RefusedCall:
            raise
        except DeployerError as error:
            with self._run.lock:
                self._run.fatal = self._run.fatal or error
            raise RefusedCall(str(error), grpc.StatusCode.FAILED_PRECONDITION) from None

    # --- registering

    def _register(self, request: Any) -> Any:
        for used, what in (
            (request.remote, f"the remote component {request.type}"),
            (len(request.transforms) > 0, "a transform of a resource"),
            (len(request.state_migrations) > 0, "a state migration"),
            (bool(request.packageRef), "a parameterized package"),
        ):
            if used:
                raise self._refuse(what)
        if request.custom and self._needs_worker(request.type, request.provider):
            raise Postponed(lambda: self._register(request))
        goal = self._without_leaks(goal_of(request, self._run.require_secrets, self._run.settings.folder))
        try:
            if is_provider_type(goal.type):
                registered = self._providers.register(goal)
            elif goal.custom:
                registered = self._custom(goal)
            else:
                registered = self._registrar.register(goal)
        except Postponed as postponed:
            rest = postponed.rest
            raise Postponed(lambda: answer_of(rest())) from None
        return answer_of(registered)

    def _without_leaks(self, goal: Goal) -> Goal:
        """Returns the goal; known secrets in plain text are made secret, each with a warning. Raises Refused for a name
        that contains a secret."""
        run = self._run
        urn = self.names.urn(goal.type, goal.name, goal.parent)
        run.leaks.refuse_name(goal.name, goal.position or goal.type)
        if not is_urn(urn) or type_of(urn) != goal.type:
            raise InvalidInput(
                f"the program gives a resource the type {goal.type[:100]!r} and the name {goal.name[:100]!r}, "
                "which do not make a valid URN",
                where=goal.position or None,
                remedy="use a type such as my:module:Type and a name without control characters",
            )
        remember_all(goal.inputs, (urn, "inputs"))
        inputs, leaks = run.leaks.hidden(goal.inputs)
        if not leaks:
            return goal
        run.require_secrets()
        for leak in leaks:
            what = f"the input {leak.path} holds the value of {leak.name} in clear, and is kept as a secret"
            run.emit(Diagnostic(urn, "warning", f"{what}; read it with config.require_secret in the program"))
        return replace(goal, inputs=inputs)

    def _custom(self, goal: Goal) -> RegistrationAnswer:
        if not goal.provider:
            try:
                reference = self._providers.default_reference(goal.type, goal.version, goal.plugin_url)
            except ProviderFailed as failure:
                urn = self.names.claim(goal)
                self._run.fail(urn, "create", str(failure), skipped=True)
                return RegistrationAnswer(urn, failed=True)
            goal = replace(goal, provider=reference)
        return self._registrar.register(goal)

    def _register_outputs(self, request: Any) -> Any:
        check_urns(request)
        run, urn = self._run, request.urn
        outputs = from_struct(request.outputs)
        remember_all(outputs, (urn, "outputs"))
        if type_of(urn) == STACK_TYPE:
            run.leaks.refuse("the output", outputs, f"stack {run.settings.stack}")
        else:
            outputs, _ = run.leaks.hidden(outputs)
        if contains_secret(outputs):
            run.require_secrets()
        with run.lock:
            key = run.live.get(urn)
            if key is None:
                return _EMPTY  # its registration failed, or the targets do not include it
            state = run.snapshot[key]
            before = run.olds[urn][1].outputs if urn in run.olds else {}
        if not run.settings.dry_run:
            # outputs that depend on a failed resource do not change
            outputs = {
                name: before.get(name) if contains_unknown(value) else value
                for name, value in outputs.items()
                if not contains_unknown(value) or name in before
            }
        if outputs != state.outputs:
            run.end(None, put={key: replace(state, outputs=outputs)})
        if state.type == STACK_TYPE:
            run.outputs = outputs
            if outputs != before:
                run.emit(OutputsChanged(blinded(outputs)))
        return _EMPTY

    def _read(self, request: Any) -> Any:
        run = self._run
        if in_program_thread() and not run.settings.dry_run:
            raise Postponed(lambda: self._read(request))
        if request.packageRef:
            raise self._refuse("a parameterized package")
        goal = Goal(
            type=request.type,
            name=request.name,
            custom=True,
            inputs=from_struct(request.properties),
            parent=request.parent,
            provider=request.provider,
            version=request.version,
            plugin_url=request.pluginDownloadURL,
            dependencies=tuple(sorted(request.dependencies)),
            additional_secret_outputs=tuple(request.additionalSecretOutputs),
        )
        goal = self._without_leaks(goal)
        urn = self.names.claim(goal)
        if request.type == STACK_REFERENCE:
            outputs = self._references.read(str(goal.inputs.get("name") or request.id))
            return resource_pb2.ReadResourceResponse(urn=urn, id=request.id, properties=to_struct(outputs))
        try:
            if not goal.provider:
                reference = self._providers.default_reference(goal.type, goal.version, goal.plugin_url)
                goal = replace(goal, provider=reference)
            if request.id == UNKNOWN:
                return resource_pb2.ReadResourceResponse(urn=urn)
            key, old = self.names.find_old(goal, urn)
            found = read_resource(run, goal, urn, request.id, key, old)
        except ProviderFailed as failure:
            run.fail(urn, "read", str(failure))
            return resource_pb2.ReadResourceResponse(urn=urn, result=resource_pb2.Result.FAIL)
        return resource_pb2.ReadResourceResponse(urn=urn, id=found.id, properties=to_struct(found.outputs))

    def _invoke(self, request: Any) -> Any:
        if in_program_thread():
            raise Postponed(lambda: self._invoke(request))
        if request.packageRef:
            raise self._refuse("a parameterized package")
        if request.tok == "pulumi:pulumi:getResource":
            raise self._refuse("looking up a resource by its URN")
        args = from_struct(request.args)
        reference = request.provider or self._providers.default_reference(
            request.tok, request.version, request.pluginDownloadURL
        )
        provider = self._run.provider_of(reference)
        answer = resource_pb2.ResourceInvokeResponse()
        if not provider.known or contains_unknown(args):
            answer.unknown = True
            return answer
        try:
            invoked = provider.client.invoke(request.tok, args)
        except ProviderFailed as failure:
            raise RefusedCall(f"{request.tok}: {failure}", grpc.StatusCode.UNKNOWN) from None
        getattr(answer, "return").CopyFrom(to_struct(invoked.value))
        answer.failures.extend(
            provider_pb2.CheckFailure(property=name, reason=reason) for name, reason in invoked.failures
        )
        return answer
