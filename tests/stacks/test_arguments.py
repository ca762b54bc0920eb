"""Every resource of the golden graphs has exactly the arguments that its type in the pinned pulumi_aws has."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import typing
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pulumi import _types

GRAPHS = {
    name: json.loads(Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8"))
    for name in ("graph", "nyc_prod")
}
RESOURCES = {
    f"{name} {each['name']}": each
    for name, graph in GRAPHS.items()
    for each in graph
    if each["type"].startswith("aws:")
}


def arguments_class(type_: str) -> Any:
    """`BucketArgs` of `aws:s3/bucket:Bucket`; `…InitArgs` where a nested type has that name."""
    _, module, name = type_.split(":")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        found = importlib.import_module(f"pulumi_aws.{module.split('/')[0]}")
        resource = sys.modules[getattr(found, name).__module__]
    return getattr(resource, f"{name}InitArgs", None) or getattr(resource, f"{name}Args")


def wrong(inputs: Mapping[str, Any], arguments: Any, path: str = "") -> Iterator[str]:
    """What is unknown, missing or of another type, with its path."""
    types = _types.input_type_types(arguments)
    parameters = inspect.signature(_constructor(arguments)).parameters
    for own, name in _types.input_type_py_to_pulumi_names(arguments).items():
        if name not in inputs and parameters[own].default is inspect.Parameter.empty:
            yield f"{path}{name} is missing"
    for name, value in inputs.items():
        if name not in types:
            yield f"{path}{name} is unknown"
            continue
        classes = _classes(types[name])
        nested = [each for each in classes if _types.is_input_type(each)]
        for item in value if isinstance(value, list) else [value]:
            if nested and isinstance(item, dict):
                yield from wrong(item, nested[0], f"{path}{name}.")
            elif not isinstance(item, dict) and not isinstance(item, tuple(classes)):
                yield f"{path}{name} is {item!r}, not {types[name]}"


def _constructor(arguments: Any) -> Any:
    """`__init__` as it was written: the decorator of these classes wraps it."""
    return inspect.unwrap(arguments.__init__)


def _classes(hint: Any) -> set[type]:
    """The classes in a type hint, however deep."""
    inner = typing.get_args(hint)
    if hint is float:
        return {float, int}  # as JSON has it
    if inner:
        return set[type]().union(*map(_classes, inner))
    return {hint} if isinstance(hint, type) else set()


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=RESOURCES)
def test_arguments(resource: dict[str, Any]) -> None:
    assert not list(wrong(resource["inputs"], arguments_class(resource["type"])))


OBJECT = "aws:s3/bucketObjectv2:BucketObjectv2"  # bills know no tags of objects, only the bucket's


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=RESOURCES)
def test_all_that_can_have_tags_tells_whose_it_is(resource: dict[str, Any]) -> None:
    if resource["type"] != OBJECT and "tags" in _types.input_type_types(arguments_class(resource["type"])):
        assert {"deployer:instance", "deployer:stack"} <= resource["inputs"].get("tags", {}).keys()


@pytest.mark.parametrize(
    ("type_", "inputs", "said"),
    [
        ("aws:s3/bucket:Bucket", {"bukcet": "a"}, "bukcet is unknown"),
        ("aws:s3/bucketPolicy:BucketPolicy", {"bucket": "a"}, "policy is missing"),
        ("aws:s3/bucket:Bucket", {"bucket": 3}, "bucket is 3, not"),
        (
            "aws:s3/bucketVersioning:BucketVersioning",
            {"bucket": "a", "versioningConfiguration": {"state": "Enabled"}},
            "versioningConfiguration.state is unknown",
        ),
        (
            "aws:dynamodb/table:Table",
            {"attributes": [{"name": "a"}]},
            "attributes.type is missing",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_argument_is_found(type_: str, inputs: dict[str, Any], said: str) -> None:
    assert any(each.startswith(said) for each in wrong(inputs, arguments_class(type_)))
