"""Finds known secrets in values that are stored in plain text. In resources they are made secret; in outputs they are
refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deployer.engine.providers.sealed import path_text
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.values import BLINDED, SECRET, SIG, Properties, secret, secret_unknown
from deployer.errors import Refused
from deployer.platform.text import masking

_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Leak:
    """A secret in plain text: the path to the text that contains it, and the secret's name."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class Leaks:
    """Looks for secrets that are known in this run. `placeholders` are texts in the place of secret configuration that
    a preview did not decrypt."""

    placeholders: bool = False

    def found(self, properties: Properties, *, parts: bool = True) -> list[Leak]:
        """Returns the texts of properties, outside of secrets, that contain a known secret, or a part of one
        (`parts`)."""
        texts = list(_texts(properties, ()))
        all_texts = [text for _, text in texts]
        if not self._is_placeholder("\0".join(all_texts)) and not masking.current().name_in_any(all_texts):
            return []
        return [Leak(path_text(path), name) for path, text in texts if (name := self._name(text, parts=parts))]

    def hidden(self, properties: Properties) -> tuple[dict[str, Any], list[Leak]]:
        """Returns the properties with such texts made secret, and the list of these texts."""
        leaks = self.found(properties)
        return (dict(properties) if not leaks else self._hide(properties)), leaks

    def kept(self, state: ResourceState) -> ResourceState:
        """Returns the resource in the form to store: values from a provider that contain a known secret are made
        secret."""
        inputs, in_inputs = self.hidden(state.inputs)
        outputs, in_outputs = self.hidden(state.outputs)
        return replace(state, inputs=inputs, outputs=outputs) if in_inputs or in_outputs else state

    def refuse(self, what: str, properties: Properties, where: str) -> None:
        """Raises Refused for the first property that contains a known secret in plain text."""
        for leak in self.found(properties, parts=False):
            raise Refused(
                f"{what} {leak.path} holds the value of {leak.name} in clear, and would be stored without encryption",
                where=where,
                remedy="export it with pulumi.Output.secret(…), or read it with config.require_secret",
            )

    def refuse_name(self, name: str, where: str) -> None:
        """Raises Refused for a resource whose name contains a known secret: names are stored in plain text."""
        if known := self._name(name, parts=False):
            raise Refused(
                f"the name of a resource holds the value of {known}", where=where, remedy="give it another name"
            )

    def _name(self, text: str, *, parts: bool = True) -> str:
        return "secret configuration" if self._is_placeholder(text) else masking.current().name_in(text, parts=parts)

    def _is_placeholder(self, text: str) -> bool:
        return self.placeholders and BLINDED in text

    def _hide(self, value: Any) -> Any:
        match value:
            case str():
                if not self._name(value):
                    return value
                return secret_unknown() if self._is_placeholder(value) else secret(value)
            case Mapping() if SIG not in value:
                return {key: self._hide(item) for key, item in value.items()}
            case Mapping() if value[SIG] != SECRET and self.found(value):  # an asset
                return secret(value)
            case list():
                return [self._hide(item) for item in value]
            case _:
                return value


def _texts(value: Any, path: _Path) -> Iterator[tuple[_Path, str]]:
    """Yields the texts in a value, without those in secrets. Contents of assets and keys of mappings are texts too."""
    match value:
        case str():
            yield path, value
        case Mapping() if value.get(SIG) == SECRET:
            return
        case Mapping():
            for key, item in value.items():
                if key != SIG:
                    yield from _texts(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from _texts(item, (*path, index))
