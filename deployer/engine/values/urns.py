"""Pulumi's unique resource names: `urn:pulumi:STACK::PROJECT::PARENT$TYPE::NAME`."""

from __future__ import annotations

import re

STACK_TYPE = "pulumi:pulumi:Stack"
STACK_REFERENCE = "pulumi:pulumi:StackReference"
PROVIDER_PREFIX = "pulumi:providers:"

_URN = re.compile(
    r"urn:pulumi:[A-Za-z0-9_.\-]{1,100}::[A-Za-z0-9_.\-]{1,100}::[^\x00-\x20\x7f]{1,2000}?::[^\x00-\x1f\x7f]{1,5000}"
)


def is_urn(value: object) -> bool:
    """Returns whether a value is a URN, whose parts the functions below return."""
    return isinstance(value, str) and _URN.fullmatch(value) is not None


def is_reference(value: object) -> bool:
    """Returns whether a value is a provider reference: a provider's URN and id."""
    return isinstance(value, str) and is_urn(value.rpartition("::")[0])


def make_urn(stack: str, project: str, parent: str, type_: str, name: str) -> str:
    """Returns the URN of a resource. If the parent is not the stack itself, its qualified type comes before the
    resource's type."""
    qualified = type_
    if parent:
        above = qualified_type(parent)
        if above and above != STACK_TYPE:
            qualified = f"{above}${type_}"
    return f"urn:pulumi:{stack}::{project}::{qualified}::{name}"


def qualified_type(urn: str) -> str:
    """Returns the types from the outermost parent inwards, joined by `$`."""
    return urn.split("::", 3)[2]


def type_of(urn: str) -> str:
    return qualified_type(urn).rsplit("$", 1)[-1]


def name_of(urn: str) -> str:
    return urn.split("::", 3)[3]


def is_provider_type(type_: str) -> bool:
    return type_.startswith(PROVIDER_PREFIX)


def package_of(type_: str) -> str:
    """Returns the package of a type token: `lake` of `lake:index:Table`, `aws` of `pulumi:providers:aws`."""
    return type_.removeprefix(PROVIDER_PREFIX) if is_provider_type(type_) else type_.split(":", 1)[0]


def provider_reference(urn: str, id_: str) -> str:
    return f"{urn}::{id_}"


def split_reference(reference: str) -> tuple[str, str]:
    """Returns `(urn, id)` of a provider reference."""
    urn, _, id_ = reference.rpartition("::")
    return urn, id_
