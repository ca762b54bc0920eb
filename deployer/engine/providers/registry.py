"""Finds, starts, configures and ends the providers of a run. Each configuration is used once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployer.engine.interfaces.provider import (
    CheckedInputs,
    Features,
    InputsDiff,
    OnStepProgress,
    ProviderClient,
    Source,
)
from deployer.engine.project.project import Project
from deployer.engine.providers.plugin_search import find_plugin
from deployer.engine.providers.process import PluginProcess, Report
from deployer.engine.providers.remote import RemoteProvider
from deployer.engine.providers.sealed import Sealed
from deployer.engine.values.urns import package_of
from deployer.engine.values.values import Properties, contains_secret, contains_unknown
from deployer.errors import EngineFailed

_ENGINE_KEYS = ("version", "__internal", "pluginDownloadURL")


@dataclass(frozen=True, slots=True)
class ConfiguredProvider:
    """A configured provider. `known` is False when its configuration has values that are unknown in a preview; `secret`
    then says that secrets are among them, which a preview does not decrypt."""

    client: ProviderClient
    features: Features
    known: bool = True
    secret: bool = False


def for_provider(inputs: Properties) -> dict[str, Any]:
    """Returns a provider resource's inputs without those that only the engine reads (the plugin and its source)."""
    return {key: value for key, value in inputs.items() if key not in _ENGINE_KEYS}


def _settings(package: str, inputs: Properties) -> tuple[str, str]:
    return package, json.dumps(for_provider(inputs), sort_keys=True)


def _version(inputs: Properties) -> str:
    """Returns the version of the plugin that a provider resource names; empty for a value that is not a text."""
    version = inputs.get("version")
    return version if isinstance(version, str) else ""


class Providers:
    """Clients by provider reference (`URN::ID`). Safe for threads.

    `sources` are the providers that are called in this process, by package; any other provider is a plugin's
    executable. `engine_address` starts the engine's gRPC service when the first executable needs it. `progress` is for
    providers of this process; executables report to the service. `sealed`: stored secrets are not decrypted, as in
    previews.
    """

    def __init__(
        self,
        project: Project,
        sources: Mapping[str, Source],
        engine_address: Callable[[], str],
        report: Report,
        progress: OnStepProgress,
        *,
        sealed: bool = False,
    ) -> None:
        self._project, self._sources, self._sealed = project, sources, sealed
        self._engine_address, self._report, self._progress = engine_address, report, progress
        self._lock = threading.RLock()
        self._idle: dict[tuple[str, str], list[ProviderClient]] = {}
        self._configured: dict[tuple[str, str], ConfiguredProvider] = {}
        self._by_reference: dict[str, ConfiguredProvider] = {}
        self._clients: list[ProviderClient] = []

    def is_in_process(self, package: str) -> bool:
        return package in self._sources

    def get(self, reference: str) -> ConfiguredProvider | None:
        return self._by_reference.get(reference)

    def check_config(self, urn: str, type_: str, olds: Properties, news: Properties) -> CheckedInputs:
        """Returns a provider's check of its configuration. A provider that this run uses was checked before. Its plugin
        is not started again for a check, because Pulumi's own plugin of AWS takes seconds to start."""
        package = package_of(type_)
        with self._lock:
            ready = self._configured.get(_settings(package, news))
        if ready is not None and ready.known:
            return CheckedInputs(news)
        version = _version(news)
        client = self._take(package, version)
        try:
            checked = client.check_config(urn, for_provider(olds), for_provider(news))
        finally:
            with self._lock:
                self._idle.setdefault((package, version), []).append(client)
        kept = {key: news[key] for key in _ENGINE_KEYS if key in news}
        return CheckedInputs({**checked.inputs, **kept}, checked.failures)

    def diff_config(self, urn: str, type_: str, olds: Properties, news: Properties) -> InputsDiff:
        package = package_of(type_)
        version = _version(news)
        client = self._take(package, version)
        try:
            return client.diff_config(urn, for_provider(olds), for_provider(news))
        finally:
            with self._lock:
                self._idle.setdefault((package, version), []).append(client)

    def configure(self, reference: str, urn: str, id_: str, type_: str, inputs: Properties) -> ConfiguredProvider:
        """Returns the configured provider of a reference; equal configurations share one client."""
        package, settings = package_of(type_), for_provider(inputs)
        key = _settings(package, inputs)
        with self._lock:
            ready = self._configured.get(key)
            if ready is None:
                client = self._take(package, _version(inputs))
                if contains_unknown(settings):
                    ready = ConfiguredProvider(client, Features(), known=False, secret=contains_secret(settings))
                else:
                    self._refuse_second_configuration(package)
                    ready = ConfiguredProvider(client, client.configure(urn, id_, package, settings))
                self._configured[key] = ready
            self._by_reference[reference] = ready
            return ready

    def close(self) -> None:
        with self._lock:
            for client in self._clients:
                client.close()
            self._clients.clear()

    def _take(self, package: str, version: str) -> ProviderClient:
        with self._lock:
            if idle := self._idle.get((package, version)):
                return idle.pop()
            client = self._open(package, version)
            if self._sealed:
                client = Sealed(client)
            self._clients.append(client)
            return client

    def _open(self, package: str, version: str) -> ProviderClient:
        source = self._sources.get(package)
        if source is None:
            executable = find_plugin(package, self._project.plugins, self._project.dir, version)
            process = PluginProcess(executable, self._engine_address(), self._project.dir, self._report)
            return RemoteProvider(process, self._project.program_folder)
        client = source() if callable(source) else source
        client.on_progress = self._progress
        return client

    def _refuse_second_configuration(self, package: str) -> None:
        source = self._sources.get(package)
        if source is None or callable(source):
            return
        if any(other == package and ready.known for (other, _), ready in self._configured.items()):
            raise EngineFailed(
                f"the provider {package} runs in this process and was configured in two ways",
                where=Path("Pulumi.yaml"),
                remedy="use one configuration of it in the program, or hand the engine the provider's class",
            )
