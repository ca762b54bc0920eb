"""Provider resources: those that the program registers, and default providers for resources without a provider."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deployer.engine.interfaces.provider import ProviderFailed
from deployer.engine.project.config import StackConfig
from deployer.engine.steps.naming import Names
from deployer.engine.steps.run import Run, operation
from deployer.engine.values.goal import Goal, RegistrationAnswer
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.urns import PROVIDER_PREFIX, name_of, package_of, provider_reference
from deployer.engine.values.values import UNKNOWN, same, secret


class ProviderSteps:
    """Registers provider resources and keeps one default provider for each package, version and download URL."""

    def __init__(self, run: Run, names: Names, config: StackConfig) -> None:
        self._run, self._names, self._config = run, names, config
        self._defaults: dict[tuple[str, str, str], str | ProviderFailed] = {}
        self._lock = threading.Lock()

    def default_reference(self, type_: str, version: str, url: str) -> str:
        """Returns the reference of the default provider of a type's package; registers the provider on the first
        call."""
        package = package_of(type_)
        if any(hidden for _, hidden in self._config.of_package(package).values()):
            self._run.require_secrets()
        key = (package, version, url)
        with self._lock:
            if key not in self._defaults:
                self._defaults[key] = self._register_default(package, version, url)
            known = self._defaults[key]
        if isinstance(known, ProviderFailed):
            raise known
        return known

    def _register_default(self, package: str, version: str, url: str) -> str | ProviderFailed:
        inputs: dict[str, Any] = {
            name: secret(value) if is_hidden else value
            for name, (value, is_hidden) in self._config.of_package(package).items()
        }
        name = "default" + "".join(f"_{part}" for part in re.split(r"[.+\-]", version) if part)
        if url:
            name += "_" + re.sub(r"[^A-Za-z0-9_.]", "_", url)
        goal = Goal(
            PROVIDER_PREFIX + package, name, custom=True, inputs=engine_inputs(inputs, version, url), version=version
        )
        registered = self.register(goal)
        if registered.failed:
            return ProviderFailed(f"its provider failed: {self._run.failures[registered.urn]}")
        return provider_reference(registered.urn, registered.id or UNKNOWN)

    def register(self, goal: Goal) -> RegistrationAnswer:
        run = self._run
        run.refuse_when_stopping()
        urn = self._names.claim(goal)
        key, old = self._names.find_old(goal, urn)
        try:
            return self._register(goal, urn, key, old)
        except ProviderFailed as failure:
            run.fail(urn, "update" if old else "create", str(failure))
            return RegistrationAnswer(urn, failed=True)

    def _register(self, goal: Goal, urn: str, key: str, old: ResourceState | None) -> RegistrationAnswer:
        run = self._run
        checked = run.providers.check_config(urn, goal.type, old.inputs if old else {}, goal.inputs)
        if checked.failures:
            raise ProviderFailed(
                "; ".join(f"{name}: {reason}" if name else reason for name, reason in checked.failures)
            )
        new = ResourceState(
            urn=urn,
            type=goal.type,
            custom=True,
            inputs=checked.inputs,
            outputs=_outputs(checked.inputs),
            parent=goal.parent,
            protect=goal.protect,
            dependencies=goal.dependencies,
            property_dependencies=goal.property_dependencies,
            aliases=(old.urn,) if old is not None and old.urn != urn else (),
            extra=old.extra if old is not None else {},
        )
        op, id_ = self._decide(new, old)
        new = replace(new, id=id_)
        visible = not _is_default(urn)
        if visible:
            run.record(operation(new, op, old))
        run.providers.configure(provider_reference(urn, id_ or UNKNOWN), urn, id_, goal.type, new.inputs)
        if op == "same" and new == old:
            run.end(None, keep=key)
        elif op == "replace" and old is not None:
            run.replaced.add(urn)
            run.end(None, add=new, put={key: replace(old, delete=True)})
        else:
            run.end(None, add=new, drop=(key,) if key else ())
        return RegistrationAnswer(urn, id_, new.outputs)

    def _decide(self, new: ResourceState, old: ResourceState | None) -> tuple[Any, str]:
        """Returns the operation on the provider resource, and its id; a new one has no id in a preview."""
        fresh = "" if self._run.settings.dry_run else str(uuid.uuid4())
        if old is None:
            return "create", fresh
        if same(dict(old.inputs), dict(new.inputs)):
            return "same", old.id
        diffed = self._run.providers.diff_config(new.urn, new.type, old.inputs, new.inputs)
        replaced = bool(diffed.replaces) or any(kind.endswith("-replace") for kind in diffed.detailed.values())
        return ("replace", fresh) if replaced else ("update", old.id)


def engine_inputs(inputs: Mapping[str, Any], version: str, url: str) -> dict[str, Any]:
    """Returns a provider resource's inputs with the plugin's version and origin, where Pulumi stores them."""
    more: dict[str, Any] = dict(inputs)
    if version:
        more["version"] = version
    if url:
        more["__internal"] = {"pluginDownloadURL": url}
    return more


def _outputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in inputs.items() if name != "__internal"}


def _is_default(urn: str) -> bool:
    return name_of(urn).startswith("default")
