"""The provider `lake`, called in this process: plain values go in and come out, without a copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deployer.engine.interfaces.provider import (
    CheckedInputs,
    Features,
    InputsDiff,
    Invoked,
    Live,
    OnStepProgress,
    ProviderFailed,
)
from deployer.engine.values.values import Properties, contains_secret, without_secrets
from deployer.errors import DeployerError

if TYPE_CHECKING:
    from deployer.provider.provider import LakeProvider


class InProcess:
    """Implements `ProcessClient`. The provider does not accept secrets: stored secrets are decrypted, secrets of a
    program are refused."""

    resumes_creates = True  #: the next `create` resumes an interrupted one

    def __init__(self, provider: LakeProvider) -> None:
        self._provider = provider
        self.on_progress: OnStepProgress = lambda *_: None
        provider.on_progress = lambda *now: self.on_progress(*now)

    def check_config(self, urn: str, olds: Properties, news: Properties) -> CheckedInputs:
        return CheckedInputs(news)

    def diff_config(self, urn: str, olds: Properties, news: Properties) -> InputsDiff:
        return InputsDiff(False)

    def configure(self, urn: str, id_: str, package: str, inputs: Properties) -> Features:
        return Features(accept_secrets=True, supports_preview=True)

    def check(self, urn: str, olds: Properties, news: Properties, seed: bytes) -> CheckedInputs:
        secret = [name for name, value in news.items() if contains_secret(value)]
        with _failures():
            inputs, failures = self._provider.check(urn, news, secret)
        return CheckedInputs(inputs, tuple((failure.property, failure.reason) for failure in failures))

    def diff(
        self,
        urn: str,
        id_: str,
        old_inputs: Properties,
        old_outputs: Properties,
        new_inputs: Properties,
        ignore_changes: tuple[str, ...],
    ) -> InputsDiff:
        with _failures():
            found = self._provider.diff(urn, _opened(old_outputs), _opened(new_inputs))
        return InputsDiff(
            found.changed,
            replaces=found.replaces,
            delete_before_replace=found.delete_before_replace,
            diffs=found.names,
            detailed=found.detailed,
        )

    def create(self, urn: str, inputs: Properties, timeout: float, preview: bool) -> Live:
        with _failures():
            made = self._provider.create(urn, _opened(inputs), preview=preview)
        return Live(made.id, made.outputs)

    def read(self, urn: str, id_: str, inputs: Properties, outputs: Properties) -> Live:
        with _failures():
            found = self._provider.read(urn, id_, _opened(inputs))
        return Live("", {}) if found is None else Live(found.id, found.outputs, found.inputs or None)

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
        with _failures():
            updated = self._provider.update(urn, id_, _opened(new_inputs), preview=preview)
        return Live(id_, updated.outputs)

    def delete(self, urn: str, id_: str, old_inputs: Properties, outputs: Properties, timeout: float) -> None:
        with _failures():
            self._provider.delete(urn, id_, _opened(outputs))

    def invoke(self, token: str, args: Properties) -> Invoked:
        raise ProviderFailed(f"the provider has no function {token}")

    def close(self) -> None:
        """Leaves the provider open: it serves the next run too."""


def _opened(properties: Properties) -> Properties:
    return without_secrets(properties) if contains_secret(properties) else properties


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except DeployerError as error:
        raise ProviderFailed(str(error)) from error
    except Exception as error:
        raise ProviderFailed(f"{type(error).__name__}: {error}") from error
