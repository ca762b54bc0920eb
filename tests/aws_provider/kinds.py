"""What the provider needs of a type of resource, and how values are named on AWS's side.

Values are plain JSON. Inputs are in canonical form: nothing that equals its default, lists that are sets sorted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import boto3
import botocore.session
from botocore.loaders import Loader

Values = Mapping[str, Any]

#: What a value may hold: a type, a mapping by name (`{"*": shape}` for names of any kind) or a list of one shape.
Shape = Any


@dataclass(frozen=True)
class Found:
    """A resource as it is in AWS: the inputs that would declare it, and what only AWS knows."""

    inputs: Values
    computed: Values


@dataclass(frozen=True)
class Kind:
    """One type. `read` gets the inputs too, empty for an import, and answers None for what is gone."""

    shape: Mapping[str, Shape]
    needed: tuple[str, ...]
    replaces: tuple[str, ...]
    computed: tuple[str, ...]
    create: Callable[[Any, Values], str]
    read: Callable[[Any, str, Values], Found | None]
    update: Callable[[Any, str, Values, Values], None]
    delete: Callable[[Any, str, Values], None]
    service: str = ""
    canonical: Callable[[dict[str, Any]], dict[str, Any]] = dict
    #: For properties that are not compared by their values: whether the new inputs differ from the old outputs.
    differs: Mapping[str, Callable[[Values, Values], bool]] = field(default_factory=dict)

    def client(self, inputs: Values) -> Any:
        """A client of the type's service where the resource is."""
        return _client(self.service, inputs.get("region"))


_loader = Loader()


def read_models(services: Iterable[str]) -> None:
    """Reads AWS's descriptions of the services, for all processes that are forked from this one."""
    for name in ("endpoints", "partitions", "sdk-default-configuration", "_retry"):
        _loader.load_data(name)
    for service in services:
        _loader.load_service_model(service, "service-2")
        _loader.load_service_model(service, "endpoint-rule-set-1")


@cache
def _session() -> boto3.session.Session:
    core = botocore.session.get_session()
    core.register_component("data_loader", _loader)
    return boto3.session.Session(botocore_session=core)


@cache
def _client(service: str, region: str | None) -> Any:
    return _session().client(service, region_name=region)  # type: ignore[call-overload]


def misfits(value: Any, shape: Shape, path: str = "") -> Iterator[tuple[str, str]]:
    """Properties that this provider does not have, or that have another type: path and reason."""
    if isinstance(shape, Mapping):
        if not isinstance(value, Mapping):
            yield path, "must be an object"
            return
        for name, item in value.items():
            inner = f"{path}.{name}" if path else name
            if name in shape or "*" in shape:
                yield from misfits(item, shape.get(name, shape.get("*")), inner)
            else:
                yield inner, "the provider for tests does not have this property"
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield path, "must be a list"
            return
        for index, item in enumerate(value):
            yield from misfits(item, shape[0], f"{path}[{index}]")
    elif not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
        yield path, f"must be {shape.__name__}, not {value!r}"


def aws_form(value: Any, special: Mapping[str, str]) -> Any:
    """`{"noncurrentDays": 3}` as `{"NoncurrentDays": 3}`; `special` names what is not only a capital more."""
    if isinstance(value, Mapping):
        return {special.get(name, name[0].upper() + name[1:]): aws_form(item, special) for name, item in value.items()}
    if isinstance(value, list):
        return [aws_form(item, special) for item in value]
    return value


def pulumi_form(value: Any, special: Mapping[str, str]) -> Any:
    """The inverse of `aws_form`."""
    names = {theirs: ours for ours, theirs in special.items()}
    if isinstance(value, Mapping):
        return {names.get(name, name[0].lower() + name[1:]): pulumi_form(item, special) for name, item in value.items()}
    if isinstance(value, list):
        return [pulumi_form(item, special) for item in value]
    return value


def same_json(text: str) -> str:
    """A JSON document in the one form that equal documents have."""
    return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def tags_of(listed: list[dict[str, str]]) -> dict[str, Any]:
    """The input `tags`, left out when there are none."""
    return {"tags": {each["Key"]: each["Value"] for each in listed}} if listed else {}


def without_nothing(values: Values) -> dict[str, Any]:
    """Without what is null, empty or false, which is how these types' defaults are."""
    return {name: value for name, value in values.items() if value not in (None, False, {}, [], "")}
