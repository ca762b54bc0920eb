"""Previews without decryption: stored secrets stay sealed, and values that cannot be compared are reported as such.

For a sealed secret in the state, a provider gets no old value, and an unknown new one. Its answers about these values
are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from deployer.engine.interfaces.provider import CheckedInputs, Features, InputsDiff, Invoked, Live, ProviderClient
from deployer.engine.values.property_paths import Part, contains, parse_path
from deployer.engine.values.values import UNKNOWN, Properties, contains_sealed, is_sealed, same, secret_unknown

_MISSING = object()


def not_compared(old: Properties, new: Properties) -> tuple[str, ...]:
    """Returns the inputs for which it is unknown whether they change: sealed inputs for which the program has a value.
    A value that the program took from the state has the same ciphertext, and is unchanged."""
    found = []
    for path in _sealed_paths(old):
        before, now = _at(old, path), _at(new, path)
        if now is not _MISSING and before != now:
            found.append(path_text(path))
    return tuple(sorted(found))


def path_text(path: tuple[Part, ...]) -> str:
    """`tags.owner`, `columns[0].type`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


class Sealed:
    """A provider's client in a preview. Fulfils `ProviderClient`."""

    def __init__(self, client: ProviderClient) -> None:
        self._client = client
        self.resumes_creates = client.resumes_creates

    def check_config(self, urn: str, olds: Properties, news: Properties) -> CheckedInputs:
        return self._client.check_config(urn, _known(olds), _unknown(news))

    def diff_config(self, urn: str, olds: Properties, news: Properties) -> InputsDiff:
        return _without_sealed(self._client.diff_config(urn, _known(olds), _unknown(news)), olds, {}, news)

    def configure(self, urn: str, id_: str, package: str, inputs: Properties) -> Features:
        return self._client.configure(urn, id_, package, inputs)

    def check(self, urn: str, olds: Properties, news: Properties, seed: bytes) -> CheckedInputs:
        return self._client.check(urn, _known(olds), _unknown(news), seed)

    def diff(
        self,
        urn: str,
        id_: str,
        old_inputs: Properties,
        old_outputs: Properties,
        new_inputs: Properties,
        ignore_changes: tuple[str, ...],
    ) -> InputsDiff:
        olds = _known(old_inputs), _known(old_outputs)
        found = self._client.diff(urn, id_, *olds, _unknown(new_inputs), ignore_changes)
        return _without_sealed(found, old_inputs, old_outputs, new_inputs)

    def create(self, urn: str, inputs: Properties, timeout: float, preview: bool) -> Live:
        return self._client.create(urn, _unknown(inputs), timeout, preview)

    def read(self, urn: str, id_: str, inputs: Properties, outputs: Properties) -> Live:
        found = self._client.read(urn, id_, _known(inputs), _known(outputs))
        if not found.id:
            return found
        read = None if found.inputs is None else _resealed(found.inputs, inputs)
        return replace(found, outputs=_resealed(found.outputs, outputs), inputs=read)

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
        olds = _known(old_inputs), _known(old_outputs)
        return self._client.update(urn, id_, *olds, _unknown(new_inputs), timeout, ignore_changes, preview)

    def delete(self, urn: str, id_: str, old_inputs: Properties, outputs: Properties, timeout: float) -> None:
        raise AssertionError("a preview deletes nothing")

    def invoke(self, token: str, args: Properties) -> Invoked:
        return self._client.invoke(token, _unknown(args))

    def close(self) -> None:
        self._client.close()


def _sealed_paths(value: Any, path: tuple[Part, ...] = ()) -> Iterator[tuple[Part, ...]]:
    if is_sealed(value):
        yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _sealed_paths(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _sealed_paths(item, (*path, index))


def _at(value: Any, path: tuple[Part, ...]) -> Any:
    for part in path:
        keys: Any = value if isinstance(value, Mapping) else range(len(value)) if isinstance(value, list) else ()
        if part not in keys:
            return _MISSING
        value = value[part]
    return value


def _known(value: Any) -> Any:
    """Returns the old value without sealed secrets: they are left out of mappings, and unknown in lists."""
    if not contains_sealed(value):
        return value
    if isinstance(value, Mapping):
        return {key: _known(item) for key, item in value.items() if not is_sealed(item)}
    return [UNKNOWN if is_sealed(item) else _known(item) for item in value] if isinstance(value, list) else value


def _unknown(value: Any) -> Any:
    """Returns the new value; sealed secrets are replaced by unknown secrets."""
    if not contains_sealed(value):
        return value
    if is_sealed(value):
        return secret_unknown()
    if isinstance(value, Mapping):
        return {key: _unknown(item) for key, item in value.items()}
    return [_unknown(item) for item in value] if isinstance(value, list) else value


def _resealed(found: Any, before: Any) -> Any:
    """Returns the values that a provider read, with the sealed secrets at their places, because the provider did not
    get them."""
    if is_sealed(before):
        return before
    if isinstance(before, Mapping) and isinstance(found, Mapping) and contains_sealed(before):
        kept = {key: item for key, item in before.items() if is_sealed(item)}
        return {**{key: _resealed(item, before.get(key)) for key, item in found.items()}, **kept}
    if isinstance(before, list) and isinstance(found, list) and len(found) == len(before) and contains_sealed(before):
        return [_resealed(item, old) for item, old in zip(found, before, strict=True)]
    return found


def _without_sealed(found: InputsDiff, old_inputs: Properties, old_outputs: Properties, new: Properties) -> InputsDiff:
    """Returns a provider's diff without sealed values, and with the sealed inputs that the program no longer has."""
    sealed = {*_sealed_paths(old_inputs), *_sealed_paths(old_outputs)}
    if not sealed or not (found.changes or found.detailed or found.diffs or found.replaces):
        gone = _gone(old_inputs, new)
        return replace(found, changes=True, detailed={**found.detailed, **gone}) if gone else found

    def is_known(text: str) -> bool:
        path = parse_path(text)
        if any(contains(each, path) for each in sealed):
            return False
        if not any(contains(path, each) for each in sealed):
            return True
        old = _at(old_inputs, path)  # it is about several values, of which some are sealed
        return old is _MISSING or not same(old, _at(new, path))

    detailed = {path: kind for path, kind in found.detailed.items() if is_known(path)} | _gone(old_inputs, new)
    diffs = tuple(path for path in found.diffs if is_known(path))
    replaces = tuple(path for path in found.replaces if is_known(path))
    silent = not (
        found.detailed or found.diffs or found.replaces
    )  # the resource changes, and the provider does not report what changes
    changes = True if detailed or diffs or replaces or silent else False if found.changes is not None else None
    return replace(found, changes=changes, detailed=detailed, diffs=diffs, replaces=replaces)


def _gone(old: Properties, new: Properties) -> dict[str, Any]:
    paths = (path for path in _sealed_paths(old) if _at(new, path) is _MISSING)
    return {path_text(path): "delete" for path in paths}
